"""Wire types of sending, asking, polling and acknowledging (hub.md §4 and §7).

Parameter names are triflux's; what is added is optional.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field

from tfx.hub.models import (
    AgentId,
    AskState,
    CorrelationId,
    HandoffState,
    MessageId,
    MessageType,
    NotAckedReason,
    Topic,
    TraceId,
)
from tfx.hub.wire.fields import (
    DEFAULT_MAX_BYTES,
    AgentName,
    Deferred,
    Ids,
    IdText,
    JsonObject,
    LongText,
    MaxBytes,
    Mutation,
    PriorityLevel,
    Recipient,
    References,
    Repeatable,
    Request,
    Response,
    Topics,
    TopicText,
    TtlMs,
    WaitMs,
    empty_object,
)


class PublishRequest(Mutation, frozen=True, kw_only=True):
    """Send to an agent or to `topic:X`; with `correlation_id` it answers that request."""

    sender: AgentName = field(name="from")
    to: Recipient
    topic: TopicText
    payload: JsonObject
    priority: PriorityLevel = 5
    ttl_ms: TtlMs = 300_000
    deferred: Deferred = False
    correlation_id: IdText | None = None
    trace_id: IdText | None = None


class PublishResult(Response, frozen=True, kw_only=True):
    """The message is committed."""

    message_id: MessageId
    trace_id: TraceId
    fanout_count: int
    expires_at_ms: int


class AskRequest(Mutation, frozen=True, kw_only=True):
    """Ask one agent; `await_response_ms` 0 returns a ticket at once."""

    sender: AgentName = field(name="from")
    to: AgentName
    topic: TopicText
    question: LongText
    context_refs: References = ()
    payload: JsonObject = field(default_factory=empty_object)
    priority: PriorityLevel = 5
    ttl_ms: TtlMs = 300_000
    await_response_ms: Annotated[WaitMs, Meta(description="0 returns a ticket at once")] = 0
    deferred: Deferred = False
    correlation_id: IdText | None = None
    trace_id: IdText | None = None
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class Message(Response, frozen=True, kw_only=True):
    """One message as its receiver sees it; `cut` means that `read_message` has the rest."""

    message_id: MessageId
    type: MessageType
    sender: AgentId = field(name="from")
    to: str
    topic: Topic
    priority: int
    payload: msgspec.Raw
    correlation_id: CorrelationId | None
    trace_id: TraceId
    created_at_ms: int
    expires_at_ms: int
    attempt: int
    cut: bool = False
    payload_bytes: int


class AskResult(Response, frozen=True, kw_only=True):
    """The answer, or the ticket to redeem by polling or by the same ask with its `op_id`."""

    request_message_id: MessageId
    correlation_id: CorrelationId
    trace_id: TraceId
    state: AskState
    response: Message | None = None


class HandoffRequest(Mutation, frozen=True, kw_only=True):
    """Hand a task over; the receiver accepts or declines by a reply."""

    sender: AgentName = field(name="from")
    to: AgentName
    topic: TopicText
    task: LongText
    acceptance_criteria: References = ()
    context_refs: References = ()
    priority: PriorityLevel = 5
    ttl_ms: TtlMs = 600_000
    deferred: Deferred = False
    correlation_id: IdText | None = None
    trace_id: IdText | None = None


class HandoffResult(Response, frozen=True, kw_only=True):
    """The handoff is committed; `state` follows it from there."""

    handoff_message_id: MessageId
    correlation_id: CorrelationId
    trace_id: TraceId
    state: HandoffState
    assigned_to: AgentId


class PollRequest(Mutation, frozen=True, kw_only=True):
    """Claim up to `max_messages`; `ack_ids` are applied first, `auto_ack` acks with the claim."""

    agent_id: AgentName
    wait_ms: WaitMs = 1_000
    max_messages: Annotated[int, Meta(ge=1, le=100)] = 20
    include_topics: Topics = ()
    ack_ids: Annotated[Ids, Meta(description="message ids to confirm first")] = ()
    auto_ack: Annotated[bool, Meta(description="confirm what this poll returns")] = False
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class NotAcked(Response, frozen=True, kw_only=True):
    """An id that was not acked, and why."""

    message_id: str
    reason: NotAckedReason


class Owed(Response, frozen=True, kw_only=True):
    """An ask or handoff without an answer yet (H-62); `agent` is the other side."""

    message_id: MessageId
    correlation_id: CorrelationId
    agent: AgentId
    topic: Topic
    created_at_ms: int


class PollResult(Response, frozen=True, kw_only=True):
    """What was claimed, and what is still owed or awaited."""

    messages: tuple[Message, ...]
    acked_ids: tuple[MessageId, ...]
    not_acked: tuple[NotAcked, ...]
    more: bool
    owes: tuple[Owed, ...]
    awaits: tuple[Owed, ...]
    next_poll_after_ms: int
    server_time_ms: int


class AckRequest(Repeatable, frozen=True, kw_only=True):
    """Confirm messages; valid after the visibility time-out as well (K-25)."""

    agent_id: AgentName
    message_ids: Annotated[tuple[IdText, ...], Meta(min_length=1, max_length=100)]


class AckResult(Response, frozen=True, kw_only=True):
    """Which ids are acked now (an id acked before counts) and which are not."""

    acked_ids: tuple[MessageId, ...]
    not_acked: tuple[NotAcked, ...]


class WaitRequest(Request, frozen=True, kw_only=True):
    """Wait until the agent has something to claim (H-71)."""

    agent_id: AgentName
    wait_ms: WaitMs = 45_000


class Waiting(Response, frozen=True, kw_only=True):
    """One waiting message in a summary: no payload."""

    message_id: MessageId
    type: MessageType
    sender: AgentId = field(name="from")
    topic: Topic
    priority: int


class NoticesRequest(Request, frozen=True, kw_only=True):
    """Ask what has come for an agent that no hook has told it yet (H-70)."""

    agent_id: AgentName


class WaitResult(Response, frozen=True, kw_only=True):
    """How much waits, and the first ten of it; `total` 0 after a time-out or a drain."""

    total: int
    urgent: int
    first: tuple[Waiting, ...]
    server_time_ms: int


class NoticesResult(Response, frozen=True, kw_only=True):
    """What is new since the last call, the most urgent ten of it, and how much waits in all."""

    fresh: int
    total: int
    first: tuple[Waiting, ...]
