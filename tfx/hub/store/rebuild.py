"""Discard the projections and fold them again from the log, or only compare (EV-P2 … EV-P6).

Knows no event by name; the fold does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tfx.core import database
from tfx.hub.schema import registry
from tfx.hub.store.events import Event, decode_body
from tfx.hub.store.fold import fold
from tfx.hub.store.projections import apply
from tfx.hub.store.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfx.core.database import Connection, Row
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Tx

PAGE: Final = 5_000
DIFFERENCES_SHOWN: Final = 20

_PAGE_SQL: Final = (
    "SELECT seq, stream, at_ms, kind, actor, body FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Folded:
    """What a refold did."""

    events: int
    skipped: int
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class Differing:
    """One row that is not as the log says; its key, never its values."""

    table: str
    key: str
    what: str


def new_scratch() -> Connection:
    """Return an empty private database with the current schema."""
    connection = database.open_scratch()
    registry.create(connection)
    return connection


@dataclass(slots=True)
class Refold:
    """A fold of the log in a scratch database, page by page, so that no read stays open."""

    scratch: Connection = field(default_factory=new_scratch)
    seq: int = 0
    events: int = 0
    skipped: int = 0
    forgotten: int | None = None

    def take_page(self, reader: Reader) -> bool:
        """Fold the next page; return False when the log has no more."""
        if self._forgot(reader):
            self.scratch.close()
            self.scratch = new_scratch()
            self.seq = self.events = self.skipped = 0
        rows = reader.all(_PAGE_SQL, (self.seq, PAGE))
        with database.Transaction(self.scratch):
            self._fold(rows)
        return len(rows) == PAGE

    def compare(self, reader: Reader) -> list[Differing] | None:
        """Fold what is new and compare every row; None when events were forgotten meanwhile."""
        if self._forgot(reader):
            return None
        while self.take_page(reader):
            pass
        found: list[Differing] = []
        for table in registry.PROJECTIONS:
            for each in _differences(reader.connection, self.scratch, table):
                found.append(each)
                if len(found) >= DIFFERENCES_SHOWN:
                    return found
        return found

    def close(self) -> None:
        """Drop the scratch database."""
        self.scratch.close()

    def result(self) -> Folded:
        """Return what was folded."""
        return Folded(self.events, self.skipped, count_rows(self.scratch))

    def _forgot(self, reader: Reader) -> bool:
        row = reader.one("SELECT forgotten_seq FROM counted")
        forgotten = int(row[0] or 0) if row is not None else 0
        before, self.forgotten = self.forgotten, forgotten
        return before is not None and before != forgotten

    def _fold(self, rows: list[Row]) -> None:
        skipped = fold_rows(self.scratch, iter(rows))
        self.events += len(rows)
        self.skipped += skipped
        if rows:
            self.seq = int(rows[-1][0] or 0)


def refold(tx: Tx) -> Folded:
    """Drop and recreate every projection and fold the whole log, in the writer's transaction.

    Readers see the old rows or the new ones (EV-P6); the tables come from the current DDL (EV-P4).
    """
    connection = tx.connection
    recreate(connection)
    events = skipped = seq = 0
    while rows := tx.all(_PAGE_SQL, (seq, PAGE)):
        skipped += fold_rows(connection, iter(rows))
        events += len(rows)
        seq = int(rows[-1][0] or 0)
    connection.execute("UPDATE stamp SET fold_version = ?", (registry.FOLD,))
    connection.execute("UPDATE counted SET skipped = ?", (skipped,))
    tx.effects.append(Tally.load(connection))
    return Folded(events, skipped, count_rows(connection))


def recreate(connection: Connection) -> None:
    """Drop the projections and make them again from the current schema text; DROP, not DELETE."""
    for table in registry.PROJECTIONS:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in registry.statements_of(registry.PROJECTIONS):
        connection.execute(statement)


def fold_rows(connection: Connection, rows: Iterator[Row]) -> int:
    """Fold rows of the log; return how many are of kinds this program does not know (EV-P5)."""
    skipped = 0
    for seq, stream, at_ms, kind, actor, text in rows:
        body = decode_body(str(kind), str(text))
        if body is None:
            skipped += 1
            continue
        event = Event(int(seq), int(stream), int(at_ms), str(kind), str(actor), body)  # type: ignore[arg-type]
        apply(connection, fold(event) or [])
    return skipped


def count_rows(connection: Connection) -> dict[str, int]:
    """Return how many rows each projection has."""
    counts = {}
    for table in registry.PROJECTIONS:
        for (number,) in connection.execute(f"SELECT count(*) FROM {table}"):  # noqa: S608
            counts[table] = int(number)
    return counts


def dump(connection: Connection, table: str) -> Iterator[Row]:
    """Yield every row of a projection, all columns, in the order of its primary key."""
    keys = ", ".join(key_columns(connection, table))
    yield from connection.execute(f"SELECT * FROM {table} ORDER BY {keys}")  # noqa: S608


def key_columns(connection: Connection, table: str) -> list[str]:
    """Return the columns of a table's primary key, in order."""
    rows = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)
    )
    return [str(name) for (name,) in rows]


def _differences(live: Connection, folded: Connection, table: str) -> Iterator[Differing]:
    width = len(key_columns(live, table))
    columns = [
        str(name) for (name,) in live.execute("SELECT name FROM pragma_table_info(?)", (table,))
    ]
    keys = [columns.index(name) for name in key_columns(live, table)]

    def key(row: Row) -> Row:
        return tuple(row[at] for at in keys)

    have, want = dump(live, table), dump(folded, table)
    left, right = next(have, None), next(want, None)
    while left is not None or right is not None:
        if left is not None and right is not None and key(left) == key(right):
            if left != right:
                names = [n for n, a, b in zip(columns, left, right, strict=True) if a != b]
                yield Differing(table, _key_text(key(left)), f"differs in {', '.join(names)}")
            left, right = next(have, None), next(want, None)
        elif right is None or (left is not None and _before(key(left), key(right))):
            yield Differing(table, _key_text(key(left or ())[:width]), "is not in the log")
            left = next(have, None)
        else:
            yield Differing(table, _key_text(key(right)), "is missing")
            right = next(want, None)


def _before(one: Row, other: Row) -> bool:
    for a, b in zip(one, other, strict=True):
        if a != b:
            return _sortable(a) < _sortable(b)
    return False


def _sortable(value: object) -> tuple[int, int, bytes]:
    # Keys are integers and texts; SQLite orders texts by their UTF-8 bytes.
    return (0, value, b"") if isinstance(value, int) else (1, 0, str(value).encode())


def _key_text(key: Row) -> str:
    return "/".join(str(part) for part in key)
