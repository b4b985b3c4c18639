"""The queries of messages and deliveries; every one of them has its index (EXPLAIN is a test).

Text only; `messages` runs them.
"""

from __future__ import annotations

from typing import Final

CANDIDATES: Final = (
    "SELECT d.message, m.id, m.type, m.sender, m.recipient, m.topic, m.priority, "
    "m.correlation_id, m.trace_id, m.posted_at_ms, d.expires_at_ms, d.attempts, l.payload "
    "FROM deliveries d JOIN messages m ON m.stream = d.message JOIN log l ON l.seq = d.message "
    "WHERE d.receiver = ? AND d.state = 'queued' AND d.due_at_ms > ? "
    "ORDER BY d.priority DESC, d.message LIMIT ?"
)
CANDIDATES_OF_TOPICS: Final = (
    "SELECT d.message, m.id, m.type, m.sender, m.recipient, m.topic, m.priority, "
    "m.correlation_id, m.trace_id, m.posted_at_ms, d.expires_at_ms, d.attempts, l.payload "
    "FROM deliveries d JOIN messages m ON m.stream = d.message JOIN log l ON l.seq = d.message "
    "WHERE d.receiver = ? AND d.state = 'queued' AND d.due_at_ms > ? "
    "AND m.topic IN (SELECT value FROM json_each(?)) ORDER BY d.priority DESC, d.message LIMIT ?"
)
HELD: Final = (
    "SELECT d.message, m.id, m.type, m.sender, m.recipient, m.topic, m.priority, "
    "m.correlation_id, m.trace_id, m.posted_at_ms, d.expires_at_ms, d.attempts, l.payload, d.claim "
    "FROM deliveries d JOIN messages m ON m.stream = d.message JOIN log l ON l.seq = d.message "
    "WHERE d.receiver = ? AND d.state = 'claimed' AND d.due_at_ms > ? ORDER BY d.message"
)
FOR_ACK: Final = (
    "SELECT m.stream, m.sender, d.state, d.priority, d.reason, d.replayed_as "
    "FROM messages m LEFT JOIN deliveries d ON d.message = m.stream AND d.receiver = ? "
    "WHERE m.id = ?"
)
DUE: Final = (
    "SELECT d.message, d.receiver, d.state, d.priority, d.attempts, d.expires_at_ms, m.id, "
    "m.sender, m.type, m.settled FROM deliveries d JOIN messages m ON m.stream = d.message "
    "WHERE d.due_at_ms IS NOT NULL AND d.due_at_ms <= ? ORDER BY d.due_at_ms LIMIT ?"
)
NEXT_DUE: Final = "SELECT min(due_at_ms) FROM deliveries WHERE due_at_ms IS NOT NULL"
OPEN_OF_RECEIVER: Final = (
    "SELECT d.message, d.receiver, d.state, d.priority, d.attempts, d.expires_at_ms, m.id, "
    "m.sender, m.type, m.settled FROM deliveries d JOIN messages m ON m.stream = d.message "
    "WHERE d.receiver = ?1 AND d.state = 'queued' UNION ALL "
    "SELECT d.message, d.receiver, d.state, d.priority, d.attempts, d.expires_at_ms, m.id, "
    "m.sender, m.type, m.settled FROM deliveries d JOIN messages m ON m.stream = d.message "
    "WHERE d.receiver = ?1 AND d.state = 'claimed' LIMIT ?2"
)
IS_THERE: Final = "SELECT 1 FROM messages WHERE id = ?"
REQUEST_BY_ID: Final = (
    "SELECT stream, id, type, sender, recipient, correlation_id, trace_id, answer, settled "
    "FROM messages WHERE id = ?"
)
REQUEST_BY_CORRELATION: Final = (
    "SELECT stream, id, type, sender, recipient, correlation_id, trace_id, answer, settled "
    "FROM messages WHERE correlation_id = ? AND type IN ('request', 'handoff') "
    "ORDER BY stream DESC LIMIT 1"
)
