"""Wake what waits on the event loop, after a commit and from memory (EV-S13).

A wake-up is a hint: whoever wakes reads again. Knows no SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

Signal: TypeAlias = Hashable
T = TypeVar("T")


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
    """`with wakeups.listen(signal) as waiter:` — subscribe first, then read, then wait."""

    __slots__ = ("_counted", "_event", "_hub", "_signals")

    def __init__(self, hub: Wakeups, signals: tuple[Signal, ...], *, counted: bool) -> None:
        self._counted = counted
        self._hub = hub
        self._signals = signals
        self._event = asyncio.Event()

    def __enter__(self) -> Self:
        self._hub.open_waits += self._counted
        for signal in self._signals:
            self._hub.add(signal, self._event)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hub.open_waits -= self._counted
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
        self.open_waits = 0

    def listen(self, *signals: Signal, counted: bool = True) -> Waiter:
        """Return a waiter that is woken by any of the signals; the hub's own are not counted."""
        return Waiter(self, signals, counted=counted)

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

    def waiting(self, kind: type[T]) -> list[T]:
        """Return the signals of a kind that somebody waits for."""
        return [signal for signal in self._waiting if isinstance(signal, kind)]

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
