"""What events of occupancy and invocations carry.

Knows neither tables nor rules (event-log.md §3). Everything a replay needs is in it: the process
of a holder, and why one was evicted (EV-P7, EV-B10).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.store.body import Body
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


class Holder(Body, frozen=True):
    """The process that holds a seat (EV-B5).

    Where it cannot be looked at, it counts for `ttl_ms` after its last sign of life.
    """

    boot_id: str
    host: str
    pid: int
    pid_namespace: str
    start_token: str
    ttl_ms: int


class Evicted(Body, frozen=True):
    """Who was taken over, on which evidence, and how old its last beat was."""

    beat_age_ms: int
    evidence: str
    holder: Holder
    id: str


class ReceiverHeld(Body, frozen=True):
    """A receiver is held for the delivery of a turn; on a takeover with who was evicted."""

    agent: str
    hold: str
    holder: Holder
    until_ms: int
    attempt: int | None = None
    evicted: Evicted | None = None
    message: str | None = None


class ReceiverReleased(Body, frozen=True):
    """A hold ended without a successor; `evicted` when its holder did not end it."""

    agent: str
    hold: str
    reason: str
    evicted: Evicted | None = None


class TerminalOpened(Body, frozen=True):
    """A person took an agent's session; with who was evicted for it."""

    agent: str
    holder: Holder
    terminal: str
    evicted: Evicted | None = None


class TerminalEnded(Body, frozen=True):
    """A terminal was closed or lost; `evicted` when its holder did not close it."""

    agent: str
    reason: str
    terminal: str
    evicted: Evicted | None = None


class AgentBusy(Body, frozen=True):
    """An invocation runs in an agent's terminal; with who was evicted for it."""

    agent: str
    holder: Holder
    invocation: str
    evicted: Evicted | None = None


class AgentIdle(Body, frozen=True):
    """That invocation occupies the agent no more."""

    agent: str
    invocation: str
    reason: str
    evicted: Evicted | None = None


class InvocationStarted(Body, frozen=True):
    """A process runs for an agent; `task` is the task's stream."""

    agent: str
    holder: Holder
    id: str
    invocation_kind: str
    task: int | None = None
    title: str | None = None
    trace_id: str | None = None


class InvocationFinished(Body, frozen=True):
    """It ended by its own word; late when it had been declared lost."""

    outcome: str
    error: str | None = None
    is_late: bool = False
    summary: str | None = None


class InvocationLost(Body, frozen=True):
    """It ended without a word; how old its last beat was is told, the beat itself is no event."""

    beat_age_ms: int
    evidence: str


class InvocationNotified(Body, frozen=True):
    """Somebody told of its end, and nobody else will."""

    by: str


OCCUPANCY_BODIES: Final[Mapping[Kind, type[Body]]] = MappingProxyType(
    {
        Kind.RECEIVER_HELD: ReceiverHeld,
        Kind.RECEIVER_TAKEN_OVER: ReceiverHeld,
        Kind.RECEIVER_RELEASED: ReceiverReleased,
        Kind.TERMINAL_OPENED: TerminalOpened,
        Kind.TERMINAL_CLOSED: TerminalEnded,
        Kind.TERMINAL_LOST: TerminalEnded,
        Kind.AGENT_BUSY: AgentBusy,
        Kind.AGENT_IDLE: AgentIdle,
        Kind.INVOCATION_STARTED: InvocationStarted,
        Kind.INVOCATION_FINISHED: InvocationFinished,
        Kind.INVOCATION_LOST: InvocationLost,
        Kind.INVOCATION_NOTIFIED: InvocationNotified,
    }
)
