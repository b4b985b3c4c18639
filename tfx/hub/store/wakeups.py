"""Wake what waits on the event loop, after a commit and from memory (EV-S13).

A wake-up is a hint: whoever wakes reads again. Knows no SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from tfx.hub.store.candidate import Candidate

Signal: TypeAlias = Hashable
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inbox:
    """Something became claimable for this receiver."""

    receiver: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A request or a human request was settled; the stream is the request's.

    A committed answer comes with it, so that who waits for it need not read it.
    """

    stream: int
    answer: Candidate | None = field(default=None, compare=False, repr=False)


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

    __slots__ = ("_counted", "_event", "_hub", "_signals", "news")

    def __init__(self, hub: Wakeups, signals: tuple[Signal, ...], *, counted: bool) -> None:
        self._counted = counted
        self._hub = hub
        self._signals = signals
        self._event = asyncio.Event()
        self.news: Signal | None = None

    def __enter__(self) -> Self:
        self._hub.open_waits += self._counted
        for signal in self._signals:
            self._hub.add(signal, self)
        return self

    def wake(self, news: Signal | None) -> None:
        """Wake up with the signal that was fired; None when the hub drains."""
        self.news = news
        self._event.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hub.open_waits -= self._counted
        for signal in self._signals:
            self._hub.discard(signal, self)

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
        self._waiting: dict[Signal, set[Waiter]] = {}
        self.draining = False
        self.open_waits = 0

    def listen(self, *signals: Signal, counted: bool = True) -> Waiter:
        """Return a waiter that is woken by any of the signals.

        `counted` is for calls of clients that may wait; not for the hub's own chores, nor for a
        call that only looks.
        """
        return Waiter(self, signals, counted=counted)

    def fire(self, signals: Iterable[Signal]) -> None:
        """Wake whoever listens to one of the signals."""
        for signal in signals:
            for waiter in self._waiting.get(signal, ()):
                waiter.wake(signal)

    def drain(self) -> None:
        """Answer every wait now, and every later one at once (H-17)."""
        self.draining = True
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.wake(None)

    def waiting(self, kind: type[T]) -> list[T]:
        """Return the signals of a kind that somebody waits for."""
        return [signal for signal in self._waiting if isinstance(signal, kind)]

    def add(self, signal: Signal, waiter: Waiter) -> None:
        """Register a waiter."""
        self._waiting.setdefault(signal, set()).add(waiter)

    def discard(self, signal: Signal, waiter: Waiter) -> None:
        """Forget a waiter."""
        waiters = self._waiting.get(signal)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[signal]
