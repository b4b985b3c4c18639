"""Beats: when an agent was last heard and until when its lease runs; volatile, never events.

Kept in memory and written with the next sync, so a call costs no write (event-log.md §3).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.core.database import Connection

_SAVE = (
    "INSERT INTO beats (agent, seen_at_ms, lease_expires_ms) VALUES (?, ?, ?) "
    "ON CONFLICT (agent) DO UPDATE SET seen_at_ms = excluded.seen_at_ms, "
    "lease_expires_ms = excluded.lease_expires_ms"
)


@dataclass(frozen=True, slots=True)
class Beat:
    """The last call of an agent and the end of its lease, in the hub's time."""

    seen_at_ms: int
    lease_expires_ms: int


class Beats:
    """All beats; touched by the event loop and the writer, each call under the lock."""

    def __init__(self) -> None:
        self._beats: dict[str, Beat] = {}
        self._dirty: set[str] = set()
        self._lock = threading.Lock()

    def load(self, connection: Connection) -> None:
        """Read what the last run saved."""
        for agent, seen, expires in connection.execute(
            "SELECT agent, seen_at_ms, lease_expires_ms FROM beats"
        ):
            self._beats[str(agent)] = Beat(int(seen), int(expires))

    def get(self, agent: str) -> Beat | None:
        """Return the beat of an agent, if one was ever taken."""
        return self._beats.get(agent)

    def any_live(self, now_ms: int) -> bool:
        """Return True while some lease runs."""
        return any(beat.lease_expires_ms > now_ms for beat in self._beats.values())

    def take(self, agent: str, now_ms: int, ttl_ms: int) -> Beat:
        """Record a call; the lease runs from now on."""
        beat = Beat(now_ms, now_ms + ttl_ms)
        with self._lock:
            self._beats[agent] = beat
            self._dirty.add(agent)
        return beat

    def touch(self, agent: str, now_ms: int) -> None:
        """Record a call of an agent that has a lease, for as long as that lease was given."""
        old = self._beats.get(agent)
        if old is not None and old.seen_at_ms < now_ms:
            self.take(agent, now_ms, max(old.lease_expires_ms - old.seen_at_ms, 0))

    def end(self, agent: str, now_ms: int) -> None:
        """Let a lease end now."""
        with self._lock:
            self._beats[agent] = Beat(now_ms, now_ms)
            self._dirty.add(agent)

    def shift(self, jump_ms: int) -> None:
        """Move every beat with a jump of the clock (EV-B9)."""
        with self._lock:
            for agent, beat in self._beats.items():
                self._beats[agent] = Beat(
                    beat.seen_at_ms + jump_ms, beat.lease_expires_ms + jump_ms
                )
                self._dirty.add(agent)

    def save(self, connection: Connection) -> None:
        """Write what changed, inside the writer's transaction."""
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            rows = [(agent, self._beats.get(agent)) for agent in sorted(dirty)]
        for agent, beat in rows:
            if beat is None:
                connection.execute("DELETE FROM beats WHERE agent = ?", (agent,))
            else:
                connection.execute(_SAVE, (agent, beat.seen_at_ms, beat.lease_expires_ms))

    def forget(self, agent: str) -> None:
        """Drop the beat of an agent that is forgotten."""
        with self._lock:
            self._beats.pop(agent, None)
            self._dirty.add(agent)
