"""What was decided is an event: a refusal, and a request with a key that changed nothing.

Knows no rule; `decisions` and the services refuse (WK-K6, EV-L7).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    AuthenticationRequired,
    InvalidRequest,
    StateConflict,
    TfxError,
)
from tfx.hub.models import HUB
from tfx.hub.services.work import people
from tfx.hub.services.work.decisions import locked
from tfx.hub.store import leases, reviews, runs, tasks
from tfx.hub.store.denials import Denial
from tfx.hub.store.work_bodies import ClaimDenied

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.hub.models import StreamNo
    from tfx.hub.services.work.people import Worker, Working
    from tfx.hub.store.reviews import LockRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

T = TypeVar("T")

_RECORDED: Final = (AccessDenied, AuthenticationRequired, StateConflict, AgentUnavailable)
_A_DECISION: Final = "bad-transition"
"""What else is malformed is no decision about the task."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal, raised after the commit of its event; None where nothing could have one."""

    error: TfxError
    denial: Denial | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request about a task or a room, before it is known who asks."""

    request: Working
    verb: str
    guarded: bool


async def decide(store: Store, command: Callable[[Tx], T | Refused], asked: Asked) -> T:
    """Run a command; a refusal that it returns becomes an event and is raised after the commit.

    So does what it raises for an actor who cannot be proven: it has appended nothing then.
    """

    def whole(tx: Tx) -> T | Refused:
        try:
            result = command(tx)
        except (AccessDenied, AuthenticationRequired) as error:
            result = _unproven(tx, asked, error)
        if isinstance(result, Refused) and result.denial is not None:
            store.denials.keep(tx, result.denial)
        return result

    result = await store.write(whole)
    if isinstance(result, Refused):
        raise result.error
    return result


async def refuse(store: Store, asked: Asked, error: AccessDenied) -> None:
    """Make an event of what was refused before its operation was called; raises nothing of it."""

    def command(tx: Tx) -> None:
        denial = _unproven(tx, asked, error).denial
        if denial is not None:
            store.denials.keep(tx, denial)

    await store.write(command)


def recorded(
    tx: Tx,
    task: TaskRow,
    who: Worker,
    verb: str,
    *,
    guarded: bool,
    work: Callable[[], T],
    told: Callable[[T], str | None] | None = None,
) -> T | Refused:
    """Return what `work` returns; what it refuses becomes an event of the task (WK-K6).

    `work` must check before it appends: a refusal rolls nothing back. When `guarded` it is
    refused while the task or its room is locked. When it appended nothing that carries the key of
    the request, the key is noted with what `told` names of the answer (EV-L7).
    """
    stopped = reviews.lock_over(tx, task.room, task.stream) if guarded else None
    try:
        if stopped is not None:
            raise locked(stopped)
        answer = work()
    except (*_RECORDED, InvalidRequest) as error:
        if isinstance(error, InvalidRequest) and error.reason != _A_DECISION:
            raise
        return refusal(tx, error, who, verb, task=task, lock=stopped)
    note(tx, verb, task=task, result=None if told is None else told(answer))
    return answer


def note(
    tx: Tx,
    verb: str,
    *,
    task: TaskRow | None = None,
    lock: LockRow | None = None,
    result: str | None = None,
) -> None:
    """Keep the key of a request that changed nothing, with the id it was answered with (EV-L7).

    It is an event of the task, else of the lock, else of the hub's own run.
    """
    home = _home(tx, task, lock)
    if home is not None:
        tx.note(*home, verb, result)


def refusal(
    tx: Tx,
    error: TfxError,
    who: Worker,
    verb: str,
    *,
    task: TaskRow | None = None,
    lock: LockRow | None = None,
) -> Refused:
    """Return a refusal of somebody who is proven, as an event of the task or of the lock."""
    home = _home(tx, task, lock)
    held = None if task is None else leases.active(tx, task.stream)
    body = ClaimDenied(
        agent=who.agent,
        code=error.reason,
        lease=None if held is None else held.id,
        lock=None if lock is None else lock.id,
        reason=error.message,
        route=_route_of(error),
        session=who.session,
        verb=verb,
    )
    return Refused(error, None if home is None else Denial(*home, body, who.actor))


def _home(tx: Tx, task: TaskRow | None, lock: LockRow | None) -> tuple[str, StreamNo] | None:
    if task is not None:
        return task.name, task.stream
    if lock is not None:
        return lock.name, lock.stream
    return runs.home(tx)


def _route_of(error: TfxError) -> str | None:
    """Return where a duplicate was sent to."""
    route = error.details.get("route")
    return route if isinstance(route, str) else None


def _unproven(tx: Tx, asked: Asked, error: AccessDenied | AuthenticationRequired) -> Refused:
    """Record the refusal of an actor; a lock comes first, whoever asks (WK-K1, WK-K6)."""
    request = asked.request
    room = None
    with contextlib.suppress(InvalidRequest):  # the first refusal is told, not the second
        room = people.room_of(tx, request)
    task = _asked_about(tx, request, room)
    stopped = None
    if room is not None and (task is not None or getattr(request, "task", None) is None):
        stopped = reviews.lock_over(tx, room, None if task is None else task.stream)
    told: TfxError = error if stopped is None or not asked.guarded else locked(stopped)
    home = _home(tx, task, stopped)
    held = None if task is None else leases.active(tx, task.stream)
    body = ClaimDenied(
        agent=request.agent_id,
        code=told.reason,
        lease=None if held is None else held.id,
        lock=stopped.id if stopped is not None and asked.guarded else None,
        reason=told.message,
        session=request.session,
        verb=asked.verb,
    )
    # the name in the request is not proven
    return Refused(told, None if home is None else Denial(*home, body, HUB))


def _asked_about(tx: Tx, request: Working, room: str | None) -> TaskRow | None:
    """Return the task that a request names, by its number or by its lease, unless it is deleted."""
    number: int | None = getattr(request, "task", None)
    lease_id: str | None = getattr(request, "lease_id", None)
    found = None
    if number is not None:
        found = None if room is None else tasks.find(tx, room, number)
    elif lease_id is not None:
        lease = leases.find(tx, lease_id)
        found = None if lease is None else tasks.by_stream(tx, lease.task)
    return None if found is None or found.deleted_at_ms is not None else found
