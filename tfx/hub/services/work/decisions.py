"""The fence before every change of a task: lock, actor, lease, kind, holder, missing (WK-K1).

A refusal is a decision too: it is recorded and then raised (WK-K6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from tfx.errors import AccessDenied, AgentUnavailable, NotFound, StateConflict, TfxError
from tfx.hub.models import HUB
from tfx.hub.services.work import people
from tfx.hub.store import leases, reviews, tasks
from tfx.hub.store.work_bodies import ClaimDenied
from tfx.hub.work_models import LeaseState, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.errors import JsonValue
    from tfx.hub.services.work.people import Worker, Working
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx
    from tfx.hub.wire.work import Fenced

T = TypeVar("T")

OWNED: Final = frozenset(
    {TaskStatus.ASSIGNED, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.IN_REVIEW}
)
CLOSED: Final = frozenset({TaskStatus.DONE, TaskStatus.CANCELLED})
_RECORDED: Final = (AccessDenied, StateConflict, AgentUnavailable)


@dataclass(frozen=True, slots=True)
class Expected:
    """The lease that the author of a change saw: its id and epoch, or that there was none."""

    lease_id: str | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal that was recorded and is raised after the commit."""

    error: TfxError


@dataclass(frozen=True, slots=True)
class Asked:
    """A request about a task, before it is known who asks."""

    request: Working
    verb: str
    guarded: bool


async def decide(
    store: Store, command: Callable[[Tx], T | Refused], asked: Asked | None = None
) -> T:
    """Run a command; a refusal that it recorded is raised after the commit.

    What it raises for an actor who cannot be proven is recorded here, on the task that was `asked`
    about: the command has appended nothing then.
    """

    def whole(tx: Tx) -> T | Refused:
        try:
            return command(tx)
        except AccessDenied as error:
            if asked is None:
                raise
            return _unproven(tx, asked, error)

    result = await store.write(whole)
    if isinstance(result, Refused):
        raise result.error
    return result


def recorded(
    tx: Tx, task: TaskRow, who: Worker, verb: str, *, guarded: bool, work: Callable[[], T]
) -> T | Refused:
    """Return what `work` returns; what it refuses becomes an event of the task (WK-K6).

    `work` must check before it appends: a refusal rolls nothing back. When `guarded` it is
    refused while the task or its room is locked.
    """
    stopped = reviews.lock_over(tx, task.room, task.stream) if guarded else None
    try:
        if stopped is not None:
            raise locked(stopped)
        return work()
    except _RECORDED as error:
        held = leases.active(tx, task.stream)
        body = ClaimDenied(
            agent=who.agent,
            code=error.reason,
            lease=None if held is None else held.id,
            lock=None if stopped is None else stopped.id,
            reason=error.message,
            session=who.session,
            verb=verb,
        )
        tasks.deny(tx, task, body, who.actor)
        return Refused(error)


def _unproven(tx: Tx, asked: Asked, error: AccessDenied) -> Refused:
    """Record the refusal of an actor; a lock comes first, whoever asks (WK-K1, WK-K6)."""
    request = asked.request
    number: int | None = getattr(request, "task", None)
    task = None
    if number is not None:
        task = tasks.find(tx, people.room_of(tx, request), number)
    if task is None or task.deleted_at_ms is not None:
        raise error  # there is no task whose event it could be
    stopped = reviews.lock_over(tx, task.room, task.stream) if asked.guarded else None
    told: TfxError = error if stopped is None else locked(stopped)
    held = leases.active(tx, task.stream)
    body = ClaimDenied(
        agent=request.agent_id,
        code=told.reason,
        lease=None if held is None else held.id,
        lock=None if stopped is None else stopped.id,
        reason=told.message,
        session=request.session,
        verb=asked.verb,
    )
    tasks.deny(tx, task, body, HUB)  # the name in the request is not proven
    return Refused(told)


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
    return Expected(None, None) if held is None else Expected(held.id, held.epoch)


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

    `verdict` is True for a change of status and note alone. Raises AccessDenied `actor-missing`,
    `lease-kind` or `lease-holder`, StateConflict `lease-missing`.
    """
    if who.is_operator:
        return
    if held is not None and who.agent is None:
        raise AccessDenied(
            f"task {task.number} is held by {held.agent}: only its holder may change it",
            code="actor-missing",
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


def must_hold(tx: Tx, task: TaskRow, who: Worker, held: LeaseRow) -> None:
    """Let the holder or the operator act on a lease; raises AccessDenied.

    The codes are `actor-missing`, `lease-kind` for the task's reviewer (WK-R5), `lease-holder`.
    """
    if who.is_operator or who.is_holder(held.agent, held.session):
        return
    if who.agent is None:
        raise AccessDenied(
            f"task {task.number} is held by {held.agent}",
            code="actor-missing",
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
        code="hold-active",
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
