"""The rules of posting: who receives, who may answer, what is full.

Shared by the services that send; knows neither wire types nor who waits.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    NotFound,
    StateConflict,
    UnknownRecipient,
)
from tfx.hub.models import (
    HUB_PREFIX,
    OPERATOR,
    TOPIC_PREFIX,
    DeadReason,
    MessageType,
    agent_id,
    topic_name,
)
from tfx.hub.services.shapes import members
from tfx.hub.store import messages

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Limits
    from tfx.hub.store.events import Event
    from tfx.hub.store.messages import Draft, Request
    from tfx.hub.store.tally import Tally
    from tfx.hub.store.tx import Op, Tx

NAMES_SHOWN = 20


def recipient_of(to: str) -> str:
    """Return an agent or `topic:X` as it was named; raises InvalidRequest `bad-id`."""
    if to.startswith(TOPIC_PREFIX):
        topic_name(to[len(TOPIC_PREFIX) :], "to")
        return to
    return agent_id(to, "to")


def refuse_when_full(tally: Tally, limits: Limits, sender: AgentId, recipient: str) -> None:
    """Raise AgentUnavailable when hub, inbox or lane hold too many open messages (EV-Q9)."""
    for count, limit, code in (
        (tally.queued + tally.claimed, limits.hub_open, "hub-full"),
        (tally.open_for(recipient), limits.inbox_open, "inbox-full"),
        (tally.lanes.get((sender, recipient), 0), limits.lane_open, "lane-full"),
    ):
        if count >= limit:
            raise AgentUnavailable(
                f"{count} messages are open already ({code}); {limit} are allowed",
                code=code,
                hint="poll and ack, or wait until they expire",
                details={"open": count, "limit": limit},
            )


def post(
    tx: Tx, draft: Draft, op: Op | None, *, deferred: bool, actor: AgentId | None = None
) -> Event:
    """Find who receives a message and post it (H-55, H-56)."""
    to = draft.recipient
    if to.startswith(TOPIC_PREFIX):
        listening = messages.subscribers(tx, to[len(TOPIC_PREFIX) :])
        receivers = [name for name in listening if name != draft.sender]
        if receivers:
            return messages.post(tx, draft, receivers, op, actor=actor)
        if deferred:
            return messages.post(tx, draft, [to], op, actor=actor)
        return messages.post(tx, draft, [], op, dead=(to, DeadReason.NO_SUBSCRIBER), actor=actor)
    if not deferred and to != OPERATOR and not messages.is_known(tx, to):
        raise _unknown(to, messages.known_agents(tx))
    return messages.post(tx, draft, [to], op, actor=actor)


def reply(tx: Tx, draft: Draft, correlation_id: str, op: Op | None) -> Event:
    """Post the one answer of a request (EV-R1, EV-R2)."""
    request = messages.find_request(tx, correlation_id)
    if request is None:
        raise NotFound(
            f"no ask or handoff has the correlation id {correlation_id!r}",
            code="unknown-request",
            hint="send it without a correlation id",
        )
    if draft.sender != request.recipient or draft.recipient != request.sender:
        raise AccessDenied(
            f"only {request.recipient} may answer this request, and only to {request.sender}",
            code="actor-mismatch",
        )
    if request.answer is not None:
        raise StateConflict(
            "the request has its answer",
            code="already-answered",
            details={"message_id": request.answer, "state": request.settled},
        )
    answer = messages.Draft(
        id=draft.id,
        type=MessageType.RESPONSE,
        sender=draft.sender,
        recipient=draft.recipient,
        topic=draft.topic,
        priority=draft.priority,
        ttl_ms=draft.ttl_ms,
        payload=draft.payload,
        correlation_id=request.correlation_id or request.id,
        trace_id=request.trace_id or request.id,
        cause=request.id,
    )
    outcome = _outcome(request, draft.payload)
    return messages.post(tx, answer, [draft.recipient], op, answers=request, outcome=outcome)


def _outcome(request: Request, payload: bytes) -> str:
    if request.type != MessageType.HANDOFF:
        return "answered"
    return "declined" if members(payload).get("accepted") is False else "accepted"


def _unknown(name: str, known: list[str]) -> UnknownRecipient:
    near = sorted(
        known,
        key=lambda each: difflib.SequenceMatcher(None, each, name).ratio(),
        reverse=True,
    )[:NAMES_SHOWN]
    what = "reserved for the hub" if name.startswith(HUB_PREFIX) else "not registered"
    return UnknownRecipient(
        f"{name} is {what}" + (f"; known: {', '.join(near)}" if near else ""),
        hint="with deferred (--deferred) the message waits until the agent registers",
        details={"recipient": name, "known": list(near)},
    )
