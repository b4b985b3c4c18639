"""The step from version 2 to version 3: the tables of work come in, no row is touched.

Knows the two schemas; needs the SQL function `is_utf8` on the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.schema import registry
from tfx.hub.schema.outcome import LeftOut, Outcome

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Tell

SOURCE: Final = 2
TARGET: Final = 3
KEPT: Final = (
    "log",
    "forgetting",
    "runs",
    "agents",
    "subscriptions",
    "messages",
    "deliveries",
    "human_requests",
    "beats",
    "totals",
    "counted",
)
"""Every table of version 2 but the stamp."""

# The text of every other table follows from the log's; their types and rules are the old ones.
_SCAN: Final = """
SELECT seq, reason FROM (
  SELECT seq, CASE
    WHEN NOT is_utf8(CAST(kind || ' ' || actor || ' ' || coalesce(op_id, '') || ' ' || body
      AS BLOB)) THEN 'a text is not UTF-8'
    WHEN NOT json_valid(body) THEN 'its body is not JSON'
    WHEN body NOT GLOB '{*' THEN 'its body is not a JSON object'
  END AS reason FROM log)
WHERE reason IS NOT NULL ORDER BY seq
"""


def look(connection: Connection) -> Outcome:
    """Return the events that no hub could read back: version 3 folds the same log (K-37)."""
    rows = connection.execute(_SCAN)
    return Outcome(
        left_out=tuple(LeftOut("log", str(seq), int(str(seq)), str(why)) for seq, why in rows)
    )


def run(connection: Connection, now_ms: int, tell: Tell) -> Outcome:
    """Create what version 3 has and version 2 has not, and stamp it; the fold stays what it was."""
    del now_ms
    for number, sql in enumerate(added := _added(), 1):
        connection.execute(sql)
        tell("schema", number, len(added))
    registry.restamp(connection, TARGET)
    return Outcome()


def prove(connection: Connection, outcome: Outcome, tell: Tell) -> tuple[str, ...]:
    """Return one line for each new table that is not empty."""
    del outcome, tell
    known = _tables(SOURCE)
    found: list[str] = []
    for table in sorted(_tables(TARGET) - known):
        for (number,) in connection.execute(f"SELECT count(*) FROM {table}"):  # noqa: S608
            if number:
                found.append(f"the new table {table} has {number} rows")
    return tuple(found)


def _added() -> list[str]:
    known = {each.sql for each in registry.objects_of(SOURCE)}
    return [each.sql for each in registry.objects_of(TARGET) if each.sql not in known]


def _tables(version: int) -> set[str]:
    return {each.table for each in registry.objects_of(version) if each.type == "table"}
