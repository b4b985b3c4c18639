"""Queries that look: one message, dead letters, owed answers, traces, the log by cursor.

Read only; nothing here claims or changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.core import canonical_json
from tfx.hub.models import AgentId, MessageId, StreamNo
from tfx.hub.store import message_sql
from tfx.hub.store.candidate import Candidate
from tfx.hub.store.humans import NEXT_DEADLINE
from tfx.hub.store.leases import NEXT_DUE as NEXT_LEASE

if TYPE_CHECKING:
    from tfx.core.database import Row
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Tx

MESSAGE: Final = (
    "SELECT m.stream, m.id, m.type, m.sender, m.recipient, m.topic, m.priority, m.correlation_id, "
    "m.trace_id, m.posted_at_ms, m.expires_at_ms, 0, l.payload, m.answer, m.settled "
    "FROM messages m JOIN log l ON l.seq = m.stream WHERE m.id = ?"
)
DELIVERIES: Final = (
    "SELECT receiver, state, attempts, reason, closed_at_ms FROM deliveries WHERE message = ? "
    "ORDER BY receiver"
)
OWED: Final = (
    "SELECT id, correlation_id, sender, topic, posted_at_ms FROM messages "
    "WHERE recipient = ? AND settled IS NULL AND type IN ('request', 'handoff') "
    "ORDER BY stream LIMIT ?"
)
AWAITED: Final = (
    "SELECT id, correlation_id, recipient, topic, posted_at_ms FROM messages "
    "WHERE sender = ? AND settled IS NULL AND type IN ('request', 'handoff') "
    "ORDER BY stream LIMIT ?"
)
WAITING: Final = (
    "SELECT m.id, m.type, m.sender, m.topic, m.priority FROM deliveries d "
    "JOIN messages m ON m.stream = d.message WHERE d.receiver = ? AND d.state = 'queued' "
    "AND d.due_at_ms > ? ORDER BY d.priority DESC, d.message LIMIT ?"
)
FRESH: Final = (
    "SELECT count(*), max(d.message) FROM deliveries d WHERE d.receiver = ? "
    "AND d.state = 'queued' AND d.due_at_ms > ? AND d.message > ?"
)
FRESH_FIRST: Final = (
    "SELECT m.id, m.type, m.sender, m.topic, m.priority FROM deliveries d "
    "JOIN messages m ON m.stream = d.message WHERE d.receiver = ? AND d.state = 'queued' "
    "AND d.due_at_ms > ? AND d.message > ? ORDER BY d.priority DESC, d.message LIMIT ?"
)
_DEAD_COLUMNS: Final = (
    "SELECT d.closed_seq, m.id, m.sender, d.receiver, m.topic, m.type, d.reason, d.last_error, "
    "d.attempts, d.closed_at_ms, m.trace_id, d.replayed_as, d.message, d.priority "
    "FROM deliveries d JOIN messages m ON m.stream = d.message WHERE d.state = 'dead' "
)
DEAD_PAGE: Final = _DEAD_COLUMNS + "AND d.closed_seq > ? ORDER BY d.closed_seq LIMIT ?"
DEAD_PAGE_OF: Final = (
    _DEAD_COLUMNS + "AND d.receiver = ? AND d.closed_seq > ? ORDER BY d.closed_seq LIMIT ?"
)
DEAD_OF_MESSAGE: Final = _DEAD_COLUMNS + "AND m.id = ? ORDER BY d.receiver"
TRACE: Final = (
    "SELECT l.seq, l.at_ms, l.kind, l.actor, l.body, m.id, m.type, m.topic, m.cause, h.id, "
    "coalesce(t.number, o.number), i.id FROM (SELECT stream FROM messages WHERE trace_id = ?1 "
    "UNION SELECT stream FROM messages WHERE id = ?1 AND trace_id IS NULL "
    "UNION SELECT stream FROM human_requests WHERE trace_id = ?1 "
    "UNION SELECT stream FROM tasks WHERE trace_id = ?1 "
    "UNION SELECT stream FROM invocations WHERE trace_id = ?1 "
    "UNION SELECT k.stream FROM locks k JOIN tasks w ON w.stream = k.task "
    "WHERE w.trace_id = ?1) s "
    "JOIN log l ON l.stream = s.stream LEFT JOIN messages m ON m.stream = s.stream "
    "LEFT JOIN human_requests h ON h.stream = s.stream "
    "LEFT JOIN tasks t ON t.stream = s.stream "
    "LEFT JOIN locks n ON n.stream = s.stream LEFT JOIN tasks o ON o.stream = n.task "
    "LEFT JOIN invocations i ON i.stream = s.stream "
    "WHERE l.seq > ?2 ORDER BY l.seq LIMIT ?3"
)
EVENTS: Final = (
    "SELECT seq, event_id, at_ms, kind, stream, actor, body, payload FROM log "
    "WHERE seq > ? ORDER BY seq LIMIT ?"
)
EVENT_ID: Final = "SELECT event_id FROM log WHERE seq = ?"
FIRST_EVENT: Final = "SELECT seq, event_id FROM log ORDER BY seq LIMIT 1"
LAST_EVENT: Final = "SELECT seq, event_id FROM log ORDER BY seq DESC LIMIT 1"
FORGOTTEN: Final = "SELECT forgotten_seq FROM counted"


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its payload and how it was settled."""

    message: Candidate
    answer: MessageId | None
    settled: str | None


