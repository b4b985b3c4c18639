"""Find the rows of version 1 that version 2 cannot represent, and why (K-37).

Writes temporary tables only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.schema.from_v1.mapping import MESSAGE_STATES
from tfx.hub.schema.outcome import LeftOut, Outcome

if TYPE_CHECKING:
    from tfx.core.database import Connection

_TABLES: Final = (
    (
        "CREATE TEMP TABLE left_out (source TEXT NOT NULL, src INTEGER NOT NULL, "
        "key TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (source, src)) WITHOUT ROWID"
    ),
    "CREATE TEMP TABLE state_map (status TEXT PRIMARY KEY, state TEXT, reason TEXT)",
)
_TYPES: Final = "('event','request','response','handoff','human_request','human_response','system')"

_INSERT: Final = (
    "INSERT INTO temp.left_out SELECT '{table}', src, CASE WHEN typeof(key) = 'integer' "
    "THEN CAST(key AS TEXT) WHEN typeof(key) = 'text' AND is_utf8(CAST(key AS BLOB)) "
    "THEN substr(key, 1, 200) "
    "ELSE 'x''' || substr(hex(CAST(key AS BLOB)), 1, 200) || '''' END, reason FROM (SELECT "
    "rowid AS src, coalesce({key}, '') AS key, CASE {cases} END AS reason FROM {table}) "
    "WHERE reason IS NOT NULL"
)

_AGENTS: Final = """
WHEN typeof(agent_id) <> 'text' OR length(agent_id) < 1 THEN 'its id is not a text'
WHEN typeof(cli) <> 'text' OR typeof(status) <> 'text' OR typeof(capabilities_json) <> 'text'
  OR typeof(topics_json) <> 'text' THEN 'a text column holds another type'
WHEN typeof(metadata_json) NOT IN ('text', 'blob') THEN 'its metadata is neither text nor bytes'
WHEN typeof(pid) NOT IN ('integer', 'null') OR typeof(last_seen_ms) <> 'integer'
  OR typeof(lease_expires_ms) <> 'integer' THEN 'a number column holds another type'
WHEN NOT is_utf8(CAST(agent_id || cli || status || ' ' || capabilities_json || ' ' || topics_json
  AS BLOB)) THEN 'a text is not UTF-8'
"""
_MESSAGES: Final = f"""
WHEN typeof(id) <> 'text' OR length(id) < 1 THEN 'its id is not a text'
WHEN typeof(type) <> 'text' OR typeof(from_agent) <> 'text' OR typeof(to_agent) <> 'text'
  OR typeof(topic) <> 'text' OR typeof(correlation_id) <> 'text' OR typeof(trace_id) <> 'text'
  OR typeof(status) <> 'text' THEN 'a text column holds another type'
WHEN typeof(priority) <> 'integer' OR typeof(ttl_ms) <> 'integer'
  OR typeof(created_at_ms) <> 'integer' OR typeof(expires_at_ms) <> 'integer'
  THEN 'a number column holds another type'
WHEN typeof(payload_json) NOT IN ('text', 'blob') THEN 'its payload is neither text nor bytes'
WHEN type NOT IN {_TYPES} THEN 'its type is unknown'
WHEN NOT EXISTS (SELECT 1 FROM temp.state_map s WHERE s.status = v1_messages.status)
  THEN 'its status is unknown'
WHEN priority NOT BETWEEN 1 AND 9 THEN 'its priority is not 1 to 9'
WHEN length(to_agent) < 1 THEN 'it has no receiver'
WHEN NOT is_utf8(CAST(id || ' ' || from_agent || ' ' || to_agent || ' ' || topic || ' '
  || correlation_id || ' ' || trace_id AS BLOB)) THEN 'a text is not UTF-8'
"""
_INBOX: Final = """
WHEN typeof(message_id) <> 'text' OR typeof(agent_id) <> 'text' OR length(agent_id) < 1
  THEN 'an id is not a text'
WHEN typeof(attempts) <> 'integer' OR typeof(delivered_at_ms) NOT IN ('integer', 'null')
  OR typeof(acked_at_ms) NOT IN ('integer', 'null') THEN 'a number column holds another type'
WHEN attempts < 0 THEN 'its attempts are below 0'
WHEN NOT is_utf8(CAST(message_id || ' ' || agent_id AS BLOB)) THEN 'a text is not UTF-8'
WHEN NOT EXISTS (SELECT 1 FROM v1_messages m WHERE m.id = message_id)
  OR EXISTS (SELECT 1 FROM v1_messages m JOIN temp.left_out o ON o.source = 'messages'
  AND o.src = m.rowid WHERE m.id = message_id) THEN 'its message is not there'
