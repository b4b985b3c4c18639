"""One consistent look at the database, handed to a query.

Knows no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.core.database import Connection, Row, Value


@dataclass(frozen=True, slots=True)
class Reader:
    """One consistent look at the database."""

    connection: Connection
    now_ms: int

    def one(self, sql: str, values: tuple[Value, ...] = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.connection.execute(sql, values).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, values: tuple[Value, ...] = ()) -> list[Row]:
        """Return every row of a query."""
        return self.connection.execute(sql, values).fetchall()
