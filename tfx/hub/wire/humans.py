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
    HumanKind,
    HumanRequestId,
    HumanState,
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
)


class HumanInputRequest(Mutation, frozen=True, kw_only=True):
    """Open a request; `deadline_ms` is relative to the hub's clock."""

    requester_agent: AgentName
    kind: HumanKind
    prompt: LongText
    requested_schema: JsonObject
    deadline_ms: Annotated[int, Meta(ge=1_000, le=30 * 86_400_000)]
    default_action: DefaultAction
    channel_preference: ChannelPreference = ChannelPreference.TERMINAL
    correlation_id: IdText | None = None
    trace_id: IdText | None = None


class HumanInputResult(Response, frozen=True, kw_only=True):
    """The request is open; `deadline_ms` is absolute now."""

    request_id: HumanRequestId
    state: HumanState
    deadline_ms: int


class HumanListRequest(Request, frozen=True, kw_only=True):
    """List pending requests, or with `include_closed` all that are kept."""

    include_closed: bool = False
    requester_agent: AgentName | None = None
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
