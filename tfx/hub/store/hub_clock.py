"""The hub's own time: wall clock at the start, then monotonic (EV-B9, EV-T9).

A step of the wall clock or a sleep of the machine moves no deadline by itself; the difference is
seen here and becomes one `clock_jumped` event that moves all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.core.clock import Clock

JUMP_MS: Final = 5_000
"""A smaller difference is drift, not a jump."""


class HubClock:
    """Milliseconds that never jump by themselves."""

    __slots__ = ("_anchor", "_clock", "_steady_from")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._anchor = clock.now_ms() - clock.monotonic_ms()
        self._steady_from = clock.monotonic_ms()

    def now_ms(self) -> int:
        """Return the hub's time."""
        return self._anchor + self._clock.monotonic_ms()

    def jump_ms(self) -> int:
        """Return how far the wall clock has left the hub's time; 0 within the usual drift."""
        ahead = self._clock.now_ms() - self.now_ms()
        return ahead if abs(ahead) >= JUMP_MS else 0

    def follow(self, jump_ms: int) -> None:
        """Take a jump over, after the deadlines have moved with it."""
        self._anchor += jump_ms
        self._steady_from = self._clock.monotonic_ms()

    def steady_ms(self) -> int:
        """Return for how long the hub runs without a jump; 0 while one is not followed yet.

        Who could not call meanwhile gets time for it before a deadline counts (EV-B9).
        """
        return 0 if self.jump_ms() else self._clock.monotonic_ms() - self._steady_from
