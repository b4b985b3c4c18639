"""Wait for what another process, thread or task brings about, however slow the machine is.

A limit here only guards against hanging: nothing that is asserted depends on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT_S = 90.0


def until(true: Callable[[], object], *, limit_s: float = LIMIT_S) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


async def until_in_loop(true: Callable[[], object]) -> None:
    """Let the event loop go on until it is so."""
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.002)


def pass_time(seconds: float) -> None:
    """Let the timers of the running loop believe that time has passed."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]
