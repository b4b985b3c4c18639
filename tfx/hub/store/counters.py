"""Totals since the file was made: counted in the writer, saved with each sync, exact after a crash.

Totals hold no agent and no payload (H-76), and survive forgetting (H-73).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tfx.hub.store.events import Event, decode_body
from tfx.hub.store.tally import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfx.core.database import Connection

_SAVE = (
    "INSERT INTO totals (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SINCE = "SELECT seq, stream, at_ms, kind, actor, body FROM log WHERE seq > ? ORDER BY seq"


class Counters:
    """The totals; written by the writer's thread, copied by others."""

    def __init__(self) -> None:
        self._totals: Counter[str] = Counter()
        self._seq = 0
        self._saved_seq = 0
        self.skipped = 0

    def load(self, connection: Connection) -> None:
        """Read the saved totals and count what came after them (the last second of a crash)."""
        for name, value in connection.execute("SELECT name, value FROM totals"):
            self._totals[str(name)] = int(value)
        for seq, skipped in connection.execute("SELECT seq, skipped FROM counted"):
            self._seq = self._saved_seq = int(seq)
            self.skipped = int(skipped)
        for seq, stream, at_ms, kind, actor, text in connection.execute(_SINCE, (self._seq,)):
            body = decode_body(str(kind), str(text))
            self._seq = int(seq)
            if body is None:
                self.skipped += 1
                continue
            self._count(Event(self._seq, int(stream), int(at_ms), str(kind), str(actor), body))

    def add(self, events: Iterable[Event]) -> None:
        """Count events that are committed."""
        for event in events:
            self._count(event)
            self._seq = event.seq

    @property
    def seq(self) -> int:
        """Return the last seq that is counted."""
        return self._seq

    def copy(self) -> dict[str, int]:
        """Return the totals by name."""
        return dict(sorted(self._totals.copy().items()))

    def save(self, connection: Connection) -> None:
        """Write what changed, inside the writer's transaction."""
        if self._seq == self._saved_seq:
            return
        # All of them, not only what changed: a rolled-back save then leaves nothing to repair.
        for name, value in self.copy().items():
            connection.execute(_SAVE, (name, value))
        connection.execute("UPDATE counted SET seq = ?, skipped = ?", (self._seq, self.skipped))
        self._saved_seq = self._seq

    def _count(self, event: Event) -> None:
        for name in counted(event):
            self._totals[name] += 1
