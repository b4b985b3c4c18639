"""The SQL that writes version 2 from version 1, one chunk of a table at a time.

Text only; `transform` runs it. Keys of JSON bodies stand in their canonical order.
"""

from __future__ import annotations

from typing import Final

_LATER: Final = "iif({0} > 9223372036854775807 - :shift, 9223372036854775807, {0} + :shift)"
"""A time of the source moved by the shift; the largest number stays what it is."""


def _later(column: str) -> str:
    return _LATER.format(column)


def _until(column: str) -> str:
    """Return the SQL of a deadline: what was not over at the last activity moves (K-35)."""
    return f"iif({column} > :last, {_later(column)}, {column})"


_BEFORE_NOW: Final = "min({0}, :now)"
_ROWS: Final = (
    "FROM temp.kept k JOIN v1_{0} o ON o.rowid = k.src WHERE k.seq BETWEEN :low AND :high"
)

TEMPORARY: Final = (
    "CREATE TEMP TABLE kept (seq INTEGER PRIMARY KEY, src INTEGER NOT NULL)",
    "CREATE TEMP TABLE reason_map (reason TEXT PRIMARY KEY, mapped TEXT NOT NULL)",
    (
        "CREATE TEMP TABLE answers (correlation TEXT, sender TEXT, recipient TEXT, id TEXT, "
        "accepted TEXT, PRIMARY KEY (correlation, sender, recipient)) WITHOUT ROWID"
    ),
    (
        "CREATE TEMP TABLE chunk (seq INTEGER PRIMARY KEY, src INTEGER, id TEXT, type TEXT, "
        "sender TEXT, recipient TEXT, priority INTEGER, until INTEGER, over INTEGER, status TEXT, "
        "state TEXT, reason TEXT, closed INTEGER, last_error TEXT, letter INTEGER)"
    ),
)

ANSWERS: Final = """
INSERT OR IGNORE INTO temp.answers
SELECT correlation_id, from_agent, to_agent, id,
  iif(json_valid(CAST(payload_json AS TEXT)) AND
    coalesce(json_type(CAST(payload_json AS TEXT), '$.accepted'), '') = 'false',
    'declined', 'accepted')
FROM v1_messages WHERE type = 'response' ORDER BY created_at_ms, rowid
"""
"""The first response of each conversation settles its request."""

_SEEN: Final = _BEFORE_NOW.format(_later("o.last_seen_ms"))
_TTL: Final = (
    "iif(o.lease_expires_ms > o.last_seen_ms, "
    "min(max(o.lease_expires_ms - o.last_seen_ms, 1), 86400000), 600000)"
)
AGENTS: Final = (
    f"""
INSERT INTO agents (stream, id, client, capabilities, metadata, ttl_ms, registered_at_ms,
  ended_at_ms, last_seq)
SELECT k.seq, o.agent_id, o.cli, json_texts(CAST(o.capabilities_json AS BLOB)),
  json_clean(CAST(o.metadata_json AS BLOB)), {_TTL}, {_SEEN}, {_SEEN}, k.seq
{_ROWS.format("agents")}
""",
    """
INSERT INTO subscriptions (topic, agent, last_seq)
SELECT t.value, o.agent_id, k.seq
FROM temp.kept k JOIN v1_agents o ON o.rowid = k.src
JOIN json_each(json_texts(CAST(o.topics_json AS BLOB))) t
WHERE k.seq BETWEEN :low AND :high
""",
    f"""
INSERT INTO beats (agent, seen_at_ms, lease_expires_ms)
SELECT o.agent_id, {_SEEN}, {_SEEN} {_ROWS.format("agents")}
""",
    f"""
INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body, payload)
SELECT k.seq, event_id('agent/' || o.agent_id, 0), k.seq, 0, :now, 'imported', 'hub:hub',
  json_patch('{{}}', json_object(
    'agent', json_object(
      'capabilities', json(json_texts(CAST(o.capabilities_json AS BLOB))),
      'capabilities_json', o.capabilities_json,
      'client', o.cli,
      'id', o.agent_id,
      'last_seen_ms', o.last_seen_ms,
      'lease_expires_ms', o.lease_expires_ms,
      'metadata', json_clean(CAST(o.metadata_json AS BLOB)),
      'pid', o.pid,
      'seen_at_ms', {_SEEN},
      'status', o.status,
      'topics', json(json_texts(CAST(o.topics_json AS BLOB))),
      'topics_json', o.topics_json,
      'ttl_ms', {_TTL}),
    'key', o.agent_id,
    'source', 'agents')),
  CAST(o.metadata_json AS BLOB)
{_ROWS.format("agents")}
""",
)

