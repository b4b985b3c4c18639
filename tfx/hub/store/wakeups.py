"""Wake what waits on the event loop, after a commit and from memory (EV-S13).

A wake-up is a hint: whoever wakes reads again. Knows no SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeAlias

Signal: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Inbox:
    """Something became claimable for this receiver."""

    receiver: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A request or a human request was settled; the stream is the request's."""

    stream: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The log grew."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline may be nearer now than the one that is waited for."""


APPENDED: Final = Appended()
DEADLINE: Final = Deadline()


class Waiter:
    """`async with wakeups.listen(signal) as waiter:` — subscribe first, then read, then wait."""

    __slots__ = ("_event", "_hub", "_signals")

    def __init__(self, hub: Wakeups, signals: tuple[Signal, ...]) -> None:
        self._hub = hub
        self._signals = signals
        self._event = asyncio.Event()

    def __enter__(self) -> Self:
        for signal in self._signals:
            self._hub.add(signal, self._event)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for signal in self._signals:
            self._hub.discard(signal, self._event)

    async def wait(self, timeout_s: float) -> bool:
        """Return True when woken; False at the time-out or when the hub drains."""
        if self._hub.draining:
            return False
        if not self._event.is_set():
            if timeout_s <= 0:
                return False
            try:
                async with asyncio.timeout(timeout_s):
                    await self._event.wait()
            except TimeoutError:
                return False
        self._event.clear()
        return not self._hub.draining


class Wakeups:
    """Who waits for what; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._waiting: dict[Signal, set[asyncio.Event]] = {}
        self.draining = False

    def listen(self, *signals: Signal) -> Waiter:
        """Return a waiter that is woken by any of the signals."""
        return Waiter(self, signals)

    def fire(self, signals: Iterable[Signal]) -> None:
        """Wake whoever listens to one of the signals."""
        for signal in signals:
            for event in self._waiting.get(signal, ()):
                event.set()

    def drain(self) -> None:
        """Answer every wait now, and every later one at once (H-17)."""
        self.draining = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def waiting(self, kind: type[Signal]) -> list[Signal]:
        """Return the signals of a kind that somebody waits for."""
        return [signal for signal in self._waiting if isinstance(signal, kind)]

    @property
    def open_waits(self) -> int:
        """How many waits are open."""
        return len({id(event) for events in self._waiting.values() for event in events})

    def add(self, signal: Signal, event: asyncio.Event) -> None:
        """Register a waiter's event."""
        self._waiting.setdefault(signal, set()).add(event)

    def discard(self, signal: Signal, event: asyncio.Event) -> None:
        """Forget a waiter's event."""
        events = self._waiting.get(signal)
        if events is not None:
            events.discard(event)
            if not events:
                del self._waiting[signal]
