"""Human requests: open, list, close with the response that always reaches the requester (H-65).

SQL and events only; who may answer is decided by the services.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.core import canonical_json
from tfx.hub.models import (
    HUB,
    AgentId,
    HumanRequestId,
    HumanState,
    MessageId,
    MessageType,
    StreamNo,
)
from tfx.hub.store import messages
from tfx.hub.store.events import HumanClosed, HumanOpened
from tfx.hub.store.ids import new_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.tally import Counted
from tfx.hub.store.wakeups import DEADLINE, Settled

if TYPE_CHECKING:
    from tfx.core.database import Row
    from tfx.errors import JsonValue
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Op, Tx

_COLUMNS: Final = (
    "SELECT h.stream, h.id, h.requester, h.kind, h.state, h.default_action, h.channel, h.digest, "
    "h.correlation_id, h.trace_id, h.opened_at_ms, h.deadline_ms, h.closed_at_ms, h.answered_by, "
    "l.body, l.payload FROM human_requests h JOIN log l ON l.seq = h.stream "
)
BY_ID: Final = _COLUMNS + "WHERE h.id = ?"
PENDING: Final = _COLUMNS + "WHERE h.state = 'pending' AND h.stream > ? ORDER BY h.stream LIMIT ?"
ALL: Final = _COLUMNS + "WHERE h.stream > ? ORDER BY h.stream LIMIT ?"
DUE: Final = (
    _COLUMNS + "WHERE h.closed_seq IS NULL AND h.deadline_ms <= ? ORDER BY h.deadline_ms LIMIT ?"
)
NEXT_DEADLINE: Final = "SELECT min(deadline_ms) FROM human_requests WHERE closed_seq IS NULL"

RESPONSE_TOPIC: Final = "human.response"
RESPONSE_PRIORITY: Final = 7
MARK: Final = "secret"
"""The member of a response that says where a secret content is."""
HELD: Final = "held"
RESPONSE_TTL_MS: Final = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class HumanRow:
    """A request as it stands; prompt and schema come from its first event."""

    stream: StreamNo
    id: HumanRequestId
    requester: AgentId
    kind: str
    state: str
    default_action: str
    channel: str
    digest: bytes
    correlation_id: str
    trace_id: str
    opened_at_ms: int
    deadline_ms: int
    closed_at_ms: int | None
    answered_by: str | None
    prompt: str
    schema: bytes


@dataclass(frozen=True, slots=True)
class Closing:
    """How a request ends: `content` goes to the requester, `stored` into the log.

    Of a secret neither holds the value; the response only says that there is one (H-48).
    """

    kind: Kind
    state: HumanState
    actor: AgentId
    action: str
    answered_by: str | None = None
    content: JsonValue = None
    stored: bytes | None = None
    is_secret: bool = False
    op: Op | None = None


def open_request(tx: Tx, wanted: HumanRow, op: Op | None) -> Event:
    """Open a request; its schema is the payload of the event."""
    body = HumanOpened(
        channel=wanted.channel,
        correlation_id=wanted.correlation_id,
        deadline_ms=wanted.deadline_ms,
        default_action=wanted.default_action,
        digest=wanted.digest.hex(),
        human_kind=wanted.kind,
        id=wanted.id,
        prompt=wanted.prompt,
        requester=wanted.requester,
        trace_id=wanted.trace_id,
    )
    event = tx.begin_stream(
        f"human/{wanted.id}",
        Kind.HUMAN_REQUEST_OPENED,
        wanted.requester,
        body,
        payload=wanted.schema,
        op=op,
    )
    tx.effects.append(Counted(pending_humans=1))
    tx.signals.append(DEADLINE)
    return event


def close(tx: Tx, found: HumanRow, closing: Closing) -> MessageId:
    """Close a request and send its requester the response, in one transaction (H-65)."""
    response = MessageId(new_id(tx.now_ms))
    tx.append(
        f"human/{found.id}",
        found.stream,
        closing.kind,
        closing.actor,
        HumanClosed(response=response, state=closing.state.value, answered_by=closing.answered_by),
        payload=closing.stored,
        op=closing.op,
    )
    payload: dict[str, JsonValue] = {
        "request_id": found.id,
        "action": closing.action,
        "content": closing.content,
        "submitted_by": closing.answered_by,
        "timed_out": closing.kind is Kind.HUMAN_REQUEST_EXPIRED,
    }
    if closing.is_secret:
        payload[MARK] = HELD
    draft = messages.Draft(
        id=response,
        type=MessageType.HUMAN_RESPONSE,
        sender=closing.actor,
        recipient=found.requester,
        topic=RESPONSE_TOPIC,
        priority=RESPONSE_PRIORITY,
        ttl_ms=RESPONSE_TTL_MS,
        payload=canonical_json.dump(payload),
        correlation_id=found.correlation_id,
        trace_id=found.trace_id,
        cause=found.id,
    )
    messages.post(tx, draft, [found.requester], None)
    tx.effects.append(Counted(pending_humans=-1))
    tx.signals.append(Settled(found.stream))
    return response


def expire(tx: Tx, found: HumanRow) -> MessageId:
    """Close a request with its default action (H-65)."""
    return close(
        tx,
        found,
        Closing(
            kind=Kind.HUMAN_REQUEST_EXPIRED,
            state=HumanState.TIMED_OUT,
            actor=HUB,
            action=found.default_action,
        ),
    )


def find(source: Tx | Reader, request_id: str) -> HumanRow | None:
    """Return a request by its id."""
    row = source.one(BY_ID, (request_id,))
    return None if row is None else _row(row)


def page(source: Tx | Reader, after: int, limit: int, *, closed: bool) -> list[HumanRow]:
    """Return pending requests, or all, oldest first."""
    return [_row(row) for row in source.all(ALL if closed else PENDING, (after, limit))]


def due(tx: Tx, limit: int) -> list[HumanRow]:
    """Return pending requests whose deadline has passed."""
    return [_row(row) for row in tx.all(DUE, (tx.now_ms, limit))]


def digest_of(kind: str, prompt: str, schema: bytes) -> bytes:
    """Return the digest of the question as it is shown (H-66)."""
    return hashlib.sha256(canonical_json.dump([kind, prompt, schema.decode()])).digest()


def _row(row: Row) -> HumanRow:
    body = canonical_json.parse(str(row[14]).encode())
    asked = body.get("human", body) if isinstance(body, dict) else {}
    prompt = asked.get("prompt", "") if isinstance(asked, dict) else ""
    schema = row[15] if isinstance(row[15], bytes) else b"{}"
    return HumanRow(*row[:14], prompt=str(prompt), schema=schema)  # type: ignore[arg-type, misc]