_NO_INBOX: Final = "NOT EXISTS (SELECT 1 FROM v1_message_inbox i WHERE i.message_id = c.id)"
_FANNED: Final = (
    "c.recipient GLOB 'topic:*' AND c.state = 'queued' AND EXISTS (SELECT 1 FROM subscriptions s "
    "WHERE s.topic = substr(c.recipient, 7) AND s.agent <> c.sender)"
)
_OWN_STATE: Final = (
    "CASE WHEN i.acked_at_ms IS NOT NULL THEN 'acked' "
    "WHEN c.state = 'acked' THEN 'queued' ELSE c.state END"
)
_DELIVERY: Final = (
    "INSERT INTO deliveries (message, receiver, state, priority, attempts, expires_at_ms, "
    "due_at_ms, closed_at_ms, closed_seq, reason, last_error, last_seq) "
)
_DELIVERY_TAIL: Final = (
    "iif(state = 'queued', until, NULL), iif(state = 'queued', NULL, closed), "
    "iif(state = 'queued', NULL, seq), iif(state = 'dead', reason, NULL), "
    "iif(state = 'dead', last_error, NULL), seq"
)
_ANSWER: Final = (
    "LEFT JOIN temp.answers a ON a.correlation = o.correlation_id AND a.sender = o.to_agent "
    "AND a.recipient = o.from_agent AND a.id <> o.id AND o.type IN ('request', 'handoff')"
)

MESSAGES: Final = (
    "DELETE FROM temp.chunk",
    f"""
INSERT INTO temp.chunk
SELECT k.seq, k.src, o.id, o.type, o.from_agent, o.to_agent, o.priority,
  {_until("o.expires_at_ms")}, o.expires_at_ms <= :last, o.status,
  iif(d.message_id IS NULL, s.state, 'dead'),
  iif(d.message_id IS NULL, s.reason, coalesce(r.mapped, 'imported')),
  {_later("iif(d.message_id IS NULL, min(o.expires_at_ms, :last), d.failed_at_ms)")},
  d.last_error, d.message_id IS NOT NULL
FROM temp.kept k JOIN v1_messages o ON o.rowid = k.src
JOIN temp.state_map s ON s.status = o.status
LEFT JOIN v1_dead_letters d ON d.message_id = o.id
LEFT JOIN temp.reason_map r ON r.reason = d.reason
WHERE k.seq BETWEEN :low AND :high
""",
    f"""
{_DELIVERY}
SELECT seq, receiver, state, priority, attempts, until, {_DELIVERY_TAIL} FROM (
  SELECT c.seq, i.agent_id AS receiver, {_OWN_STATE} AS state, c.priority, i.attempts, c.until,
    iif(i.acked_at_ms IS NULL, c.closed, {_later("i.acked_at_ms")}) AS closed, c.reason,
    c.last_error
  FROM temp.chunk c JOIN v1_message_inbox i ON i.message_id = c.id)
""",
    f"""
{_DELIVERY}
SELECT seq, receiver, state, priority, 0, until, {_DELIVERY_TAIL} FROM (
  SELECT c.*, s.agent AS receiver FROM temp.chunk c
  JOIN subscriptions s ON s.topic = substr(c.recipient, 7) AND s.agent <> c.sender
  WHERE c.recipient GLOB 'topic:*' AND c.state = 'queued' AND {_NO_INBOX})
""",
    f"""
{_DELIVERY}
SELECT seq, recipient, state, priority, 0, until, {_DELIVERY_TAIL} FROM (
  SELECT c.* FROM temp.chunk c WHERE {_NO_INBOX} AND NOT ({_FANNED}))
""",
    f"""
INSERT INTO messages (stream, id, type, sender, recipient, topic, priority, posted_at_ms,
  expires_at_ms, correlation_id, trace_id, answer, settled, last_seq)
SELECT c.seq, o.id, o.type, o.from_agent, o.to_agent, o.topic, o.priority, o.created_at_ms,
  c.until, o.correlation_id, o.trace_id, a.id,
  CASE WHEN o.type NOT IN ('request', 'handoff') THEN NULL
    WHEN a.id IS NOT NULL THEN iif(o.type = 'handoff', a.accepted, 'answered')
    WHEN NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message = c.seq AND d.state <> 'dead')
      THEN 'dead'
    WHEN c.over AND NOT EXISTS
      (SELECT 1 FROM deliveries d WHERE d.message = c.seq AND d.state = 'queued') THEN 'dead'
  END, c.seq
FROM temp.chunk c JOIN v1_messages o ON o.rowid = c.src {_ANSWER}
""",
    """
INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body, payload)
SELECT c.seq, event_id('message/' || o.id, 0), c.seq, 0, :now, 'imported', 'hub:hub',
  json_patch('{}', json_object(
    'key', o.id,
    'message', json_object(
      'answer', n.answer,
      'correlation_id', o.correlation_id,
      'created_at_ms', o.created_at_ms,
      'dead_at_ms', l.failed_at_ms,
      'dead_error', l.last_error,
      'dead_reason', l.reason,
      'deliveries', json((SELECT json_group_array(json(json_patch('{}', json_object(
          'acked_at_ms', i.acked_at_ms,
          'attempts', d.attempts,
          'closed_at_ms', d.closed_at_ms,
          'delivered_at_ms', i.delivered_at_ms,
          'delivery_id', i.delivery_id,
          'last_error', d.last_error,
          'reason', d.reason,
          'receiver', d.receiver,
          'state', d.state))) ORDER BY d.receiver)
        FROM deliveries d LEFT JOIN v1_message_inbox i
          ON i.message_id = o.id AND i.agent_id = d.receiver
        WHERE d.message = c.seq)),
      'expires_at_ms', o.expires_at_ms,
      'id', o.id,
      'priority', o.priority,
      'recipient', o.to_agent,
      'sender', o.from_agent,
      'settled', n.settled,
      'status', o.status,
      'topic', o.topic,
      'trace_id', o.trace_id,
      'ttl_ms', o.ttl_ms,
      'type', o.type,
      'until_ms', c.until),
    'source', 'messages')),
  CAST(o.payload_json AS BLOB)
FROM temp.chunk c JOIN v1_messages o ON o.rowid = c.src JOIN messages n ON n.stream = c.seq
LEFT JOIN v1_dead_letters l ON l.message_id = o.id
""",
)