"""
_HUMANS: Final = """
WHEN typeof(request_id) <> 'text' OR length(request_id) < 1 THEN 'its id is not a text'
WHEN typeof(requester_agent) <> 'text' OR length(requester_agent) < 1 OR typeof(kind) <> 'text'
  OR typeof(prompt) <> 'text' OR typeof(state) <> 'text' OR typeof(default_action) <> 'text'
  OR typeof(correlation_id) <> 'text' OR typeof(trace_id) <> 'text'
  THEN 'a text column holds another type'
WHEN typeof(deadline_ms) <> 'integer' THEN 'a number column holds another type'
WHEN typeof(schema_json) NOT IN ('text', 'blob')
  OR typeof(response_json) NOT IN ('text', 'blob', 'null')
  THEN 'its schema or response is neither text nor bytes'
WHEN kind NOT IN ('captcha', 'approval', 'credential', 'choice', 'text')
  THEN 'its kind is unknown'
WHEN state NOT IN ('pending', 'accepted', 'declined', 'cancelled', 'timed_out')
  THEN 'its state is unknown'
WHEN default_action NOT IN ('decline', 'cancel', 'timeout_continue')
  THEN 'its default action is unknown'
WHEN NOT is_utf8(CAST(request_id || ' ' || requester_agent || ' ' || prompt || ' '
  || correlation_id || ' ' || trace_id AS BLOB)) THEN 'a text is not UTF-8'
"""
_LETTERS: Final = """
WHEN typeof(message_id) <> 'text' THEN 'its id is not a text'
WHEN typeof(reason) <> 'text' OR typeof(last_error) NOT IN ('text', 'null')
  THEN 'a text column holds another type'
WHEN typeof(failed_at_ms) <> 'integer' THEN 'a number column holds another type'
WHEN NOT is_utf8(CAST(message_id || ' ' || reason || ' ' || coalesce(last_error, '') AS BLOB))
  THEN 'a text is not UTF-8'
WHEN NOT EXISTS (SELECT 1 FROM v1_messages m WHERE m.id = message_id)
  OR EXISTS (SELECT 1 FROM v1_messages m JOIN temp.left_out o ON o.source = 'messages'
  AND o.src = m.rowid WHERE m.id = message_id) THEN 'its message is not there'
"""
_SCANS: Final = (
    ("agents", "agent_id", _AGENTS),
    ("messages", "id", _MESSAGES),
    ("message_inbox", "delivery_id", _INBOX),
    ("human_requests", "request_id", _HUMANS),
    ("dead_letters", "message_id", _LETTERS),
)
_TIMES: Final = (
    ("messages", "created_at_ms"),
    ("message_inbox", "delivered_at_ms"),
    ("message_inbox", "acked_at_ms"),
    ("dead_letters", "failed_at_ms"),
    ("agents", "last_seen_ms"),
)


def look(connection: Connection, prefix: str = "") -> Outcome:
    """Fill `temp.left_out` and return the rows that would be left out, with the reasons.

    `prefix` stands before the names of version 1's tables.
    """
    for statement in _TABLES:
        connection.execute(statement)
    rows = [(status, state, why) for status, (state, why) in MESSAGE_STATES.items()]
    connection.executemany("INSERT INTO temp.state_map VALUES (?, ?, ?)", rows)
    for table, key, cases in _SCANS:
        statement = _INSERT.format(table=f"v1_{table}", key=key, cases=cases)
        statement = statement.replace("'v1_", "'").replace("v1_", prefix)
        connection.execute(statement)
    return Outcome(left_out=_left_out(connection))


def last_activity(connection: Connection, now_ms: int, prefix: str = "") -> int | None:
    """Return when anything last happened in the source, as far as its rows say.

    Never later than now: a row from the future does not make everything else old.
    """
    known: list[int] = []
    for table, column in _TIMES:
        sql = f"SELECT max({column}) FROM {prefix}{table} WHERE {column} <= ? "
        sql += f"AND typeof({column}) = 'integer'"
        for (value,) in connection.execute(sql, (now_ms,)):
            if isinstance(value, int):
                known.append(value)
    return max(known) if known else None


def _left_out(connection: Connection) -> tuple[LeftOut, ...]:
    rows = connection.execute(
        "SELECT source, key, src, reason FROM temp.left_out ORDER BY source, src"
    )
    return tuple(
        LeftOut(str(table), str(key), int(src), str(reason)) for table, key, src, reason in rows
    )
