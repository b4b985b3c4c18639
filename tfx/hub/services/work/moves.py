"""Which status may follow which, and how often (work.md §2, WK-K8).

Pure but for the events that carry a move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.services import endings
from tfx.hub.services.work.decisions import OWNED
from tfx.hub.store import leases, tasks
from tfx.hub.store.work_bodies import TaskMoved
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import AgentId
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx

_S = TaskStatus
NEXT: Final[Mapping[TaskStatus, tuple[TaskStatus, ...]]] = MappingProxyType(
    {
        _S.PROPOSED: (_S.ACCEPTED, _S.CANCELLED),
        _S.ACCEPTED: (_S.ASSIGNED, _S.CANCELLED),
        _S.ASSIGNED: (_S.IN_PROGRESS, _S.IN_REVIEW, _S.CANCELLED),
        _S.IN_PROGRESS: (_S.BLOCKED, _S.IN_REVIEW, _S.DONE, _S.CANCELLED),
        _S.BLOCKED: (_S.IN_PROGRESS, _S.IN_REVIEW, _S.CANCELLED),
        _S.IN_REVIEW: (_S.MERGED, _S.IN_PROGRESS, _S.BLOCKED, _S.DONE, _S.CANCELLED),
        _S.MERGED: (_S.DONE, _S.ACCEPTED),
        _S.DONE: (_S.ACCEPTED,),
        _S.CANCELLED: (_S.ACCEPTED,),
    }
)
UNGUARDED: Final = frozenset({_S.ACCEPTED, _S.MERGED, _S.DONE, _S.CANCELLED})
"""A change to one of these alone is not stopped by a lock (WK-K4)."""


@dataclass(frozen=True, slots=True)
class Given:
    """Whom a task is given to: an agent, or a name that its agent fills in (WK-T10)."""

    assignee: AgentId | None
    label: str | None


def check(task: TaskRow, wanted: TaskStatus) -> None:
    """Raise InvalidRequest `bad-transition` with the statuses that may follow (WK-T1)."""
    allowed = NEXT[TaskStatus(task.status)]
    if wanted not in allowed:
        names = [each.value for each in allowed]
        raise InvalidRequest(
            f"task {task.number} is {task.status}; it can become {', '.join(names)}, "
            f"not {wanted.value}",
            code="bad-transition",
            details={"task": task.number, "status": task.status, "allowed": list(names)},
        )


def limited(task: TaskRow, wanted: TaskStatus, rounds: int) -> TaskStatus:
    """Return the status that a move ends in when its review would be one too many (WK-K8).

    Raises StateConflict `policy-limit` for a task that is blocked by it already.
    """
    if wanted is not _S.IN_REVIEW or not rounds or task.rounds < rounds:
        return wanted
    if task.status == _S.BLOCKED:
        raise StateConflict(
            f"task {task.number} had {task.rounds} review rounds; a person has to decide",
            code="policy-limit",
            hint="tfx task update --operator",
            details={"task": task.number, "rounds": task.rounds, "limit": rounds},
        )
    return _S.BLOCKED


def path_of(task: TaskRow, target: TaskStatus) -> tuple[TaskStatus, ...]:
    """Return the moves to a target: one, or over in_progress where the table needs it."""
    if target is _S.BLOCKED and task.status == _S.ASSIGNED:
        return (_S.IN_PROGRESS, _S.BLOCKED)
    return (target,)


def move(  # noqa: PLR0917  (one event)
    tx: Tx, task: TaskRow, target: TaskStatus, who: Worker, note: str | None, op: Op | None
) -> None:
    """Move a task; its lease and its review end where they no longer fit (WK-L22)."""
    held = leases.active(tx, task.stream)
    if held is not None and target not in OWNED:
        endings.revoke(tx, task, held, endings.CHANGED, who.actor)
    if task.status == _S.IN_REVIEW:
        endings.end_review(tx, task, f"verdict: {target.value}", who.actor)
    rounds = task.rounds + (target is _S.IN_REVIEW)
    if who.is_operator and target is not _S.IN_REVIEW:
        rounds = 0
    reopens = target is _S.ACCEPTED
    body = TaskMoved(
        assignee=None if reopens else task.assignee,
        before=task.status,
        decided=who.is_operator,
        epoch=None if held is None else held.epoch,
        instance=None if reopens else task.instance,
        label=None if reopens else task.label,
        lease=None if held is None else held.id,
        note=note,
        rounds=rounds,
        session=None if reopens else task.session,
        status=target.value,
    )
    tasks.move(tx, task, body, who.actor, op)


def assign(tx: Tx, task: TaskRow, who: Worker, given: Given, op: Op | None) -> None:
    """Give a task to somebody without a lease: it never expires (WK-D1)."""
    body = TaskMoved(
        assignee=given.assignee,
        before=task.status,
        label=given.label,
        note=task.note,
        rounds=task.rounds,
        status=TaskStatus.ASSIGNED.value,
    )
    tasks.move(tx, task, body, who.actor, op)
