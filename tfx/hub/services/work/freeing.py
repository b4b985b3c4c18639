"""How a task is given back: by its holder, a person, or by force (WK-L15, WK-L16, WK-D5).

Runs inside the writer's transaction; knows no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.services import endings, notices
from tfx.hub.services.work.decisions import OWNED, must_be_its
from tfx.hub.store import leases
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.kinds import Kind
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx


def free(  # noqa: PLR0917  (how a lease ends)
    tx: Tx,
    kind: Kind,
    task: TaskRow,
    held: LeaseRow | None,
    reason: str,
    who: Worker,
    op: Op | None,
) -> None:
    """End a lease and free its task; a task that left its owner's hands is not reopened (WK-K2)."""
    status = TaskStatus.ACCEPTED.value if task.status in OWNED else None
    leases.end(tx, kind, task, held, reason, who.actor, status=status, op=op)
    if status is not None:
        endings.end_review(tx, task, reason, who.actor)
    if held is not None and who.agent != held.agent:
        notices.lost(tx, task, held, reason)


def may_give_up(task: TaskRow, who: Worker) -> None:
    """Let an assignment without a lease go: by its assignee without a session, or the operator.

    Raises StateConflict `lease-missing`, and what `must_be_its` raises.
    """
    if task.status not in OWNED or (who.is_supervised and not who.is_operator):
        raise nothing_held(task)
    must_be_its(task, who)


def nothing_held(task: TaskRow) -> StateConflict:
    """Return the error for a task without an active lease."""
    return StateConflict(
        f"task {task.number} has no active lease",
        code="lease-missing",
        hint="tfx lease status",
        details={"task": task.number, "status": task.status, "assignee": task.assignee},
    )
