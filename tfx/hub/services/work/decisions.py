"""The fence before every change of a task: lock, actor, lease, kind, holder, missing (WK-K1).

Reads only; that a refusal is recorded is `recording`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from tfx.errors import (
    AccessDenied,
    ActorMissing,
    NotFound,
    StateConflict,
)
from tfx.hub.services import endings
from tfx.hub.store import leases, reviews, tasks
from tfx.hub.work_models import LeaseState, TaskStatus

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx
    from tfx.hub.wire.work import Fenced

T = TypeVar("T")

OWNED: Final = frozenset(
    {TaskStatus.ASSIGNED, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.IN_REVIEW}
)
CLOSED: Final = frozenset({TaskStatus.DONE, TaskStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Expected:
    """The lease that the author of a change saw: its id and epoch, or that there was none.

    Unless it was `stated`, it is what the hub saw for the author before the transaction.
    """

    lease_id: str | None
    epoch: int | None
    stated: bool = field(default=True, compare=False)


def task_of(source: Tx | Reader, room: str, number: int) -> TaskRow:
    """Return a task that is there; raises NotFound `unknown-task`."""
    found = tasks.find(source, room, number)
    if found is None:
        raise _no_task(room, number, "")
    return there(found)


def there(task: TaskRow) -> TaskRow:
    """Return a task that is not deleted; raises NotFound `unknown-task`."""
    if task.deleted_at_ms is not None:
        raise _no_task(task.room, task.number, "; it was deleted")
    return task


def _no_task(room: str, number: int, why: str) -> NotFound:
    return NotFound(
        f"there is no task {number} in {room}{why}",
        code="unknown-task",
        hint="tfx task list",
        details={"task": number, "room": room},
    )


def observed(source: Tx | Reader, request: Fenced, task: TaskRow | None) -> Expected | None:
    """Return what the author believes, or what the hub sees before the transaction (WK-L9)."""
    if request.lease_id is not None or request.epoch is not None:
        return Expected(request.lease_id, request.epoch)
    if request.no_lease:
        return Expected(None, None)
    if task is None:
        return None
    held = leases.active(source, task.stream)
    if held is None:
        return Expected(None, None, stated=False)
    return Expected(held.id, held.epoch, stated=False)


def compare(tx: Tx, task: TaskRow, expected: Expected | None) -> LeaseRow | None:
    """Return the active lease when it is the expected one.

    Raises StateConflict: `lease-lost` for one that was the task's and has ended (WK-D8, EV-B7),
    else `lease-changed`.
    """
    held = leases.active(tx, task.stream)
    have = Expected(None, None) if held is None else Expected(held.id, held.epoch)
    if expected is None or _agree(have, expected):
        return held
    _raise_if_lost(tx, task, expected)
    raise StateConflict(
        "the lease of the task has changed; look again",
        code="lease-changed",
        hint="tfx lease status",
        details={
            "task": task.number,
            "lease_id": have.lease_id,
            "epoch": have.epoch,
            "holder": None if held is None else held.agent,
        },
    )


def _agree(have: Expected, expected: Expected) -> bool:
    if have.lease_id is None or (expected.lease_id is None and expected.epoch is None):
        return have == expected
    return expected.lease_id in {None, have.lease_id} and expected.epoch in {None, have.epoch}


def _raise_if_lost(tx: Tx, task: TaskRow, expected: Expected) -> None:
    old = None if expected.lease_id is None else leases.find(tx, expected.lease_id)
    if old is not None and old.task == task.stream and old.status != LeaseState.ACTIVE:
        raise lost(tx, task, old)


def not_lost(tx: Tx, task: TaskRow, who: Worker, expected: Expected | None) -> None:
    """Stop who lost the task's lease and does not say what it believes (WK-L9, WK-D4).

    Its session may not know of the loss yet. It goes on once it claims again, has the review, or
    states what it knows. Raises StateConflict `lease-lost`.
    """
    if who.session is None or who.is_operator or (expected is not None and expected.stated):
        return
    old = leases.last_of_session(tx, task.stream, who.session)
    if old is None or old.status == LeaseState.ACTIVE or _is_finished(task, old):
        return
    review = reviews.active(tx, task.stream)
    judges = review is not None and who.is_holder(review.agent, review.session)
    if not judges and leases.was_taken(tx, old):
        raise lost(tx, task, old)


def _is_finished(task: TaskRow, old: LeaseRow) -> bool:
    """Say whether a lease ended because its work was taken in."""
    return old.reason == endings.CHANGED and task.status in {TaskStatus.MERGED, TaskStatus.DONE}


def lost(tx: Tx, task: TaskRow, old: LeaseRow) -> StateConflict:
    """Return the error for a lease that has ended."""
    return StateConflict(
        f"the lease of task {task.number} was {old.status}: {old.reason}",
        code="lease-lost",
        hint="claim the task again, or let its new holder go on",
        details={
            "task": task.number,
            "lease_id": old.id,
            "state": old.status,
            "reason": old.reason,
            "successor": leases.successor(tx, old),
        },
    )


def may_change(tx: Tx, task: TaskRow, who: Worker, held: LeaseRow | None, *, verdict: bool) -> None:
    """Let the holder change a task, and its reviewer give a verdict (WK-L10, WK-L11, WK-L13).

    Without a lease an agent that names no session may change what is its own or nobody's (WK-A4).
    `verdict` is True for a change of status and note alone. Raises ActorMissing, AccessDenied
    `lease-kind`, `lease-holder` or `actor-mismatch`, StateConflict `lease-missing`.
    """
    if who.is_operator:
        return
    if held is not None and who.agent is None:
        raise ActorMissing(
            f"task {task.number} is held by {held.agent}: only its holder may change it",
            hint="tfx lease force-release",
            details=_held(task, held),
        )
    if held is not None and who.is_holder(held.agent, held.session):
        return
    review = reviews.active(tx, task.stream)
    if review is not None and who.is_holder(review.agent, review.session):
        if task.status == TaskStatus.IN_REVIEW and verdict:
            return
        raise _wrong_kind(task, review)
    if held is not None:
        raise AccessDenied(
            f"task {task.number} is held by {held.agent}",
            code="lease-holder",
            details=_held(task, held),
        )
    if who.is_supervised and task.status in OWNED:
        raise StateConflict(
            f"task {task.number} has no lease: claim it first, an assignment is no authority",
            code="lease-missing",
            hint="tfx lease claim",
            details={"task": task.number, "assignee": task.assignee},
        )
    must_be_its(task, who)


def must_be_its(task: TaskRow, who: Worker) -> None:
    """Let an OWNED task without a lease be changed by the agent it is given to, or the operator.

    Keys are compared; a name stands for the key that it will be filled in with (WK-T10). Raises
    ActorMissing where no agent asks, AccessDenied `actor-mismatch` where another one does.
    """
    whose = task.assignee or task.label
    is_its = who.agent is not None and who.agent == whose
    if is_its or who.is_operator or task.status not in OWNED:
        return
    details: dict[str, JsonValue] = {
        "task": task.number,
        "status": task.status,
        "assignee": whose,
    }
    if who.agent is None:
        raise ActorMissing(
            f"task {task.number} is {whose}'s: it takes that agent, or the operator credential",
            hint="tfx task update --operator",
            details=details,
        )
    raise AccessDenied(
        f"task {task.number} is {whose}'s, and not {who.agent}'s",
        code="actor-mismatch",
        details=details,
    )


def must_hold(tx: Tx, task: TaskRow, who: Worker, held: LeaseRow) -> None:
    """Let the holder or the operator act on a lease.

    Raises ActorMissing, AccessDenied `lease-kind` for the reviewer (WK-R5) or `lease-holder`.
    """
    if who.is_operator or who.is_holder(held.agent, held.session):
        return
    if who.agent is None:
        raise ActorMissing(
            f"task {task.number} is held by {held.agent}",
            hint="tfx lease force-release",
            details=_held(task, held),
        )
    review = reviews.active(tx, task.stream)
    if review is not None and who.is_holder(review.agent, review.session):
        raise _wrong_kind(task, review)
    raise AccessDenied(
        f"task {task.number} is held by {held.agent}",
        code="lease-holder",
        details=_held(task, held),
    )


def held_by_other(task: TaskRow, held: LeaseRow) -> StateConflict:
    """Return the error for a claim of what somebody has (WK-L3, WK-T12)."""
    return StateConflict(
        f"task {task.number} is held by {held.agent}; its holder can hand it off",
        code="held",
        hint="tfx lease handoff",
        details=_held(task, held),
    )


def locked(lock: reviews.LockRow) -> StateConflict:
    """Return the error for what stands still (WK-K1)."""
    what = "the room" if lock.task is None else "the task"
    note = "" if lock.note is None else f": {lock.note}"
    return StateConflict(
        f"{what} is locked ({lock.reason}){note}",
        code="lock-active",
        hint="tfx lease unlock",
        details={"lock_id": lock.id, "reason": lock.reason, "set_by": lock.set_by},
    )


def _wrong_kind(task: TaskRow, review: reviews.ReviewRow) -> AccessDenied:
    return AccessDenied(
        "a review gives the right to a verdict, not to change the work",
        code="lease-kind",
        details={"task": task.number, "review_id": review.id},
    )


def _held(task: TaskRow, held: LeaseRow) -> dict[str, JsonValue]:
    return {
        "task": task.number,
        "holder": held.agent,
        "lease_id": held.id,
        "epoch": held.epoch,
        "expires_at_ms": held.expires_at_ms,
    }
