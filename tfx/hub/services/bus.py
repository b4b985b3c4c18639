"""Sending a message, or the one answer to a request.

Knows no SQL and no transport; what it decides it does in one transaction of the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.models import TOPIC_PREFIX, MessageId, MessageType, TraceId, agent_id, topic_name
from tfx.hub.services import posting
from tfx.hub.services.shapes import json_object
from tfx.hub.store import messages
from tfx.hub.store.events import Posted
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.wire.messages import PublishRequest, PublishResult

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Caller, Limits, Unread
    from tfx.hub.store.events import Event
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx


class Bus:
    """The sending half of the bus."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def drain(self) -> None:
        """Answer every wait now and every later one at once (H-17)."""
        self._store.wakeups.drain()

    def unread(self, agent: AgentId) -> Unread:
        """Return what waits for an agent, from memory (H-38)."""
        return self._store.tally.unread(agent)

    async def publish(self, caller: Caller, request: PublishRequest) -> PublishResult:
        """Send a message, or with `correlation_id` the one answer to a request.

        Raises InvalidRequest, UnknownRecipient, NotFound `unknown-request`, AccessDenied
        `actor-mismatch`, StateConflict `already-answered` or `idempotency-conflict`,
        AgentUnavailable `lane-full`, `inbox-full`, `hub-full`.
        """
        del caller
        sender = agent_id(request.sender, "from")
        topic = topic_name(request.topic, "topic")
        payload = json_object(request.payload, "payload", self._limits.payload_bytes)
        recipient = posting.recipient_of(request.to)
        posting.refuse_when_full(self._store.tally, self._limits, sender, recipient)
        op = op_of("publish", request)

        def command(tx: Tx) -> PublishResult:
            before = tx.done_before(sender, op)
            if before is not None:
                return _published(before)
            draft = messages.Draft(
                id=MessageId(new_id(tx.now_ms)),
                type=MessageType.EVENT,
                sender=sender,
                recipient=recipient,
                topic=topic,
                priority=request.priority,
                ttl_ms=request.ttl_ms,
                payload=payload,
                trace_id=request.trace_id,
            )
            if request.correlation_id is not None:
                return _published(posting.reply(tx, draft, request.correlation_id, op))
            return _published(posting.post(tx, draft, op, deferred=request.deferred))

        self._store.beats.touch(sender, self._store.clock.now_ms())
        return await self._store.write(command)


def _published(event: Event) -> PublishResult:
    body = event.body
    if not isinstance(body, Posted):
        raise StateConflict("the key was used for another operation", code="idempotency-conflict")
    waiting_for_topic = body.receivers == [body.recipient] and body.recipient.startswith(
        TOPIC_PREFIX
    )
    return PublishResult(
        message_id=MessageId(body.id),
        trace_id=TraceId(body.trace_id or body.id),
        fanout_count=0 if waiting_for_topic else len(body.receivers),
        expires_at_ms=body.expires_at_ms,
    )
