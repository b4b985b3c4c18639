"""Write log and projections of version 2 from the rows of version 1, by SQL (K-40).

Runs inside the caller's transaction; that a refold gives the same rows is a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.schema import registry
from tfx.hub.schema.from_v1 import scan, statements
from tfx.hub.schema.from_v1.mapping import DEAD_REASONS, SECRET_KINDS
from tfx.hub.schema.identity import identify
from tfx.hub.schema.outcome import Outcome
from tfx.hub.schema.triflux import is_known_extra

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Tell

TARGET: Final = 2
FOLD: Final = 1
"""The fold that the statements follow: a program with another one folds again after the chain."""
TABLES: Final = ("agents", "messages", "message_inbox", "human_requests", "dead_letters")
CHUNK: Final = 2_000


def run(connection: Connection, now_ms: int, tell: Tell) -> Outcome:
    """Turn a database of version 1 into one of version 2; `now_ms` is the time of the events."""
    not_taken = _drop_extras(connection)
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} RENAME TO v1_{table}")
    found = scan.look(connection, "v1_")
    for table in TABLES:
        connection.execute(
            f"DELETE FROM v1_{table} WHERE rowid IN "
            f"(SELECT src FROM temp.left_out WHERE source = '{table}')"
        )
    last = scan.last_activity(connection, now_ms, "v1_")
    shift = 0 if last is None else now_ms - last
    later = _make_tables(connection)
    _Filling(connection, now_ms, now_ms if last is None else last, shift, tell).fill()
    dropped = _dropped(connection)
    for table in TABLES:
        connection.execute(f"DROP TABLE v1_{table}")
    for statement in later:
        connection.execute(statement)
    registry.restamp(connection, TARGET, FOLD)
    return Outcome(
        left_out=found.left_out,
        dropped_values=dropped,
        not_taken=not_taken,
        last_activity_ms=last,
        shift_ms=shift,
    )


class _Filling:
    """The rows of one database, table by table, in chunks of the order they were written in."""

    def __init__(
        self,
        connection: Connection,
        now_ms: int,
        last_ms: int,
        shift_ms: int,
        tell: Tell,
    ) -> None:
        self._connection = connection
        self._tell = tell
        self._times = {"now": now_ms, "last": last_ms, "shift": shift_ms}
        self._seq = 0

    def fill(self) -> None:
        """Write agents, messages with their deliveries, and human requests."""
        for statement in statements.TEMPORARY:
            self._connection.execute(statement)
        self._connection.executemany(
            "INSERT INTO temp.reason_map VALUES (?, ?)", list(DEAD_REASONS.items())
        )
        self._connection.execute(statements.ANSWERS)
        self._table("agents", statements.AGENTS)
        self._table("messages", statements.MESSAGES)
        self._table("human_requests", statements.HUMANS)
        self._outcomes()
        self._connection.execute("INSERT INTO counted VALUES (1, ?, 0, 0, 0)", (self._seq,))
        self._connection.execute(
            "INSERT INTO totals SELECT 'events.imported', count(*) FROM log HAVING count(*) > 0"
        )

    def _table(self, table: str, chunk: tuple[str, ...]) -> None:
        total = self._count(f"SELECT count(*) FROM v1_{table}")
        self._connection.execute("DELETE FROM temp.kept")
        self._connection.execute(
            f"INSERT INTO temp.kept SELECT row_number() OVER (ORDER BY rowid) + ?, rowid "
            f"FROM v1_{table}",
            (self._seq,),
        )
        for low in range(0, total, CHUNK):
            bounds = {"low": self._seq + low + 1, "high": self._seq + low + CHUNK}
            for statement in chunk:
                self._connection.execute(statement, {**self._times, **bounds})
            self._tell(table, min(low + CHUNK, total), total)
        self._seq += total

    def _outcomes(self) -> None:
        """Close what was closed: a second event of the stream, with the answer as payload."""
        closed = self._count("SELECT count(*) FROM human_requests WHERE state <> 'pending'")
        values = {**self._times, "after": self._seq}
        for statement in statements.OUTCOMES:
            self._connection.execute(statement, values)
        self._seq += closed

    def _count(self, sql: str) -> int:
        return sum(int(row[0]) for row in self._connection.execute(sql))


def _drop_extras(connection: Connection) -> dict[str, int]:
    extras = [each for each in identify(connection).objects if is_known_extra(each)]
    counts: dict[str, int] = {}
    for each in extras:
        if each.type == "table":
            for (number,) in connection.execute(f'SELECT count(*) FROM "{each.name}"'):
                counts[each.name] = int(number)
            connection.execute(f'DROP TABLE "{each.name}"')
    return counts


def _make_tables(connection: Connection) -> list[str]:
    """Make the tables of the target; return the statements for indexes and triggers, for later."""
    later: list[str] = []
    for each in registry.objects_of(TARGET):
        if each.type == "table":
            connection.execute(each.sql)
        else:
            later.append(each.sql)
    return later


def _dropped(connection: Connection) -> dict[str, int]:
    kinds = ", ".join(f"'{kind}'" for kind in SECRET_KINDS)
    rows = connection.execute(
        "SELECT kind, count(*) FROM v1_human_requests WHERE response_json IS NOT NULL "
        f"AND kind IN ({kinds}) GROUP BY kind"
    )
    return {str(kind): int(number) for kind, number in rows}
