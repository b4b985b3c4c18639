"""Invocations, the diagnostic record of what runs: start, finish, lose, notify, find.

SQL and events only. An invocation in a terminal sets and clears its slice of the agent's row in
the transaction that changes its own (EV-B3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.models import HUB, AgentId, LeaseId, StreamNo
from tfx.hub.occupancy_models import InvocationState, SeatEnd
from tfx.hub.store import occupancy
from tfx.hub.store.kinds import Kind
from tfx.hub.store.occupancy_bodies import (
    AgentBusy,
    Evicted,
    Holder,
    InvocationFinished,
    InvocationLost,
    InvocationNotified,
    InvocationStarted,
)

if TYPE_CHECKING:
    from tfx.core.database import Row
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Op, Tx

_COLUMNS: Final = (
    "SELECT i.stream, i.id, i.kind, i.agent, i.state, i.holder, i.title, i.trace_id, "
    "i.started_at_ms, i.ended_at_ms, i.is_late, i.outcome, i.summary, i.error, i.evidence, "
    "i.notified_by, i.notified_at_ms, t.room, t.number "
    "FROM invocations i LEFT JOIN tasks t ON t.stream = i.task "
)
_OF_STATE: Final = "AND (?2 IS NULL OR i.state = ?2) "
_NEWEST: Final = "AND i.stream < ?3 ORDER BY i.stream DESC LIMIT ?4"
BY_ID: Final = _COLUMNS + "WHERE i.id = ?"
RUNNING: Final = _COLUMNS + "WHERE i.state = 'running' AND i.stream > ? ORDER BY i.stream LIMIT ?"
NEWEST: Final = _COLUMNS + "WHERE ?1 IS NULL " + _OF_STATE + _NEWEST
NEWEST_RUNNING: Final = _COLUMNS + "WHERE i.state = 'running' AND ?1 IS ?2 " + _NEWEST
NEWEST_OF_AGENT: Final = _COLUMNS + "WHERE i.agent = ?1 " + _OF_STATE + _NEWEST
NEWEST_OF_TASK: Final = (
    _COLUMNS + "WHERE i.task = ?1 AND (?5 IS NULL OR i.agent = ?5) " + _OF_STATE + _NEWEST
)
TASK: Final = "SELECT stream FROM tasks WHERE room = ? AND number = ? AND deleted_at_ms IS NULL"


@dataclass(frozen=True, slots=True)
class InvocationRow:
    """An invocation as the projection has it."""

    stream: StreamNo
    id: LeaseId
    kind: str
    agent: AgentId
    state: str
    holder: Holder
    title: str | None
    trace_id: str | None
    started_at_ms: int
    ended_at_ms: int | None
    is_late: bool
    outcome: str | None
    summary: str | None
    error: str | None
    evidence: str | None
    notified_by: str | None
    notified_at_ms: int | None
    room: str | None
    task: int | None


def find(source: Tx | Reader, invocation_id: str) -> InvocationRow | None:
    """Return an invocation by its id."""
    row = source.one(BY_ID, (invocation_id,))
    return None if row is None else _invocation(row)


def running(source: Tx | Reader, after: int, limit: int) -> list[InvocationRow]:
    """Return what is recorded as running, oldest first."""
    return [_invocation(row) for row in source.all(RUNNING, (after, limit))]


def page(
    source: Reader, before: int, limit: int, *, agent: str | None, task: int | None,
    state: InvocationState | None,
) -> list[InvocationRow]:  # fmt: skip
    """Return invocations, newest first: of a task, an agent and a state, as far as given."""
    wanted = None if state is None else state.value
    if task is not None:
        rows = source.all(NEWEST_OF_TASK, (task, wanted, before, limit, agent))
    elif agent is not None:
        rows = source.all(NEWEST_OF_AGENT, (agent, wanted, before, limit))
    elif state is InvocationState.RUNNING:
        rows = source.all(NEWEST_RUNNING, (None, None, before, limit))
    else:
        rows = source.all(NEWEST, (None, wanted, before, limit))
    return [_invocation(row) for row in rows]


def task_stream(source: Tx | Reader, room: str, number: int) -> StreamNo | None:
    """Return the stream of a task by its number in its room."""
    row = source.one(TASK, (room, number))
    return None if row is None else StreamNo(int(row[0] or 0))


def start(tx: Tx, body: InvocationStarted, op: Op | None, *, seat: AgentBusy | None,
          agent_stream: StreamNo) -> Event:  # fmt: skip
    """Record that something runs; with a `seat` it keeps its agent busy from now on."""
    event = tx.begin_stream(
        f"invocation/{body.id}", Kind.INVOCATION_STARTED, body.agent, body, op=op
    )
    if seat is not None:
        occupancy.begin_invocation(tx, agent_stream, seat)
    return event


def finish(tx: Tx, found: InvocationRow, body: InvocationFinished, op: Op | None) -> Event:
    """Record how it ended; one that was declared lost is finished late (EV-I2)."""
    event = tx.append(
        f"invocation/{found.id}", found.stream, Kind.INVOCATION_FINISHED, found.agent, body, op=op
    )
    _make_room(tx, found, SeatEnd.RELEASED, found.agent, None)
    return event


def lose(
    tx: Tx, found: InvocationRow, evicted: Evicted, end: SeatEnd | None, actor: AgentId = HUB
) -> None:
    """Record that it ended without a word of its own, and how its slice ends.

    Without an `end` a successor takes the slice in the same transaction.
    """
    tx.append(
        f"invocation/{found.id}",
        found.stream,
        Kind.INVOCATION_LOST,
        actor,
        InvocationLost(beat_age_ms=evicted.beat_age_ms, evidence=evicted.evidence),
    )
    if end is not None:
        _make_room(tx, found, end, actor, evicted)


def notify(tx: Tx, found: InvocationRow, by: AgentId, op: Op | None) -> Event:
    """Record who tells of its end."""
    return tx.append(
        f"invocation/{found.id}",
        found.stream,
        Kind.INVOCATION_NOTIFIED,
        by,
        InvocationNotified(by=by),
        op=op,
    )


def _make_room(
    tx: Tx, found: InvocationRow, end: SeatEnd, actor: AgentId, evicted: Evicted | None
) -> None:
    row = occupancy.find(tx, found.agent)
    if row is not None and row.invocation is not None and row.invocation.id == found.id:
        occupancy.vacate(tx, row, row.invocation, end, actor, evicted=evicted)


def _invocation(row: Row) -> InvocationRow:
    cells = list(row)
    cells[5] = occupancy.holder_text(str(row[5]))  # type: ignore[call-overload]
    cells[10] = bool(row[10])
    return InvocationRow(*cells)  # type: ignore[arg-type]
