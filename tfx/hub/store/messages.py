"""Messages and their deliveries: post, claim, return, ack, bury.

SQL and events only; who may do what, and when, is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.models import (
    HUB,
    AgentId,
    DeadReason,
    DeliveryState,
    MessageId,
    MessageType,
    StreamNo,
)
from tfx.hub.store import message_sql
from tfx.hub.store.candidate import Candidate
from tfx.hub.store.events import (
    Acked,
    Claimed,
    Dead,
    Posted,
    Purged,
    Queued,
    Returned,
)
from tfx.hub.store.kinds import Kind
from tfx.hub.store.tally import Counted, Moved
from tfx.hub.store.wakeups import Inbox, Settled

if TYPE_CHECKING:
    from tfx.hub.store.events import Event
    from tfx.hub.store.tx import Op, Tx

_ASKS: Final = frozenset({MessageType.REQUEST.value, MessageType.HANDOFF.value})


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that is about to be posted; the payload is canonical JSON."""

    id: MessageId
    type: MessageType
    sender: AgentId
    recipient: str
    topic: str
    priority: int
    ttl_ms: int
    payload: bytes
    correlation_id: str | None = None
    trace_id: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class OpenDelivery:
    """A delivery that is queued or claimed."""

    stream: StreamNo
    receiver: str
    state: str
    priority: int
    attempts: int
    expires_at_ms: int
    message_id: MessageId
    sender: str
    type: str
    settled: str | None


@dataclass(frozen=True, slots=True)
class Acking:
    """What an ack finds: state is None when the message is not this receiver's."""

    stream: StreamNo
    sender: str
    state: str | None
    priority: int
    reason: str | None
    replayed_as: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """An ask or handoff as a reply finds it."""

    stream: StreamNo
    id: MessageId
    type: str
    sender: AgentId
    recipient: str
    correlation_id: str | None
    trace_id: str | None
    answer: str | None
    settled: str | None


def post(
    tx: Tx,
    draft: Draft,
    receivers: list[str],
    op: Op | None,
    *,
    dead: tuple[str, DeadReason] | None = None,
    answers: Request | None = None,
    outcome: str | None = None,
    actor: AgentId | None = None,
) -> Event:
    """Append a message with its receivers; `dead` names who could not get it, and why.

    The event's actor is the sender unless somebody else sends for it (a replay).
    """
    body = Posted(
        cause=draft.cause,
        correlation_id=draft.correlation_id,
        dead_receiver=None if dead is None else dead[0],
        dead_reason=None if dead is None else dead[1].value,
        expires_at_ms=tx.now_ms + draft.ttl_ms,
        id=draft.id,
        outcome=outcome,
        priority=draft.priority,
        receivers=receivers,
        recipient=draft.recipient,
        request=None if answers is None else answers.stream,
        sender=draft.sender,
        topic=draft.topic,
        trace_id=draft.trace_id,
        type=draft.type.value,
    )
    event = tx.begin_stream(
        f"message/{draft.id}",
        Kind.MESSAGE_POSTED if answers is None else Kind.REPLY_POSTED,
        actor or draft.sender,
        body,
        payload=draft.payload,
        op=op,
        answers=None if answers is None else answers.stream,
    )
    for receiver in receivers:
        tx.effects.append(Moved(draft.sender, receiver, draft.priority, None, "queued"))
        tx.signals.append(Inbox(receiver))
    if dead is not None:
        tx.effects.append(Moved(draft.sender, dead[0], draft.priority, None, "dead"))
    if answers is not None:
        tx.signals.append(Settled(answers.stream, _posted(tx, draft, event)))
        if answers.settled is None:
            tx.effects.append(Counted(owed=-1))
    elif draft.type.value in _ASKS:
        tx.effects.append(Counted(owed=1))
    return event


def _posted(tx: Tx, draft: Draft, event: Event) -> Candidate:
    return Candidate(
        stream=StreamNo(event.stream),
        id=draft.id,
        type=draft.type.value,
        sender=draft.sender,
        recipient=draft.recipient,
        topic=draft.topic,
        priority=draft.priority,
        correlation_id=draft.correlation_id,
        trace_id=draft.trace_id,
        posted_at_ms=tx.now_ms,
        expires_at_ms=tx.now_ms + draft.ttl_ms,
        attempts=0,
        payload=draft.payload,
    )


def candidates(tx: Tx, receiver: str, topics: str | None, limit: int) -> list[Candidate]:
    """Return what a receiver may claim, in order; `topics` is a JSON list that narrows it."""
    rows = (
        tx.all(message_sql.CANDIDATES, (receiver, tx.now_ms, limit))
        if topics is None
        else tx.all(message_sql.CANDIDATES_OF_TOPICS, (receiver, tx.now_ms, topics, limit))
    )
    return [Candidate(*row) for row in rows]  # type: ignore[arg-type]


def held_by(tx: Tx, receiver: str) -> list[tuple[Candidate, str]]:
    """Return what a receiver holds and can still see, with the claim of each."""
    rows = tx.all(message_sql.HELD, (receiver, tx.now_ms))
    return [(Candidate(*row[:-1]), str(row[-1])) for row in rows]  # type: ignore[arg-type]


