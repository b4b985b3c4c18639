"""The one row of an agent that answers "busy?": find it, set and clear its three slices.

SQL and events only; who is alive, and who may take over, is decided by the services. Never reads
the invocations (EV-B2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.core.identity import ProcessIdentity
from tfx.hub.models import HUB, AgentId, LeaseId, StreamNo
from tfx.hub.occupancy_models import SeatEnd, Tier
from tfx.hub.store.kinds import Kind
from tfx.hub.store.messages import OpenDelivery
from tfx.hub.store.occupancy_bodies import (
    AgentBusy,
    AgentIdle,
    Evicted,
    Holder,
    ReceiverHeld,
    ReceiverReleased,
    TerminalEnded,
    TerminalOpened,
)

if TYPE_CHECKING:
    from tfx.core.database import Row, Value
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Op, Tx

_COLUMNS: Final = (
    "SELECT agent, stream, generation, hold, hold_holder, hold_message, hold_at_ms, "
    "hold_until_ms, terminal, terminal_holder, terminal_at_ms, invocation, invocation_holder, "
    "invocation_at_ms FROM occupancy "
)
BY_AGENT: Final = _COLUMNS + "WHERE agent = ?"
OCCUPIED: Final = (
    _COLUMNS + "WHERE hold IS NOT NULL OR terminal IS NOT NULL OR invocation IS NOT NULL"
)
GUARDED: Final = (
    "SELECT d.message, d.receiver, d.state, d.priority, d.attempts, d.expires_at_ms, m.id, "
    "m.sender, m.type, m.settled, d.claim FROM messages m "
    "JOIN deliveries d ON d.message = m.stream AND d.receiver = ?2 WHERE m.id = ?1"
)
HAS_LEFT: Final = {
    tier: f"SELECT 1 FROM log WHERE stream = ?1 AND kind = '{kind}' "  # noqa: S608  (our words)
    f"AND json_extract(body, '$.{seat}') = ?2 AND json_extract(body, '$.reason') = 'released' "
    "ORDER BY previous DESC LIMIT 1"
    for tier, kind, seat in (
        (Tier.MESSAGE, Kind.RECEIVER_RELEASED.value, "hold"),
        (Tier.TERMINAL, Kind.TERMINAL_CLOSED.value, "terminal"),
    )
}
"""Not by an index: it is asked only by one who does not have the seat any more."""

_holder = msgspec.json.Decoder(Holder)


@dataclass(frozen=True, slots=True)
class Seat:
    """One slice that is set: who keeps the agent busy, since when, and how long at least."""

    tier: Tier
    id: LeaseId
    holder: Holder
    since_ms: int
    until_ms: int
    message: str | None = None

    @property
    def process(self) -> ProcessIdentity:
        """The process that holds it."""
        return process_of(self.holder)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The row of an agent; a slice is None while nobody has it."""

    agent: AgentId
    stream: StreamNo
    generation: int
    hold: Seat | None
    terminal: Seat | None
    invocation: Seat | None

    @property
    def seats(self) -> tuple[Seat, ...]:
        """The slices that are set, in the order of their tiers."""
        return tuple(
            seat for seat in (self.hold, self.terminal, self.invocation) if seat is not None
        )


@dataclass(frozen=True, slots=True)
class Guarded:
    """The delivery that a hold guards; `claim` is the id of who claimed it."""

    delivery: OpenDelivery
    claim: str | None


def find(source: Tx | Reader, agent: str) -> Occupancy | None:
    """Return the row of an agent; None while nobody ever occupied it."""
    row = source.one(BY_AGENT, (agent,))
    return None if row is None else _occupancy(row)


def occupied(source: Tx | Reader) -> list[Occupancy]:
    """Return every row with a slice that is set."""
    return [_occupancy(row) for row in source.all(OCCUPIED)]


def guarded(tx: Tx, agent: str, message_id: str) -> Guarded | None:
    """Return where the delivery of a message to an agent stands; None where there is none."""
    row = tx.one(GUARDED, (message_id, agent))
    if row is None:
        return None
    return Guarded(OpenDelivery(*row[:10]), None if row[10] is None else str(row[10]))  # type: ignore[arg-type]


