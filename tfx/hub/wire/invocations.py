"""Wire types of invocations: start, beat, finish, probe, notify, list.

They are for people and diagnosis; nothing is refused because of one (EV-I1).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tfx.core.identity import Liveness
from tfx.hub.models import AgentId, LeaseId, TraceId
from tfx.hub.occupancy_models import Evidence, InvocationKind, InvocationState, Outcome
from tfx.hub.wire.agents import ProcessFacts
from tfx.hub.wire.fields import (
    AgentName,
    IdText,
    Mutation,
    PageSize,
    Repeatable,
    Request,
    Response,
    ShortText,
    Whole,
)
from tfx.hub.wire.occupancy import SeatTtlMs
from tfx.hub.wire.work import Room, TaskNumber

ShortTitle = Annotated[str, Meta(min_length=1, max_length=200)]


class InvocationStartRequest(Mutation, frozen=True, kw_only=True):
    """Report that a process runs for an agent; one of kind `terminal` keeps the agent busy.

    A title is shown to everybody: neither prompts nor secrets belong into it.
    """

    agent_id: AgentName
    kind: InvocationKind
    process: ProcessFacts
    ttl_ms: SeatTtlMs = 600_000
    title: ShortTitle | None = None
    trace_id: IdText | None = None
    room: Room | None = None
    task: TaskNumber | None = None


class InvocationStartResult(Response, frozen=True, kw_only=True):
    """The invocation; its id is what beats and the finish name."""

    invocation_id: LeaseId
    agent_id: AgentId
    started_at_ms: int


class InvocationBeatRequest(Repeatable, frozen=True, kw_only=True):
    """Say that an invocation still runs."""

    invocation_id: IdText


class InvocationBeatResult(Response, frozen=True, kw_only=True):
    """It counts as running until then, should its process become unreadable."""

    invocation_id: LeaseId
    until_ms: int
    server_time_ms: int


class InvocationFinishRequest(Mutation, frozen=True, kw_only=True):
    """Report how an invocation ended; accepted and marked late after it was declared lost."""

    invocation_id: IdText
    outcome: Outcome
    summary: ShortText | None = None
    error: ShortText | None = None


class InvocationFinishResult(Response, frozen=True, kw_only=True):
    """How it ended: by the first report, whatever a later one says."""

    invocation_id: LeaseId
    outcome: Outcome
    is_late: bool
    ended_at_ms: int


class InvocationNotifyRequest(Mutation, frozen=True, kw_only=True):
    """Ask to be the one who tells of the end of an invocation."""

    invocation_id: IdText
    by: AgentName


class InvocationNotifyResult(Response, frozen=True, kw_only=True):
    """`won` for exactly one; the others are told who it is (EV-I3)."""

    invocation_id: LeaseId
    won: bool
    notified_by: AgentId
    notified_at_ms: int


class ProbeRequest(Repeatable, frozen=True, kw_only=True):
    """Look at the process of everything that is recorded as running."""


class ProbeResult(Response, frozen=True, kw_only=True):
    """How many were looked at, and which are lost from now on."""

    looked_at: int
    lost: tuple[LeaseId, ...]


class InvocationsRequest(Request, frozen=True, kw_only=True):
    """List invocations, newest first: of an agent, of a task of a room, of a state."""

    agent_id: AgentName | None = None
    room: Room | None = None
    task: TaskNumber | None = None
    state: InvocationState | None = None
    before: Whole | None = None
    limit: PageSize = 50


class InvocationView(Response, frozen=True, kw_only=True):
    """One invocation; what is known of its process only while it is recorded as running."""

    seq: int
    invocation_id: LeaseId
    kind: InvocationKind
    agent_id: AgentId
    state: InvocationState
    title: str | None
    trace_id: TraceId | None
    room: str | None
    task: int | None
    host: str
    pid: int
    liveness: Liveness | None
    beat_age_ms: int | None
    started_at_ms: int
    ended_at_ms: int | None
    is_late: bool
    outcome: Outcome | None
    summary: str | None
    error: str | None
    evidence: Evidence | None
    notified_by: AgentId | None
    notified_at_ms: int | None


class InvocationsResult(Response, frozen=True, kw_only=True):
    """A page of invocations; `next_before` continues it."""

    invocations: tuple[InvocationView, ...]
    next_before: int | None
