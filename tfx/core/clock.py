"""Time as a value that is passed in: wall clock for people, monotonic clock for durations.

Knows nothing of who asks; tests pass a clock of their own.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What code that needs time asks for."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch (may jump)."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds that only rise; on Linux they stop while the machine sleeps."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000


def iso(at_ms: int) -> str:
    """Return `2026-11-29T16:07:00.123Z`: times are rendered so, never stored so (EV-S14)."""
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
