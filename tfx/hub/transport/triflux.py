"""triflux's four `/bridge` paths, in its shapes, for its clients (H-32).

Maps them to operations; unknown fields are ignored here, everything else is refused as elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, TypeVar, cast

import msgspec
from msgspec import Meta, field

from tfx.errors import InvalidRequest
from tfx.hub.models import AgentId, Caller, MessageType, Topic
from tfx.hub.transport.http import Post
from tfx.hub.transport.json_text import decode
from tfx.hub.transport.posts import Handler, end
from tfx.hub.transport.replies import Receive, Send, reply, succeed
from tfx.hub.wire.agents import DeregisterRequest, RegisterRequest
from tfx.hub.wire.fields import AgentName, IdText, TopicText, empty_object
from tfx.hub.wire.messages import AckRequest, Message, PollRequest, PollResult, PublishRequest

T = TypeVar("T", bound=msgspec.Struct)

PREFIX = "/bridge/"
_GRACE_S = 120
_LEAST_LEASE_MS, _MOST_LEASE_MS = 10_000, 7_200_000
_RESULT_TTL_MS = 3_600_000


class _Register(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: AgentName
    cli: Annotated[str, Meta(min_length=1, max_length=64)]
    timeout_sec: Annotated[int, Meta(ge=1, le=7_200)] = 600
    topics: tuple[TopicText, ...] = ()
    capabilities: tuple[IdText, ...] = ()
    metadata: msgspec.Raw = field(default_factory=empty_object)


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: AgentName
    topic: TopicText = "task.result"
    payload: msgspec.Raw = field(default_factory=empty_object)
    trace_id: IdText | None = None
    correlation_id: IdText | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: AgentName
    topics: tuple[TopicText, ...] = ()
    max_messages: Annotated[int, Meta(ge=1, le=100)] = 10


class _Deregister(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: AgentName


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message in triflux's keys."""

    id: str
    type: MessageType
    from_agent: AgentId
    to_agent: str
    topic: Topic
    priority: int
    ttl_ms: int
    created_at_ms: int
    expires_at_ms: int
    correlation_id: str | None
    trace_id: str
    payload: msgspec.Raw
    status: str
    attempt: int


def bridge(handlers: Mapping[str, Handler]) -> dict[str, Post]:
    """Return the four paths, bound to the handlers of the operations they stand for."""

    async def register(caller: Caller, body: bytes, _receive: Receive, send: Send) -> None:
        asked = _decoded(body, _REGISTER)
        lease_ms = (asked.timeout_sec + _GRACE_S) * 1000
        request = RegisterRequest(
            agent_id=asked.agent_id,
            cli=asked.cli,
            capabilities=asked.capabilities or ("code",),
            topics=asked.topics,
            heartbeat_ttl_ms=max(_LEAST_LEASE_MS, min(lease_ms, _MOST_LEASE_MS)),
            metadata=asked.metadata,
        )
        await reply(send, 200, succeed(await handlers["register"](caller, request)))

    async def result(caller: Caller, body: bytes, _receive: Receive, send: Send) -> None:
        asked = _decoded(body, _RESULT)
        request = PublishRequest(
            sender=asked.agent_id,
            to=f"topic:{asked.topic}",
            topic=asked.topic,
            payload=asked.payload,
            ttl_ms=_RESULT_TTL_MS,
            trace_id=asked.trace_id,
            correlation_id=asked.correlation_id,
        )
        await reply(send, 200, succeed(await handlers["publish"](caller, request)))

    async def context(caller: Caller, body: bytes, receive: Receive, send: Send) -> None:
        asked = _decoded(body, _CONTEXT)
        request = PollRequest(
            agent_id=asked.agent_id,
            wait_ms=0,
            max_messages=asked.max_messages,
            include_topics=asked.topics,
        )
        claimed = cast("PollResult", await handlers["poll_messages"](caller, request))
        messages = [_as_triflux(message) for message in claimed.messages]
        gone = await _hung_up(receive)
        await reply(send, 200, succeed({"messages": messages, "count": len(messages)}))
        # its client never acks; of one that hung up the claim runs out and the mail comes again
        if messages and not gone:
            ids = tuple(message.id for message in messages)
            await handlers["ack"](caller, AckRequest(agent_id=asked.agent_id, message_ids=ids))

    async def deregister(caller: Caller, body: bytes, _receive: Receive, send: Send) -> None:
        asked = _decoded(body, _DEREGISTER)
        await handlers["deregister"](caller, DeregisterRequest(agent_id=asked.agent_id))
        await reply(send, 200, succeed({"agent_id": asked.agent_id, "status": "offline"}))

    return {
        f"{PREFIX}register": register,
        f"{PREFIX}result": result,
        f"{PREFIX}context": context,
        f"{PREFIX}deregister": deregister,
    }


_REGISTER = msgspec.json.Decoder(_Register)
_RESULT = msgspec.json.Decoder(_Result)
_CONTEXT = msgspec.json.Decoder(_Context)
_DEREGISTER = msgspec.json.Decoder(_Deregister)


def _decoded(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    request = decode(body, decoder, ())
    payload = getattr(request, "payload", None) or getattr(request, "metadata", None)
    if payload is not None and not bytes(payload).lstrip().startswith(b"{"):
        name = "payload" if hasattr(request, "payload") else "metadata"
        raise InvalidRequest(f"{name} must be an object", details={"field": name})
    return request


def _as_triflux(message: Message) -> _Message:
    return _Message(
        id=message.message_id,
        type=message.type,
        from_agent=message.sender,
        to_agent=message.to,
        topic=message.topic,
        priority=message.priority,
        ttl_ms=message.expires_at_ms - message.created_at_ms,
        created_at_ms=message.created_at_ms,
        expires_at_ms=message.expires_at_ms,
        correlation_id=message.correlation_id,
        trace_id=message.trace_id,
        payload=message.payload,
        status="delivered",
        attempt=message.attempt,
    )


async def _hung_up(receive: Receive) -> bool:
    watch = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    gone = watch.done()
    await end(watch)
    return gone
