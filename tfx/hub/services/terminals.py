"""Lock an agent for a person's terminal: no turn is delivered to it meanwhile.

Knows no SQL and no transport. A turn in flight is told, not ended: tiers are independent (EV-B1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.models import AgentId, LeaseId, agent_id
from tfx.hub.occupancy_models import SeatEnd, Tier
from tfx.hub.services.evictions import lease_lost, living
from tfx.hub.services.judge import holder_of, shown
from tfx.hub.store import occupancy
from tfx.hub.store.ids import new_id
from tfx.hub.store.occupancy_bodies import TerminalOpened
from tfx.hub.store.ops import op_of
from tfx.hub.wire.occupancy import (
    BeatResult,
    ReleaseResult,
    TerminalBeatRequest,
    TerminalCloseRequest,
    TerminalOpenRequest,
    TerminalOpenResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.evictions import Evictions
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.events import Event
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx


class Terminals:
    """The terminal locks of agents."""

    def __init__(self, store: Store, judge: Judge, evictions: Evictions) -> None:
        self._store = store
        self._judge = judge
        self._evictions = evictions

    async def terminal_open(
        self, caller: Caller, request: TerminalOpenRequest
    ) -> TerminalOpenResult:
        """Lock an agent, over another terminal only when that is proven gone.

        Raises StateConflict `receiver-busy` with the holder, UnknownAgent.
        """
        del caller
        name = agent_id(request.agent_id, "agent_id")
        op = op_of("terminal_open", request)

        def command(tx: Tx) -> Event:
            before = tx.done_before(name, op)
            if before is not None:
                return _still_open(tx, name, before)
            known = living(tx, name)
            row = occupancy.find(tx, name)
            evicted = None
            if row is not None and row.terminal is not None:
                evicted = self._evictions.proven(tx, row, row.terminal)
            body = TerminalOpened(
                agent=name,
                holder=holder_of(request.process, request.ttl_ms),
                terminal=LeaseId(new_id(tx.now_ms)),
                evicted=evicted,
            )
            return occupancy.open_terminal(tx, known.stream, body, op)

        event = await self._store.write(command)
        body = event.body
        if not isinstance(body, TerminalOpened):
            said = "the key was used for another operation"
            raise StateConflict(said, code="idempotency-conflict")
        self._judge.beat(LeaseId(body.terminal))
        _, seats = await self._store.read(lambda reader: self._judge.seats(reader, name))
        return TerminalOpenResult(
            agent_id=name,
            terminal_id=LeaseId(body.terminal),
            generation=event.seq,
            taken_over=shown(body.evicted),
            beside=tuple(seat for seat in seats if seat.tier is not Tier.TERMINAL),
            server_time_ms=self._store.clock.now_ms(),
        )

    async def terminal_beat(self, caller: Caller, request: TerminalBeatRequest) -> BeatResult:
        """Take a terminal's sign of life; an old one gets StateConflict `lease-lost`."""
        del caller
        name = agent_id(request.agent_id, "agent_id")
        row = await self._store.read(lambda reader: occupancy.find(reader, name))
        if row is None or row.terminal is None or row.terminal.id != request.terminal_id:
            raise lease_lost(name, request.terminal_id)
        self._judge.beat(row.terminal.id)
        now_ms = self._store.clock.now_ms()
        return BeatResult(
            agent_id=name,
            seat_id=row.terminal.id,
            until_ms=self._judge.of(row.terminal, now_ms).until_ms,
            server_time_ms=now_ms,
        )

    async def terminal_close(self, caller: Caller, request: TerminalCloseRequest) -> ReleaseResult:
        """Unlock an agent; doing it twice is no error (EV-B8).

        Raises StateConflict `lease-lost` when another has it, or it was declared lost.
        """
        del caller
        name = agent_id(request.agent_id, "agent_id")
        op = op_of("terminal_close", request)

        def command(tx: Tx) -> bool:
            if tx.done_before(name, op) is not None:
                return True
            row = occupancy.find(tx, name)
            if row is None:
                raise lease_lost(name, request.terminal_id)
            seat = row.terminal
            if seat is None or seat.id != request.terminal_id:
                if occupancy.left_by_itself(tx, row, Tier.TERMINAL, request.terminal_id):
                    return False
                raise lease_lost(name, request.terminal_id)
            occupancy.vacate(tx, row, seat, SeatEnd.RELEASED, name, op=op)
            return True

        released = await self._store.write(command)
        return ReleaseResult(agent_id=name, released=released)


def _still_open(tx: Tx, name: AgentId, before: Event) -> Event:
    """Return the first result of a key while its lock stands.

    Raises StateConflict `lease-lost` once it was closed or lost (EV-B7, EV-L7).
    """
    if isinstance(before.body, TerminalOpened):
        row = occupancy.find(tx, name)
        if row is None or row.terminal is None or row.terminal.id != before.body.terminal:
            raise lease_lost(name, before.body.terminal)
    return before
