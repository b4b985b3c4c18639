"""Wire types of asking a person (hub.md §8).

Knows nothing of deadlines' scheduling or of secrets' life.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tfx.hub.models import (
    AgentId,
    ChannelPreference,
    CorrelationId,
    DefaultAction,
    HumanAction,
    HumanKind,
    HumanRequestId,
    HumanState,
    MessageId,
    TraceId,
)
from tfx.hub.wire.fields import (
    AgentName,
    IdText,
    JsonObject,
    LongText,
    Mutation,
    PageSize,
    Request,
    Response,
    ShortText,
    empty_object,
)


class HumanInputRequest(Mutation, frozen=True, kw_only=True):
    """Open a request; `deadline_ms` is relative to the hub's clock."""

    requester_agent: AgentName
    kind: HumanKind
    prompt: LongText
    requested_schema: Annotated[JsonObject, Meta(description="JSON Schema of the answer's content")]
    deadline_ms: Annotated[int, Meta(ge=1_000, le=30 * 86_400_000, description="from now")]
    default_action: DefaultAction
    channel_preference: ChannelPreference = ChannelPreference.TERMINAL
    correlation_id: IdText | None = None
    trace_id: IdText | None = None


class HumanInputResult(Response, frozen=True, kw_only=True):
    """The request is open; `deadline_ms` is absolute now."""

    request_id: HumanRequestId
    trace_id: TraceId
    state: HumanState
    deadline_ms: int


class HumanAnswerRequest(Mutation, frozen=True, kw_only=True):
    """Answer a request; `digest` binds the answer to the question that was shown (H-66).

    `submitted_by` is triflux's and proves nothing: only the operator credential does (H-47).
    """

    request_id: IdText
    action: HumanAction
    content: JsonObject = msgspec.field(default_factory=empty_object)
    digest: Annotated[str, Meta(min_length=64, max_length=64)] | None = None
    submitted_by: ShortText | None = None


class HumanAnswerResult(Response, frozen=True, kw_only=True):
    """The request is closed; the message that tells its requester is committed with it (H-65)."""

    request_id: HumanRequestId
    new_state: HumanState
    forwarded_message_id: MessageId


class HumanWithdrawRequest(Mutation, frozen=True, kw_only=True):
    """Take a request back; only the agent that opened it may."""

    request_id: IdText
    requester_agent: AgentName


class HumanListRequest(Request, frozen=True, kw_only=True):
    """List pending requests, or with `include_closed` all that are kept."""

    include_closed: bool = False
    requester_agent: AgentName | None = None
    request_id: IdText | None = None
    after: IdText | None = None
    limit: PageSize = 100


class HumanView(Response, frozen=True, kw_only=True):
    """One request as a person sees it; `digest` binds an answer to what was shown (H-66)."""

    request_id: HumanRequestId
    requester_agent: AgentId
    kind: HumanKind
    prompt: str
    requested_schema: msgspec.Raw
    state: HumanState
    opened_at_ms: int
    deadline_ms: int
    default_action: DefaultAction
    channel_preference: ChannelPreference
    digest: str
    correlation_id: CorrelationId
    trace_id: TraceId
    closed_at_ms: int | None
    answered_by: str | None


class HumanListResult(Response, frozen=True, kw_only=True):
    """A page of requests, oldest first; `next_after` continues it."""

    requests: tuple[HumanView, ...]
    next_after: HumanRequestId | None
