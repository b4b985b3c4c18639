"""The hub's own time: wall clock at the start, then monotonic (EV-B9, EV-T9).

A step of the wall clock, a sleep of the machine and a time in which the hub itself did not run move
no deadline by themselves; the difference is seen here and becomes one `clock_jumped` event that
moves all of them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.core.clock import Clock

JUMP_MS: Final = 5_000
"""A smaller difference is drift, not a jump; a shorter silence of the writer is load."""


class HubClock:
    """Milliseconds that never jump by themselves; used by the event loop and the writer."""

    __slots__ = ("_anchor", "_clock", "_lock", "_ran_at", "_steady_from")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._anchor = clock.now_ms() - clock.monotonic_ms()
        self._steady_from = clock.monotonic_ms()
        self._ran_at: int | None = None
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Notice from now on when no command is taken for long; who calls this brings one a second.

        A stopped process, a starved machine or a writer that is blocked hears nobody, so its time
        stands still meanwhile, as it does while the machine sleeps (WK-D3, EV-B9).
        """
        with self._lock:
            self._ran_at = self._clock.monotonic_ms()

    def now_ms(self) -> int:
        """Return the hub's time."""
        with self._lock:
            now = self._looked()
            return self._anchor + now

    def command_ms(self) -> int:
        """Return the hub's time for a command that is taken now."""
        with self._lock:
            now = self._looked()
            if self._ran_at is not None:
                self._ran_at = now
            return self._anchor + now

    def jump_ms(self) -> int:
        """Return how far the wall clock has left the hub's time; 0 within the usual drift."""
        ahead = self._clock.now_ms() - self.now_ms()
        return ahead if abs(ahead) >= JUMP_MS else 0

    def follow(self, jump_ms: int) -> None:
        """Take a jump over, after the deadlines have moved with it."""
        with self._lock:
            self._anchor += jump_ms
            self._steady_from = self._clock.monotonic_ms()

    def steady_ms(self) -> int:
        """Return for how long the hub runs without a jump; 0 while one is not followed yet.

        Who could not call meanwhile gets time for it before a deadline counts (EV-B9).
        """
        return 0 if self.jump_ms() else self._clock.monotonic_ms() - self._steady_from

    def _looked(self) -> int:
        """Return the monotonic time; a gap since the last command is taken out of ours."""
        now = self._clock.monotonic_ms()
        if self._ran_at is not None and now - self._ran_at > JUMP_MS:
            self._anchor -= now - self._ran_at
            self._ran_at = now
        return now