def left_by_itself(tx: Tx, row: Occupancy, tier: Tier, seat_id: str) -> bool:
    """Return True when this one has left a tier by its own word, whoever came since (EV-B8).

    That is known as long as the agent's stream (EV-L7).
    """
    return tier in HAS_LEFT and tx.one(HAS_LEFT[tier], (row.stream, seat_id)) is not None


def hold(tx: Tx, stream: StreamNo, body: ReceiverHeld, op: Op | None) -> Event:
    """Hold an agent's receiver; a body that names an evicted holder is a takeover (EV-B10)."""
    kind = Kind.RECEIVER_HELD if body.evicted is None else Kind.RECEIVER_TAKEN_OVER
    return tx.append(f"agent/{body.agent}", stream, kind, body.agent, body, op=op)


def open_terminal(tx: Tx, stream: StreamNo, body: TerminalOpened, op: Op | None) -> Event:
    """Lock an agent for a person's terminal."""
    return tx.append(f"agent/{body.agent}", stream, Kind.TERMINAL_OPENED, body.agent, body, op=op)


def begin_invocation(tx: Tx, stream: StreamNo, body: AgentBusy) -> None:
    """Note that an invocation runs in the agent's terminal."""
    tx.append(f"agent/{body.agent}", stream, Kind.AGENT_BUSY, body.agent, body)


def vacate(
    tx: Tx, row: Occupancy, seat: Seat, end: SeatEnd, actor: AgentId = HUB,
    *, evicted: Evicted | None = None, op: Op | None = None,
) -> Event:  # fmt: skip
    """Clear one slice; the others stay (EV-B1)."""
    name, stream = f"agent/{row.agent}", row.stream
    match seat.tier:
        case Tier.MESSAGE:
            left = ReceiverReleased(
                agent=row.agent, hold=seat.id, reason=end.value, evicted=evicted
            )
            return tx.append(name, stream, Kind.RECEIVER_RELEASED, actor, left, op=op)
        case Tier.TERMINAL:
            kind = Kind.TERMINAL_LOST if end is SeatEnd.LOST else Kind.TERMINAL_CLOSED
            ended = TerminalEnded(
                agent=row.agent, terminal=seat.id, reason=end.value, evicted=evicted
            )
            return tx.append(name, stream, kind, actor, ended, op=op)
        case Tier.INVOCATION:
            idle = AgentIdle(agent=row.agent, invocation=seat.id, reason=end.value, evicted=evicted)
            return tx.append(name, stream, Kind.AGENT_IDLE, actor, idle, op=op)


def holder_text(text: str) -> Holder:
    """Return a holder as a column has it."""
    return _holder.decode(text)


def process_of(holder: Holder) -> ProcessIdentity:
    """Return the process of a holder."""
    return ProcessIdentity(
        holder.host, holder.boot_id, holder.pid, holder.start_token, holder.pid_namespace
    )


def _occupancy(row: Row) -> Occupancy:
    hold_id, hold_holder, message, hold_at, until = row[3:8]
    return Occupancy(
        AgentId(str(row[0])),
        StreamNo(int(row[1] or 0)),
        int(row[2] or 0),
        _seat(Tier.MESSAGE, (hold_id, hold_holder, hold_at), until, message),
        _seat(Tier.TERMINAL, row[8:11]),
        _seat(Tier.INVOCATION, row[11:14]),
    )


def _seat(tier: Tier, columns: Row, until: Value = None, message: Value = None) -> Seat | None:
    """Return a slice; without a deadline of its own it counts from its beginning."""
    identity, text, since = columns
    if identity is None:
        return None
    holder = holder_text(str(text))
    since_ms = int(since or 0)
    return Seat(
        tier,
        LeaseId(str(identity)),
        holder,
        since_ms,
        since_ms + holder.ttl_ms if until is None else int(until),
        None if message is None else str(message),
    )
