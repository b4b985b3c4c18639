"""Wire types of looking: status, one message, dead letters, traces, the log.

Replay and purge stand here too, beside what they act on.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field

from tfx.hub.models import (
    AgentId,
    Cursor,
    DeadReason,
    LeaseId,
    MessageId,
    MessageType,
    StatusScope,
    Topic,
    TraceId,
)
from tfx.hub.wire.agents import AgentView
from tfx.hub.wire.fields import (
    DEFAULT_MAX_BYTES,
    AfterCursor,
    AgentName,
    IdText,
    MaxBytes,
    Mutation,
    PageSize,
    Request,
    Response,
    TopicText,
    TtlMs,
    Whole,
)
from tfx.hub.wire.messages import Owed


class StatusRequest(Request, frozen=True, kw_only=True):
    """Ask for one scope; scope agent without an id lists agents."""

    scope: StatusScope = StatusScope.HUB
    agent_id: AgentName | None = None
    trace_id: IdText | None = None
    include_metrics: bool = True
    after: IdText | None = None
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class SchemaView(Response, frozen=True, kw_only=True):
    """Which schema the hub runs on."""

    version: int
    hash: str
    fold: int


class HubView(Response, frozen=True, kw_only=True):
    """The hub itself."""

    state: str
    uptime_ms: int
    instance: str
    version: str
    pid: int
    host: str
    port: int
    url: str
    durability: str
    database: str
    log: str
    schema: SchemaView
    warnings: tuple[str, ...]


class Timing(Response, frozen=True, kw_only=True):
    """Percentiles of the last five minutes' samples; null without a sample (H-75)."""

    samples: int
    p50_ms: float | None
    p95_ms: float | None


class QueuesView(Response, frozen=True, kw_only=True):
    """What stands where now, and totals since the file was made."""

    queued: int
    claimed: int
    dead_letters: int
    pending_human_requests: int
    owed_answers: int
    open_waits: int
    totals: dict[str, int]
    delivery: Timing | None
    ask_wait: Timing | None
    commit: Timing | None
    timeout_rate: float | None
    wal_bytes: int
    database_bytes: int


class TraceItem(Response, frozen=True, kw_only=True):
    """One event of a trace; `cause` is the message that it answers, hands on or replays."""

    seq: int
    at_ms: int
    kind: str
    actor: AgentId
    message_id: MessageId | None
    request_id: str | None
    receiver: str | None
    topic: Topic | None
    type: MessageType | None
    cause: MessageId | None
    reason: str | None
    attempt: int | None
    task: int | None
    status: str | None
    lease_id: str | None
    epoch: int | None
    agent: str | None
    code: str | None
    invocation_id: LeaseId | None


class TraceRequest(Request, frozen=True, kw_only=True):
    """Ask for a trace; `after` is the last seq seen."""

    trace_id: IdText
    after: Whole = 0
    limit: PageSize = 200


class TraceResult(Response, frozen=True, kw_only=True):
    """The trace in log order (H-60); `next_after` continues it."""

    trace_id: TraceId
    items: tuple[TraceItem, ...]
    next_after: int | None


class StatusResult(Response, frozen=True, kw_only=True):
    """What was asked for; the rest is null (triflux's keys)."""

    hub: HubView | None = None
    queues: QueuesView | None = None
    sessions: int | None = None
    agent: AgentView | None = None
    agents: tuple[AgentView, ...] | None = None
    owes: tuple[Owed, ...] | None = None
    awaits: tuple[Owed, ...] | None = None
    trace: TraceResult | None = None
    next_after: str | None = None
    server_time_ms: int


class ReadMessageRequest(Request, frozen=True, kw_only=True):
    """Read a payload from a byte offset."""

    message_id: IdText
    offset: Whole = 0
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class DeliveryView(Response, frozen=True, kw_only=True):
    """Where a message stands with one receiver."""

    receiver: str
    state: str
    attempts: int
    reason: str | None
    closed_at_ms: int | None


class ReadMessageResult(Response, frozen=True, kw_only=True):
    """A piece of the payload as text, and where the message stands."""

    message_id: MessageId
    type: MessageType
    sender: AgentId = field(name="from")
    to: str
    topic: Topic
    trace_id: TraceId
    created_at_ms: int
    expires_at_ms: int
    text: str
    offset: int
    next_offset: int | None
    payload_bytes: int
    deliveries: tuple[DeliveryView, ...]
    answered_by: MessageId | None


class DeadLettersRequest(Request, frozen=True, kw_only=True):
    """List dead letters, newest last; `after` is the last seq seen."""

    agent_id: AgentName | None = None
    reason: DeadReason | None = None
    topic: TopicText | None = None
    after: Whole = 0
    limit: PageSize = 50
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class DeadLetter(Response, frozen=True, kw_only=True):
    """One message that did not reach one receiver."""

    seq: int
    message_id: MessageId
    sender: AgentId = field(name="from")
    receiver: str
    topic: Topic
    type: MessageType
    reason: DeadReason
    last_error: str | None
    attempts: int
    failed_at_ms: int
    trace_id: TraceId
    replayed_as: MessageId | None


class DeadLettersResult(Response, frozen=True, kw_only=True):
    """A page of dead letters; `next_after` continues it."""

    dead_letters: tuple[DeadLetter, ...]
    next_after: int | None


class DeadReplayRequest(Mutation, frozen=True, kw_only=True):
    """Send a dead letter again; `receiver` chooses one of several, or another agent by `to`."""

    message_id: IdText
    receiver: IdText | None = None
    ttl_ms: TtlMs = 300_000


class DeadReplayResult(Response, frozen=True, kw_only=True):
    """The new message of the same trace."""

    message_id: MessageId
    replays: MessageId
    fanout_count: int
    expires_at_ms: int


class DeadPurgeRequest(Mutation, frozen=True, kw_only=True):
    """Give up one dead letter, or all of a filter."""

    message_id: IdText | None = None
    agent_id: AgentName | None = None
    reason: DeadReason | None = None
    older_than_ms: Whole | None = None


class DeadPurgeResult(Response, frozen=True, kw_only=True):
    """How many are purged."""

    purged: int


class EventsRequest(Request, frozen=True, kw_only=True):
    """Read the log after a cursor; none starts at the oldest kept event, `tail` at the end."""

    after: AfterCursor | None = None
    tail: bool = False
    limit: PageSize = 100
    max_bytes: MaxBytes = 262_144
    wait_ms: Annotated[int, Meta(ge=0, le=45_000)] = 0


class EventView(Response, frozen=True, kw_only=True):
    """One event as any client may see it: no secrets, no human answers (H-46).

    `payload` is null where there is none or it is not shown.
    """

    cursor: Cursor
    seq: int
    at_ms: int
    kind: str
    stream: int
    actor: AgentId
    body: msgspec.Raw
    payload: msgspec.Raw


class EventsResult(Response, frozen=True, kw_only=True):
    """A page of events; continue with `next_cursor`, `more` says whether there is more now."""

    events: tuple[EventView, ...]
    next_cursor: Cursor
    more: bool
