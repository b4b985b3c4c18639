"""Who a task is given to without a lease, and `assigned` as a claim (WK-T9, WK-L8, WK-L12).

Runs inside the writer's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import AccessDenied, InvalidRequest, StateConflict
from tfx.hub.services.life import own_name
from tfx.hub.services.work import moves
from tfx.hub.services.work.claiming import claim
from tfx.hub.store import leases
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx
    from tfx.hub.wire.work import TaskUpdateRequest


def is_giving(task: TaskRow, request: TaskUpdateRequest) -> bool:
    """Say whether a request names an owner: the one that the task has is no change (WK-L22)."""
    return (
        request.wanted is TaskStatus.ASSIGNED
        or request.assignee not in {None, task.assignee}
        or request.label not in {None, task.label}
    )


def claim_for(
    tx: Tx, task: TaskRow, who: Worker, request: TaskUpdateRequest, op: Op | None
) -> bool:
    """Take `status: assigned` of a supervised worker as a claim (WK-L8, WK-T5).

    Return whether a lease was minted: then its event carries the key of the request.
    """
    if who.agent is None or who.session is None:
        raise AccessDenied("a claim needs an agent and its session", code="actor-missing")
    if request.assignee not in {None, who.agent}:
        raise use_handoff(task)
    holder = leases.Holder(who.agent, who.session, label=request.label or who.agent)
    before = leases.active(tx, task.stream)
    return claim(tx, task, holder, op) != before


def given(
    task: TaskRow, who: Worker, held: LeaseRow | None, request: TaskUpdateRequest
) -> moves.Given:
    """Return whom a task is given to; it never gets a time to live by that (WK-D1).

    Agents give to themselves only and nobody gives away what is claimed. Raises StateConflict
    `use-handoff`, AccessDenied `actor-mismatch`, InvalidRequest `bad-transition`.
    """
    if held is not None or who.is_supervised:
        raise use_handoff(task)
    assignee = who.agent if request.assignee is None else own_name(request.assignee)
    if who.agent is not None and assignee != who.agent:
        raise AccessDenied(
            "an agent gives a task to itself only",
            code="actor-mismatch",
            details={"task": task.number, "assignee": assignee},
        )
    if assignee is None and request.label is None:
        raise InvalidRequest("assignee is needed", details={"field": "assignee"})
    if request.wanted not in {None, TaskStatus.ASSIGNED}:
        raise InvalidRequest(
            "a task that is given to somebody becomes assigned", details={"field": "status"}
        )
    moves.check(task, TaskStatus.ASSIGNED)
    return moves.Given(assignee, request.label or assignee)


def use_handoff(task: TaskRow) -> StateConflict:
    """Return the error for a change of owner that is neither a claim nor a handoff (WK-L12)."""
    return StateConflict(
        f"the owner of task {task.number} changes by claim and handoff only",
        code="use-handoff",
        hint="tfx lease handoff",
        details={"task": task.number, "assignee": task.assignee},
    )
