"""Look into the hub's database for who holds agents and what is recorded as running.

Opens read-only as `inspection` does (K-22) and judges nothing: whether a holder still lives is for
the caller to ask its process.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.core import database
from tfx.core.clock import SystemClock
from tfx.hub.occupancy_models import InvocationKind
from tfx.hub.store import invocations, occupancy
from tfx.hub.store.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from tfx.core.identity import ProcessIdentity
    from tfx.hub.models import AgentId
    from tfx.hub.occupancy_models import Tier

MOST: Final = 1_000
_HEARD: Final = "SELECT received_at_ms FROM pulses WHERE id = ?"
_LOST: Final = "SELECT count(*) FROM invocations WHERE ended_at_ms >= ? AND state = 'lost'"
_BEFORE: Final = "SELECT count(*) FROM invocations WHERE state = 'running' AND stream > ?"


@dataclass(frozen=True, slots=True)
class SeatHolder:
    """Who keeps an agent busy, since when, and when it was last heard."""

    agent: AgentId
    tier: Tier
    id: str
    process: ProcessIdentity
    since_ms: int
    heard_ms: int
    message: str | None


@dataclass(frozen=True, slots=True)
class RunningRow:
    """An invocation that is recorded as running."""

    id: str
    kind: InvocationKind
    agent: AgentId
    process: ProcessIdentity
    started_at_ms: int
    heard_ms: int


@dataclass(frozen=True, slots=True)
class Occupants:
    """What was seen; `running` holds the oldest, `unseen` says how many more there are."""

    seats: tuple[SeatHolder, ...]
    running: tuple[RunningRow, ...]
    unseen: int
    lost: int


def look(path: Path, *, lost_since_ms: int = 0) -> Occupants:
    """Return who holds agents and what runs; `lost` counts what was lost since a time.

    The file must have the current schema. Raises what opening and reading it raises.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        reader = Reader(connection, SystemClock().now_ms())
        rows = invocations.running(reader, 0, MOST)
        last = rows[-1].stream if rows else 0
        return Occupants(
            seats=_seats(reader),
            running=tuple(
                RunningRow(
                    row.id,
                    InvocationKind(row.kind),
                    row.agent,
                    occupancy.process_of(row.holder),
                    row.started_at_ms,
                    _heard(reader, row.id, row.started_at_ms),
                )
                for row in rows
            ),
            unseen=_count(reader, _BEFORE, last),
            lost=_count(reader, _LOST, lost_since_ms),
        )


def _seats(reader: Reader) -> tuple[SeatHolder, ...]:
    return tuple(
        SeatHolder(
            row.agent,
            seat.tier,
            seat.id,
            seat.process,
            seat.since_ms,
            _heard(reader, seat.id, seat.since_ms),
            seat.message,
        )
        for row in occupancy.occupied(reader)
        for seat in row.seats
    )


def _heard(reader: Reader, seat_id: str, since_ms: int) -> int:
    row = reader.one(_HEARD, (seat_id,))
    return since_ms if row is None else int(row[0] or 0)


def _count(reader: Reader, sql: str, value: int) -> int:
    row = reader.one(sql, (value,))
    return int(row[0] or 0) if row is not None else 0