def claim(tx: Tx, found: Candidate, receiver: str, claim_id: str, visibility_ms: int) -> None:
    """Hand a candidate to its receiver; the attempt counts from now on (EV-Q5)."""
    body = Claimed(
        attempt=found.attempts + 1,
        claim=claim_id,
        receiver=receiver,
        visible_until_ms=tx.now_ms + visibility_ms,
    )
    tx.append(f"message/{found.id}", found.stream, Kind.DELIVERY_CLAIMED, receiver, body)
    tx.effects.append(Moved(found.sender, receiver, found.priority, "queued", "claimed"))


def is_there(tx: Tx, message_id: str) -> bool:
    """Say whether a message is known, however it stands."""
    return tx.one(message_sql.IS_THERE, (message_id,)) is not None


def find_for_ack(tx: Tx, receiver: str, message_id: str) -> Acking | None:
    """Return what an ack of this id by this receiver finds; None for an unknown id."""
    row = tx.one(message_sql.FOR_ACK, (receiver, message_id))
    return None if row is None else Acking(*row)  # type: ignore[arg-type]


def ack(tx: Tx, found: Acking, receiver: str, message_id: str) -> None:
    """Close a delivery as received."""
    tx.append(
        f"message/{message_id}",
        found.stream,
        Kind.DELIVERY_ACKED,
        receiver,
        Acked(receiver=receiver),
    )
    tx.effects.append(Moved(found.sender, receiver, found.priority, found.state, "acked"))


def due(tx: Tx, limit: int) -> list[OpenDelivery]:
    """Return deliveries whose time is up: TTL over, or claim run out."""
    return [OpenDelivery(*row) for row in tx.all(message_sql.DUE, (tx.now_ms, limit))]  # type: ignore[arg-type]


def open_deliveries(tx: Tx, receiver: str, limit: int) -> list[OpenDelivery]:
    """Return what is queued for or claimed by a receiver."""
    return [OpenDelivery(*row) for row in tx.all(message_sql.OPEN_OF_RECEIVER, (receiver, limit))]  # type: ignore[arg-type]


def give_back(tx: Tx, found: OpenDelivery) -> None:
    """Make a claimed message claimable again."""
    tx.append(
        f"message/{found.message_id}",
        found.stream,
        Kind.DELIVERY_RETURNED,
        HUB,
        Returned(receiver=found.receiver),
    )
    tx.effects.append(
        Moved(found.sender, found.receiver, found.priority, "claimed", DeliveryState.QUEUED)
    )
    tx.signals.append(Inbox(found.receiver))


def bury(
    tx: Tx, found: OpenDelivery, reason: DeadReason, error: str | None, actor: AgentId = HUB
) -> None:
    """Turn an open delivery into a dead letter."""
    settles = found.type in _ASKS and found.settled is None
    tx.append(
        f"message/{found.message_id}",
        found.stream,
        Kind.DELIVERY_DEAD,
        actor,
        Dead(reason=reason.value, receiver=found.receiver, last_error=error, settles=settles),
    )
    tx.effects.append(
        Moved(found.sender, found.receiver, found.priority, found.state, DeliveryState.DEAD)
    )
    if settles:
        tx.effects.append(Counted(owed=-1))
        tx.signals.append(Settled(found.stream))


def redirect(tx: Tx, found: OpenDelivery, receiver: str) -> None:
    """Give a deferred topic message to the subscriber that has come."""
    tx.append(
        f"message/{found.message_id}",
        found.stream,
        Kind.DELIVERY_QUEUED,
        HUB,
        Queued(instead_of=found.receiver, receiver=receiver),
    )
    tx.effects.append(Moved(found.sender, found.receiver, found.priority, "queued", None))
    tx.effects.append(Moved(found.sender, receiver, found.priority, None, "queued"))
    tx.signals.append(Inbox(receiver))


def purge(tx: Tx, found: OpenDelivery, actor: AgentId, op: Op | None, together: int = 1) -> None:
    """Give a dead letter up, one of so many."""
    tx.append(
        f"message/{found.message_id}",
        found.stream,
        Kind.DELIVERY_PURGED,
        actor,
        Purged(receiver=found.receiver, together=together),
        op=op,
    )
    tx.effects.append(Moved(found.sender, found.receiver, found.priority, "dead", "purged"))


def find_request(tx: Tx, correlation_id: str) -> Request | None:
    """Return the ask or handoff that a correlation id names; its own id is the usual one."""
    row = tx.one(message_sql.REQUEST_BY_ID, (correlation_id,))
    if row is None or row[2] not in _ASKS:
        row = tx.one(message_sql.REQUEST_BY_CORRELATION, (correlation_id,))
    return None if row is None else Request(*row)  # type: ignore[arg-type]


def is_known(tx: Tx, agent: str) -> bool:
    """Return True for an agent that is registered and not retired."""
    return (
        tx.one("SELECT 1 FROM agents WHERE id = ? AND retired_at_ms IS NULL", (agent,)) is not None
    )


def known_agents(tx: Tx, limit: int = 1_000) -> list[str]:
    """Return names of known agents."""
    rows = tx.all("SELECT id FROM agents WHERE retired_at_ms IS NULL ORDER BY id LIMIT ?", (limit,))
    return [str(row[0]) for row in rows]


def subscribers(tx: Tx, topic: str) -> list[str]:
    """Return who listens to a topic, by name."""
    rows = tx.all("SELECT agent FROM subscriptions WHERE topic = ? ORDER BY agent", (topic,))
    return [str(row[0]) for row in rows]
