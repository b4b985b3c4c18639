"""What goes into the writer's thread and what comes out of it, and what its WAL is like.

Knows neither thread nor connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable

    from tfx.hub.store.events import Event
    from tfx.hub.store.tally import Effect
    from tfx.hub.store.tx import Tx

T = TypeVar("T")


@dataclass(slots=True)
class Job(Generic[T]):
    """A command and who waits for it."""

    command: Callable[[Tx], T]
    future: asyncio.Future[T]


@dataclass(slots=True)
class Committed:
    """What one group commit did; handed to the event loop's thread in one call."""

    answers: list[tuple[asyncio.Future[object], object]] = field(default_factory=list)
    refusals: list[tuple[asyncio.Future[object], BaseException]] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    signals: set[Hashable] = field(default_factory=set)
    commit_ms: float = 0.0


@dataclass(slots=True)
class WalState:
    """What the last checkpoint said; read by status."""

    frames: int = 0
    pinned: bool = False
    syncs: int = 0
    checkpoints: int = 0
