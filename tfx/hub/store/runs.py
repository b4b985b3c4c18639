"""Lives of the hub: start, stop, and the jumps of the clock within one.

SQL and events only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.hub.models import HUB, StreamNo
from tfx.hub.store.events import ClockJumped, HubStarted, HubStopped
from tfx.hub.store.kinds import Kind
from tfx.hub.store.wakeups import DEADLINE

if TYPE_CHECKING:
    from tfx.hub.store.tx import Tx


def start(tx: Tx, epoch: str, program: str, fold_version: int) -> StreamNo:
    """Record that a life of the hub begins; return its stream."""
    body = HubStarted(epoch=epoch, fold_version=fold_version, program=program)
    return StreamNo(tx.begin_stream(f"run/{epoch}", Kind.HUB_STARTED, HUB, body).stream)


def stop(tx: Tx, run: StreamNo) -> None:
    """Record that it ended in order."""
    tx.append(f"run/{run}", run, Kind.HUB_STOPPED, HUB, HubStopped())


def jump(tx: Tx, run: StreamNo, jump_ms: int) -> None:
    """Move every open deadline with the wall clock (EV-B9)."""
    tx.append(f"run/{run}", run, Kind.CLOCK_JUMPED, HUB, ClockJumped(jump_ms=jump_ms))
    tx.signals.append(DEADLINE)
