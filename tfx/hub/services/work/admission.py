"""New work that is somebody's work already is not let in (WK-K5).

Compares by source, PR, branch, output and artifact with the open tasks of the room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.store import tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx


def twin_of(
    source: Tx | Reader, room: str, marks: Mapping[str, str | None], except_for: int = 0
) -> tuple[TaskRow, str] | None:
    """Return an open task with one of these marks, and by which one it was found.

    `marks` are source_message, source_task, branch, pr, output; branch and PR are also looked for
    among the artifacts.
    """
    for kind, value in marks.items():
        if value is None:
            continue
        kinds = (kind, "artifact") if kind in {"branch", "pr"} else (kind,)
        for each in kinds:
            found = tasks.twin(source, room, each, value, except_for)
            if found is not None:
                return found, kind
    return None


def duplicate(found: TaskRow, kind: str) -> StateConflict:
    """Return the error that names the task that is there already; it can be reviewed instead."""
    return StateConflict(
        f"task {found.number} is the same work: it has this {kind.replace('_', ' ')}",
        code="duplicate-work",
        hint="tfx task show",
        details={
            "task": found.number,
            "matches": kind,
            "status": found.status,
            "assignee": found.assignee,
        },
    )
