"""Who is busy, and the end of holders that are gone: the read, the sweep, the person's way out.

Knows no SQL and no transport. Never reads the invocations to answer "busy?" (EV-B2, EV-I1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import HUB, AgentId, agent_id
from tfx.hub.occupancy_models import Tier
from tfx.hub.services.evictions import living
from tfx.hub.services.judge import shown
from tfx.hub.services.life import no_agent
from tfx.hub.store import agents, occupancy
from tfx.hub.wire.occupancy import AgentsFreeRequest, AgentsFreeResult, BusyRequest, BusyResult

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.evictions import Evictions
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

_SWEPT = (Tier.MESSAGE, Tier.TERMINAL)
"""The invocation in a terminal is lost by its own probe, with its own row (EV-B3)."""


class Occupancy:
    """The three tiers of every agent."""

    def __init__(self, store: Store, judge: Judge, evictions: Evictions) -> None:
        self._store = store
        self._judge = judge
        self._evictions = evictions

    async def busy(self, caller: Caller, request: BusyRequest) -> BusyResult:
        """Say whether an agent is busy, by one row (EV-B2); raises UnknownAgent."""
        del caller
        name = agent_id(request.agent_id, "agent_id")

        def query(reader: Reader) -> BusyResult:
            if agents.find(reader, name) is None:
                raise no_agent(name)
            generation, seats = self._judge.seats(reader, name)
            held = [seat for seat in seats if seat.evidence is None]
            return BusyResult(
                agent_id=name,
                busy=bool(held),
                tier=held[0].tier if held else None,
                generation=generation,
                seats=seats,
                server_time_ms=reader.now_ms,
            )

        return await self._store.read(query)

    async def agents_free(self, caller: Caller, request: AgentsFreeRequest) -> AgentsFreeResult:
        """Evict who is proven gone, with `force` everybody; each is an event (EV-B6, EV-B10).

        With `force` only those who were seen: a repetition would evict a successor (EV-L7).
        Raises UnknownAgent, StateConflict `stale` for another generation, InvalidRequest
        `generation-needed` for force without one.
        """
        name = agent_id(request.agent_id, "agent_id")
        if request.force and request.generation is None:
            raise InvalidRequest(
                "force needs the generation of the holders who were seen",
                code="generation-needed",
                hint=f"tfx hub busy {name}",
                details={"field": "generation"},
            )

        def command(tx: Tx) -> AgentsFreeResult:
            living(tx, name)
            row = occupancy.find(tx, name)
            now = 0 if row is None else row.generation
            if request.generation not in {None, now}:
                raise StateConflict(
                    f"the holders of {name} have changed since; look again",
                    code="stale",
                    hint=f"tfx hub busy {name}",
                    details={"generation": now, "expected": request.generation},
                )
            done, left = [], []
            for seat in () if row is None else row.seats:
                evicted = self._judge.evicted(seat, tx.now_ms, force=request.force)
                if evicted is None or row is None:
                    left.append(self._judge.view(seat, tx.now_ms))
                    continue
                self._evictions.evict(tx, row, seat, evicted, caller.actor)
                done.append(evicted)
            shown_ones = tuple(each for each in map(shown, done) if each is not None)
            return AgentsFreeResult(agent_id=name, evicted=shown_ones, left=tuple(left))

        return await self._store.write(command)

    async def sweep(self) -> int:
        """End the holds and terminals of holders that are gone; return how many.

        What a hold guarded comes back to the queue by it (EV-B11). Found by a look, decided again
        inside the transaction (EV-T7).
        """

        def look(reader: Reader) -> list[tuple[AgentId, str]]:
            return [
                (row.agent, seat.id)
                for row in occupancy.occupied(reader)
                for seat in row.seats
                if seat.tier in _SWEPT and self._judge.of(seat, reader.now_ms).evidence
            ]

        suspects = await self._store.read(look)
        if not suspects:
            return 0

        def command(tx: Tx) -> list[str]:
            return [seat_id for name, seat_id in suspects if self._end(tx, name, seat_id)]

        return len(await self._store.write(command))

    def _end(self, tx: Tx, name: AgentId, seat_id: str) -> bool:
        row = occupancy.find(tx, name)
        for seat in () if row is None else row.seats:
            evicted = self._judge.evicted(seat, tx.now_ms) if seat.id == seat_id else None
            if row is not None and evicted is not None:
                self._evictions.evict(tx, row, seat, evicted, HUB)
                return True
        return False
