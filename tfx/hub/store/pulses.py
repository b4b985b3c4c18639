"""Pulses: the last sign of life that a session or an invocation gave; volatile, never events.

Kept in memory and written with the next sync, so a beat costs no write (event-log.md §3).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.core.database import Connection

_SAVE: Final = (
    "INSERT INTO pulses (id, sequence, observed_at_ms, received_at_ms) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, "
    "observed_at_ms = excluded.observed_at_ms, received_at_ms = excluded.received_at_ms"
)


@dataclass(frozen=True, slots=True)
class Pulse:
    """The client's counter and time, and the hub's time of receipt."""

    sequence: int
    observed_at_ms: int
    received_at_ms: int


class Pulses:
    """All pulses; touched by the event loop and the writer, each call under the lock."""

    def __init__(self) -> None:
        self._pulses: dict[str, Pulse] = {}
        self._dirty: set[str] = set()
        self._lock = threading.Lock()

    def load(self, connection: Connection) -> None:
        """Read what the last run saved."""
        for name, sequence, observed, received in connection.execute(
            "SELECT id, sequence, observed_at_ms, received_at_ms FROM pulses"
        ):
            self._pulses[str(name)] = Pulse(int(sequence), int(observed), int(received))

    def get(self, name: str) -> Pulse | None:
        """Return the last pulse, if one was ever taken."""
        return self._pulses.get(name)

    def take(self, name: str, sequence: int, observed_at_ms: int, received_at_ms: int) -> bool:
        """Take a pulse whose counter rises and whose time does not go back; else nothing (WK-L25).

        What counts later is the time of receipt, never the client's (WK-L26).
        """
        with self._lock:
            old = self._pulses.get(name)
            if old is not None and (
                sequence <= old.sequence or observed_at_ms < old.observed_at_ms
            ):
                return False
            self._pulses[name] = Pulse(sequence, observed_at_ms, received_at_ms)
            self._dirty.add(name)
        return True

    def forget_before(self, at_ms: int) -> None:
        """Drop every pulse that was received before a time: its session is long gone."""
        with self._lock:
            for name, pulse in list(self._pulses.items()):
                if pulse.received_at_ms < at_ms:
                    del self._pulses[name]
                    self._dirty.add(name)

    def shift(self, jump_ms: int) -> None:
        """Move every time of receipt with a jump of the clock (EV-B9)."""
        with self._lock:
            for name, old in self._pulses.items():
                moved = old.received_at_ms + jump_ms
                self._pulses[name] = Pulse(old.sequence, old.observed_at_ms, moved)
                self._dirty.add(name)

    def save(self, connection: Connection) -> None:
        """Write what changed, inside the writer's transaction."""
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            rows = [(name, self._pulses.get(name)) for name in sorted(dirty)]
        for name, pulse in rows:
            if pulse is None:
                connection.execute("DELETE FROM pulses WHERE id = ?", (name,))
            else:
                values = (name, pulse.sequence, pulse.observed_at_ms, pulse.received_at_ms)
                connection.execute(_SAVE, values)
