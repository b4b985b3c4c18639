"""Prove that tables kept every row, byte for byte: against a backup, or against digests.

Knows no table by name; every table it is given must be STRICT and have a primary key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Tell

_COLUMNS: Final = "SELECT name, type, pk FROM main.pragma_table_info(?) ORDER BY cid"
_SEQUENCE: Final = (
    "SELECT (SELECT seq FROM main.sqlite_sequence WHERE name = ?1) IS NOT "
    "(SELECT seq FROM old.sqlite_sequence WHERE name = ?1)"
)
_MARK: Final = "SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?"
_TOLD_EVERY: Final = 10_000


def differences(connection: Connection, tables: Sequence[str], tell: Tell) -> list[str]:
    """Compare tables with those of the backup that is attached as `old`; return what differs.

    Rows are matched by primary key and compared with `IS`, column by column (U-54, U-120); the
    AUTOINCREMENT marks must be the same (U-105).
    """
    found: list[str] = []
    for table in tables:
        more, changed = _compared(connection, table)
        if more or changed:
            found.append(f"{table} has {more} rows more and {changed} changed or missing ones")
        for (moved,) in connection.execute(_SEQUENCE, (table,)):
            if moved:
                found.append(f"the mark of {table} moved")
        total = _count(connection, table)
        tell(table, total, total)
    return found


def digests(connection: Connection, tables: Sequence[str], tell: Tell) -> dict[str, str]:
    """Return a digest of each table: its rows in the order of the primary key, and its mark.

    For the second step of a chain: what the first one left is in no backup.
    """
    return {table: _digest(connection, table, tell) for table in tables}


def changed(connection: Connection, before: Mapping[str, str], tell: Tell) -> list[str]:
    """Return one line for each table that no longer has the digest it had."""
    after = digests(connection, tuple(before), tell)
    return [f"rows of {table} changed" for table in before if before[table] != after[table]]


def _compared(connection: Connection, table: str) -> tuple[int, int]:
    columns = _columns(connection, table)
    keys = " AND ".join(f'n."{name}" = o."{name}"' for name, _, key in columns if key)
    same = " AND ".join(f'n."{name}" IS o."{name}"' for name, _, _ in columns)
    sql = (
        f'SELECT (SELECT count(*) FROM main."{table}") - (SELECT count(*) FROM old."{table}"), '
        f'(SELECT count(*) FROM old."{table}" o LEFT JOIN main."{table}" n ON {keys} '
        f"WHERE NOT ({same}))"
    )
    rows = connection.execute(sql).fetchall()
    return int(rows[0][0] or 0), int(rows[0][1] or 0)


def _digest(connection: Connection, table: str, tell: Tell) -> str:
    columns = _columns(connection, table)
    # A text is read as its bytes: it may hold NUL or what is not UTF-8, and STRICT knows its type.
    shown = ", ".join(
        f'CAST("{name}" AS BLOB)' if kind == "TEXT" else f'"{name}"' for name, kind, _ in columns
    )
    ordered = sorted((key, name) for name, _, key in columns if key)
    keys = ", ".join(f'"{name}"' for _, name in ordered)
    digest = hashlib.blake2b()
    total = _count(connection, table)
    rows = connection.execute(f'SELECT {shown} FROM main."{table}" ORDER BY {keys}')
    for done, row in enumerate(rows, 1):
        digest.update(repr(row).encode())
        if done % _TOLD_EVERY == 0:
            tell(table, done, total)
    tell(table, total, total)
    marks = connection.execute(_MARK, (table,)).fetchall()
    digest.update(repr(marks).encode())
    return digest.hexdigest()


def _columns(connection: Connection, table: str) -> list[tuple[str, str, int]]:
    return [
        (str(name), str(kind), int(str(key)))
        for name, kind, key in connection.execute(_COLUMNS, (table,))
    ]


def _count(connection: Connection, table: str) -> int:
    return sum(int(row[0]) for row in connection.execute(f'SELECT count(*) FROM main."{table}"'))
