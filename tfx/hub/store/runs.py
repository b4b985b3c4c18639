"""Lives of the hub: start, stop, and the jumps of the clock within one.

SQL and events only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.models import HUB, StreamNo
from tfx.hub.store.events import ClockJumped, HubStarted, HubStopped
from tfx.hub.store.kinds import Kind
from tfx.hub.store.wakeups import DEADLINE

if TYPE_CHECKING:
    from tfx.hub.store.tx import Tx

CURRENT: Final = "SELECT stream FROM runs ORDER BY stream DESC LIMIT 1"


def start(tx: Tx, epoch: str, program: str, fold_version: int) -> StreamNo:
    """Record that a life of the hub begins; return its stream."""
    body = HubStarted(epoch=epoch, fold_version=fold_version, program=program)
    return StreamNo(tx.begin_stream(f"run/{epoch}", Kind.HUB_STARTED, HUB, body).stream)


def home(tx: Tx) -> tuple[str, StreamNo] | None:
    """Return name and stream of the life that the hub is in, for an event that is of nothing else.

    None where no life was begun.
    """
    row = tx.one(CURRENT)
    if row is None:
        return None
    run = StreamNo(int(row[0] or 0))
    return f"run/{run}", run


def note(tx: Tx, verb: str) -> None:
    """Keep the key of a request that found nothing to change anywhere (EV-L7)."""
    found = home(tx)
    if found is not None:
        tx.note(*found, verb)


def stop(tx: Tx, run: StreamNo) -> None:
    """Record that it ended in order."""
    tx.append(f"run/{run}", run, Kind.HUB_STOPPED, HUB, HubStopped())


def jump(tx: Tx, run: StreamNo, jump_ms: int) -> None:
    """Move every open deadline with the wall clock (EV-B9)."""
    tx.append(f"run/{run}", run, Kind.CLOCK_JUMPED, HUB, ClockJumped(jump_ms=jump_ms))
    tx.signals.append(DEADLINE)
