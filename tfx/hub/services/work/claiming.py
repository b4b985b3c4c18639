"""The rules of a claim, in their order (WK-L1 … WK-L6); shared by claim, next and update.

Runs inside the writer's transaction; knows no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tfx.errors import StateConflict
from tfx.hub.models import LeaseId
from tfx.hub.services import endings
from tfx.hub.services.work.decisions import OWNED, held_by_other
from tfx.hub.store import agents, leases, reviews, tasks
from tfx.hub.store.ids import new_id
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.store.leases import Holder, LeaseRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx


def claim(tx: Tx, task: TaskRow, holder: Holder, op: Op | None) -> LeaseRow:
    """Return the lease of a holder: the one it has, or a new one.

    The caller has expired what was due (WK-L1) and checked the locks. Raises StateConflict
    `held`, `bad-status`, `not-ready`.
    """
    held = leases.active(tx, task.stream)
    if held is not None:
        if (held.agent, held.session) == (holder.agent, holder.session):
            return held
        raise held_by_other(task, held)
    status = _status_after(tx, task, holder)
    lease = LeaseId(new_id(tx.now_ms))
    leases.claim(tx, task, holder, status.value, lease, op)
    review = reviews.active(tx, task.stream)
    if review is not None and review.agent == holder.agent:
        endings.end_review(tx, task, "it is the reviewer's own work now", holder.agent)
    minted = leases.find(tx, lease)
    if minted is None:
        raise StateConflict("the lease was not stored", code="lease-missing")
    return minted


def _status_after(tx: Tx, task: TaskRow, holder: Holder) -> TaskStatus:
    """Return the status that a claim gives: a fresh one assigns, a reclaim keeps it (WK-L4)."""
    status = TaskStatus(task.status)
    is_mine = task.assignee == holder.agent or (
        # a name fills a key in that is missing, and never beats another key (WK-T10)
        task.assignee is None and task.label is not None and task.label in _names_of(tx, holder)
    )
    if status in OWNED and is_mine:
        return status
    is_free = is_mine or (task.assignee is None and task.label is None)
    if status is TaskStatus.ACCEPTED and is_free:
        _must_be_ready(tx, task)
        return TaskStatus.ASSIGNED
    whose = task.assignee or task.label
    what = f"{task.status}, {whose}'s" if whose else task.status
    raise StateConflict(
        f"task {task.number} cannot be claimed: it is {what}",
        code="bad-status",
        hint="tfx task show",
        details={"task": task.number, "status": task.status, "assignee": whose},
    )


def _names_of(tx: Tx, holder: Holder) -> set[object]:
    """Return the names of an agent as it is registered: its key, and `label` of its metadata.

    What the request calls it is for display only: anybody may say anything there.
    """
    known = agents.find(tx, holder.agent)
    if known is None:
        return {holder.agent}
    label = msgspec.json.decode(known.metadata, type=dict[str, object]).get("label")
    return {holder.agent, label} if isinstance(label, str) else {holder.agent}


def _must_be_ready(tx: Tx, task: TaskRow) -> None:
    open_ones = tasks.numbers(tx, tasks.OPEN_BLOCKERS, (task.stream,))
    rivals: tuple[int, ...] = ()
    if task.exclusive is not None:
        rivals = tasks.numbers(tx, tasks.RIVALS, (task.room, task.exclusive, task.stream))
    if open_ones or rivals:
        why = [f"blocked by {each}" for each in open_ones]
        why += [f"not beside {each}" for each in rivals]
        raise StateConflict(
            f"task {task.number} is not ready: {', '.join(why)}",
            code="not-ready",
            details={
                "task": task.number,
                "blocked_by": list(open_ones),
                "not_beside": list(rivals),
            },
        )