@dataclass(frozen=True, slots=True)
class OwedRow:
    """An ask or handoff without an answer; `other` is who stands on its other side."""

    id: MessageId
    correlation_id: str | None
    other: AgentId
    topic: str
    posted_at_ms: int


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A dead letter."""

    seq: int
    message_id: MessageId
    sender: AgentId
    receiver: str
    topic: str
    type: str
    reason: str
    last_error: str | None
    attempts: int
    failed_at_ms: int
    trace_id: str | None
    replayed_as: MessageId | None
    stream: StreamNo
    priority: int


def message(source: Tx | Reader, message_id: str) -> StoredMessage | None:
    """Return a message by its id."""
    row = source.one(MESSAGE, (message_id,))
    if row is None:
        return None
    found = Candidate(*row[:13])  # type: ignore[arg-type]
    answer, settled = row[13:]
    return StoredMessage(
        found,
        None if answer is None else MessageId(str(answer)),
        None if settled is None else str(settled),
    )


def deliveries(source: Tx | Reader, stream: StreamNo) -> list[Row]:
    """Return receiver, state, attempts, reason and closing time of each delivery of a message."""
    return source.all(DELIVERIES, (stream,))


def owed(source: Tx | Reader, agent: str, limit: int) -> list[OwedRow]:
    """Return what an agent has not answered yet, oldest first."""
    return [OwedRow(*row) for row in source.all(OWED, (agent, limit))]  # type: ignore[arg-type]


def awaited(source: Tx | Reader, agent: str, limit: int) -> list[OwedRow]:
    """Return what an agent waits to be answered, oldest first."""
    return [OwedRow(*row) for row in source.all(AWAITED, (agent, limit))]  # type: ignore[arg-type]


def dead_page(source: Tx | Reader, receiver: str | None, after: int, limit: int) -> list[DeadRow]:
    """Return dead letters after a seq, of one receiver or of all."""
    rows = (
        source.all(DEAD_PAGE, (after, limit))
        if receiver is None
        else source.all(DEAD_PAGE_OF, (receiver, after, limit))
    )
    return [DeadRow(*row) for row in rows]  # type: ignore[arg-type]


def dead_of_message(source: Tx | Reader, message_id: str) -> list[DeadRow]:
    """Return the dead letters of one message."""
    return [DeadRow(*row) for row in source.all(DEAD_OF_MESSAGE, (message_id,))]  # type: ignore[arg-type]


def cursor(seq: int, event_id: bytes, forgotten: int) -> str:
    """Return the cursor that stands behind an event (EV-D6).

    While it lies below what is forgotten it says how far forgetting had come when it was given:
    a reader that pages through what is left goes on, one that comes back later is told (H-73).
    """
    plain = f"{seq}-{event_id.hex()}"
    return plain if seq >= forgotten else f"{plain}-{forgotten}"


def next_deadline(reader: Reader) -> int | None:
    """Return when the hub must act next, in its own time; None when nothing waits for it."""
    times = [reader.one(sql) for sql in (message_sql.NEXT_DUE, NEXT_DEADLINE, NEXT_LEASE)]
    known = [int(row[0]) for row in times if row is not None and row[0] is not None]
    return min(known) if known else None


def what_happened(
    reader: Reader, receivers: set[str], streams: set[int]
) -> tuple[list[str], list[int]]:
    """Return which of these have mail, and which of these requests are settled."""
    mail = reader.all(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM deliveries "
        "WHERE receiver = value AND state = 'queued')",
        (canonical_json.dump(sorted(receivers)).decode(),),
    )
    settled = reader.all(
        "SELECT stream FROM messages WHERE settled IS NOT NULL "
        "AND stream IN (SELECT value FROM json_each(?))",
        (canonical_json.dump(sorted(streams)).decode(),),
    )
    return [str(row[0]) for row in mail], [int(row[0] or 0) for row in settled]