_ASKED: Final = "min(o.deadline_ms, :last)"
_DIGEST: Final = "human_digest(o.kind, o.prompt, CAST(o.schema_json AS BLOB))"
HUMANS: Final = (
    f"""
INSERT INTO human_requests (stream, id, requester, kind, state, default_action, channel, digest,
  correlation_id, trace_id, opened_at_ms, deadline_ms, closed_at_ms, closed_seq, last_seq)
SELECT k.seq, o.request_id, o.requester_agent, o.kind, o.state, o.default_action, 'terminal',
  {_DIGEST}, o.correlation_id, o.trace_id, {_ASKED},
  {_until("o.deadline_ms")}, iif(o.state = 'pending', NULL, {_later(_ASKED)}),
  iif(o.state = 'pending', NULL, k.seq), k.seq
{_ROWS.format("human_requests")}
""",
    f"""
INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body, payload)
SELECT k.seq, event_id('human/' || o.request_id, 0), k.seq, 0, :now, 'imported', 'hub:hub',
  json_object(
    'human', json_object(
      'correlation_id', o.correlation_id,
      'deadline_ms', o.deadline_ms,
      'default_action', o.default_action,
      'digest', lower(hex({_DIGEST})),
      'human_kind', o.kind,
      'id', o.request_id,
      'opened_at_ms', {_ASKED},
      'prompt', o.prompt,
      'requester', o.requester_agent,
      'trace_id', o.trace_id,
      'until_ms', {_until("o.deadline_ms")}),
    'key', o.request_id,
    'source', 'human_requests'),
  CAST(o.schema_json AS BLOB)
{_ROWS.format("human_requests")}
""",
)
OUTCOMES: Final = (
    """
INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body, payload)
SELECT :after + row_number() OVER (ORDER BY h.stream), event_id('human/' || h.id, h.stream),
  h.stream, h.stream, :now, 'imported', 'hub:hub',
  json_object(
    'key', h.id,
    'outcome', json_object(
      'closed_at_ms', h.closed_at_ms,
      'dropped', json(iif(h.kind IN ('captcha', 'credential') AND o.response_json IS NOT NULL,
        'true', 'false')),
      'state', h.state),
    'source', 'human_requests'),
  iif(h.kind IN ('captcha', 'credential'), NULL, CAST(o.response_json AS BLOB))
FROM human_requests h JOIN v1_human_requests o ON o.request_id = h.id
WHERE h.state <> 'pending'
""",
    """
UPDATE human_requests SET closed_seq = l.seq, last_seq = l.seq
FROM log l WHERE l.seq > :after AND l.stream = human_requests.stream
""",
)
