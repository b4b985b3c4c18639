"""What the log tells of a task and no column does: how its work went, who stopped it.

SQL and events only; what follows from it is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.store.events import decode_body
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.store.body import Body
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

STORY: Final = (
    "SELECT kind, actor, body FROM log WHERE stream = ? AND kind IN ('task_moved', "
    "'artifact_attached', 'work_claimed', 'work_handed_off', 'work_released', 'work_revoked', "
    "'work_expired', 'work_forced') ORDER BY previous"
)
LAST_MOVE: Final = (
    "SELECT json_extract(body, '$.policy') FROM log WHERE stream = ? AND kind = 'task_moved' "
    "ORDER BY previous DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the work on a task."""

    actor: str
    body: Body


def steps(source: Tx | Reader, task: TaskRow) -> list[Step]:
    """Return how the work on a task went, oldest first: moves, owners, artifacts."""
    found: list[Step] = []
    for kind, actor, text in source.all(STORY, (task.stream,)):
        body = decode_body(str(kind), str(text))
        if body is not None:
            found.append(Step(str(actor), body))
    return found


def stopped_by_policy(source: Tx | Reader, task: TaskRow) -> bool:
    """Say whether a task is blocked because its agents did as much as they may (WK-K8).

    Read from the move that blocked it: its note may have been edited since.
    """
    if task.status != TaskStatus.BLOCKED:
        return False
    row = source.one(LAST_MOVE, (task.stream,))
    return row is not None and bool(row[0])
