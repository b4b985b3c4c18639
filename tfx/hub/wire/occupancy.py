"""Wire types of occupancy: hold a receiver, open a terminal, ask who is busy, free an agent.

Knows nothing of how life and death are judged. Clients send durations, never times (EV-B9).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tfx.hub.models import AgentId, LeaseId
from tfx.hub.occupancy_models import Tier
from tfx.hub.wire.agents import ProcessFacts
from tfx.hub.wire.fields import AgentName, IdText, Mutation, Repeatable, Request, Response, Whole
from tfx.hub.wire.seats import EvictedView, SeatView

SeatTtlMs = Annotated[int, Meta(ge=10_000, le=7_200_000)]
"""So long a holder that cannot be looked at counts after its last sign of life."""


class ReceiverHoldRequest(Mutation, frozen=True, kw_only=True):
    """Hold an agent's receiver while a turn is delivered to it.

    With `message_id` that message is claimed for the turn; it comes back when the hold ends
    without a delivery (EV-B11). `force` evicts whoever is there; it needs the operator credential.
    """

    agent_id: AgentName
    process: ProcessFacts
    ttl_ms: SeatTtlMs = 600_000
    message_id: IdText | None = None
    force: bool = False


class ReceiverHoldResult(Response, frozen=True, kw_only=True):
    """The hold; `generation` only rises, and fences what lies outside the hub."""

    agent_id: AgentId
    hold_id: LeaseId
    generation: int
    until_ms: int
    attempt: int | None
    taken_over: EvictedView | None
    server_time_ms: int


class ReceiverBeatRequest(Repeatable, frozen=True, kw_only=True):
    """Say that the holder of a receiver works."""

    agent_id: AgentName
    hold_id: IdText


class TerminalBeatRequest(Repeatable, frozen=True, kw_only=True):
    """Say that the holder of a terminal is there."""

    agent_id: AgentName
    terminal_id: IdText


class BeatResult(Response, frozen=True, kw_only=True):
    """The seat as it stands now."""

    agent_id: AgentId
    seat_id: LeaseId
    until_ms: int
    server_time_ms: int


class ReceiverReleaseRequest(Mutation, frozen=True, kw_only=True):
    """End a hold; its message is acked when it was `delivered`, else it comes back."""

    agent_id: AgentName
    hold_id: IdText
    delivered: bool = False


class ReleaseResult(Response, frozen=True, kw_only=True):
    """`released` is false when nobody had the seat any more: it is free all the same."""

    agent_id: AgentId
    released: bool


class TerminalOpenRequest(Mutation, frozen=True, kw_only=True):
    """Lock an agent for a person's terminal: no turn is delivered to it meanwhile."""

    agent_id: AgentName
    process: ProcessFacts
    ttl_ms: SeatTtlMs = 600_000


class TerminalOpenResult(Response, frozen=True, kw_only=True):
    """The lock; `beside` is who else occupies the agent, a turn in flight for one."""

    agent_id: AgentId
    terminal_id: LeaseId
    generation: int
    taken_over: EvictedView | None
    beside: tuple[SeatView, ...]
    server_time_ms: int


class TerminalCloseRequest(Mutation, frozen=True, kw_only=True):
    """Give the agent back to its mail."""

    agent_id: AgentName
    terminal_id: IdText


class BusyRequest(Request, frozen=True, kw_only=True):
    """Ask whether an agent is busy, and with what."""

    agent_id: AgentName


class BusyResult(Response, frozen=True, kw_only=True):
    """Busy while one seat is held by somebody who is not proven gone; `tier` is the first such."""

    agent_id: AgentId
    busy: bool
    tier: Tier | None
    generation: int
    seats: tuple[SeatView, ...]
    server_time_ms: int


class AgentsFreeRequest(Repeatable, frozen=True, kw_only=True):
    """Free an agent of holders that are proven gone; with `force` of every one (EV-B6).

    `generation` is the one that was seen, and force needs it: a later holder is then never evicted
    by a repetition.
    """

    agent_id: AgentName
    force: bool = False
    generation: Whole | None = None


class AgentsFreeResult(Response, frozen=True, kw_only=True):
    """Who was evicted, and who is left because nothing proves that it is gone."""

    agent_id: AgentId
    evicted: tuple[EvictedView, ...]
    left: tuple[SeatView, ...]
