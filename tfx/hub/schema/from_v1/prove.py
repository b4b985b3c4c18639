"""Prove that every row of version 1 has arrived or is named as left out (U-87).

Compares the verified backup, attached as `old`, with log and projections; writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Outcome, Tell

_KEPT: Final = (
    "NOT EXISTS (SELECT 1 FROM temp.left_out x WHERE x.source = '{0}' AND x.src = o.rowid)"
)


def _same(prefix: str, columns: tuple[tuple[str, str], ...]) -> str:
    return " AND ".join(
        f"json_extract(l.body, '$.{prefix}.{member}') IS o.{column}" for member, column in columns
    )


_AGENT = (
    ("id", "agent_id"), ("client", "cli"), ("pid", "pid"), ("status", "status"),
    ("capabilities_json", "capabilities_json"), ("topics_json", "topics_json"),
    ("last_seen_ms", "last_seen_ms"), ("lease_expires_ms", "lease_expires_ms"),
)  # fmt: skip
_MESSAGE = (
    ("id", "id"), ("type", "type"), ("sender", "from_agent"), ("recipient", "to_agent"),
    ("topic", "topic"), ("priority", "priority"), ("ttl_ms", "ttl_ms"),
    ("created_at_ms", "created_at_ms"), ("expires_at_ms", "expires_at_ms"),
    ("correlation_id", "correlation_id"), ("trace_id", "trace_id"), ("status", "status"),
)  # fmt: skip
_HUMAN = (
    ("id", "request_id"), ("requester", "requester_agent"), ("human_kind", "kind"),
    ("prompt", "prompt"), ("deadline_ms", "deadline_ms"), ("default_action", "default_action"),
    ("correlation_id", "correlation_id"), ("trace_id", "trace_id"),
)  # fmt: skip
_LETTER = (
    ("dead_reason", "reason"), ("dead_at_ms", "failed_at_ms"), ("dead_error", "last_error"),
)  # fmt: skip

_CHECKS: Final = (
    (
        "agents",
        (
            "SELECT count(*) FROM old.agents o LEFT JOIN main.agents n ON n.id = o.agent_id "
            "LEFT JOIN main.log l ON l.seq = n.stream "
            f"WHERE {_KEPT.format('agents')} AND NOT (l.kind IS 'imported' "
            f"AND l.payload IS CAST(o.metadata_json AS BLOB) AND {_same('agent', _AGENT)})"
        ),
    ),
    (
        "messages",
        (
            "SELECT count(*) FROM old.messages o LEFT JOIN main.messages n ON n.id = o.id "
            "LEFT JOIN main.log l ON l.seq = n.stream "
            f"WHERE {_KEPT.format('messages')} AND NOT (l.kind IS 'imported' "
            "AND l.payload IS CAST(o.payload_json AS BLOB) AND n.type IS o.type "
            "AND n.sender IS o.from_agent AND n.recipient IS o.to_agent AND n.topic IS o.topic "
            "AND n.priority IS o.priority AND n.posted_at_ms IS o.created_at_ms "
            f"AND {_same('message', _MESSAGE)})"
        ),
    ),
    (
        "message_inbox",
        (
            "SELECT count(*) FROM old.message_inbox o "
            "LEFT JOIN main.messages n ON n.id = o.message_id "
            "LEFT JOIN main.log l ON l.seq = n.stream "
            "LEFT JOIN main.deliveries d ON d.message = n.stream AND d.receiver = o.agent_id "
            f"WHERE {_KEPT.format('message_inbox')} AND NOT (d.attempts IS o.attempts "
            "AND (d.state = 'acked') IS (o.acked_at_ms IS NOT NULL) AND EXISTS "
            "(SELECT 1 FROM json_each(l.body, '$.message.deliveries') e "
            "WHERE json_extract(e.value, '$.delivery_id') IS o.delivery_id "
            "AND json_extract(e.value, '$.receiver') IS o.agent_id "
            "AND json_extract(e.value, '$.delivered_at_ms') IS o.delivered_at_ms "
            "AND json_extract(e.value, '$.acked_at_ms') IS o.acked_at_ms))"
        ),
    ),
    (
        "human_requests",
        (
            "SELECT count(*) FROM old.human_requests o "
            "LEFT JOIN main.human_requests n ON n.id = o.request_id "
            "LEFT JOIN main.log l ON l.seq = n.stream LEFT JOIN main.log c ON c.seq = n.closed_seq "
            f"WHERE {_KEPT.format('human_requests')} AND NOT (l.kind IS 'imported' "
            "AND l.payload IS CAST(o.schema_json AS BLOB) AND n.state IS o.state "
            "AND c.payload IS "
            "iif(o.kind IN ('captcha', 'credential'), NULL, CAST(o.response_json AS BLOB)) "
            f"AND {_same('human', _HUMAN)})"
        ),
    ),
    (
        "dead_letters",
        (
            "SELECT count(*) FROM old.dead_letters o "
            "LEFT JOIN main.messages n ON n.id = o.message_id "
            "LEFT JOIN main.log l ON l.seq = n.stream "
            f"WHERE {_KEPT.format('dead_letters')} AND NOT ({_same('message', _LETTER)} "
            "AND EXISTS (SELECT 1 FROM main.deliveries d WHERE d.message = n.stream "
            "AND d.state IN ('dead', 'acked')))"
        ),
    ),
)
_EVENTS: Final = (
    "SELECT (SELECT count(*) FROM main.agents) + (SELECT count(*) FROM main.messages) + "
    "(SELECT count(*) FROM main.human_requests) + "
    "(SELECT count(*) FROM main.human_requests WHERE closed_seq IS NOT NULL) - "
    "(SELECT count(*) FROM main.log)"
)


def run(connection: Connection, outcome: Outcome, tell: Tell) -> tuple[str, ...]:
    """Return one line for each table whose rows are not all there, unchanged."""
    found: list[str] = []
    for table, sql in _CHECKS:
        for (number,) in connection.execute(sql):
            if number:
                found.append(f"{number} rows of {table} are not as they were")
        left = sum(each.table == table for each in outcome.left_out)
        tell(table, left, left)
    for (number,) in connection.execute(_EVENTS):
        if number:
            found.append(f"the log has {-int(number)} events more than rows")
    return tuple(found)
