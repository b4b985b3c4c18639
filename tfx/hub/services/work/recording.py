"""A refusal is a decision too: it becomes an event of the task and is raised then (WK-K6).

Knows no rule; `decisions` and the services refuse.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    InvalidRequest,
    StateConflict,
    TfxError,
)
from tfx.hub.models import HUB
from tfx.hub.services.work import people
from tfx.hub.services.work.decisions import locked
from tfx.hub.store import leases, reviews, tasks
from tfx.hub.store.work_bodies import ClaimDenied

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.hub.services.work.people import Worker, Working
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

T = TypeVar("T")

_RECORDED: Final = (AccessDenied, StateConflict, AgentUnavailable)


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
            route=_route_of(error),
            session=who.session,
            verb=verb,
        )
        tasks.deny(tx, task, body, who.actor)
        return Refused(error)


def _route_of(error: TfxError) -> str | None:
    """Return where a duplicate was sent to."""
    route = error.details.get("route")
    return route if isinstance(route, str) else None


def _unproven(tx: Tx, asked: Asked, error: AccessDenied) -> Refused:
    """Record the refusal of an actor; a lock comes first, whoever asks (WK-K1, WK-K6)."""
    request = asked.request
    number: int | None = getattr(request, "task", None)
    task = None
    if number is not None:
        with contextlib.suppress(InvalidRequest):  # the first refusal is told, not the second
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
