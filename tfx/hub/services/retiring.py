"""Retire agents: one by name, or all that were not seen for long.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.hub.models import AgentId, AgentState, DeadReason
from tfx.hub.occupancy_models import InvocationState, SeatEnd, Tier
from tfx.hub.services import endings
from tfx.hub.services.life import AT_ONCE, no_agent, own_name
from tfx.hub.store import agents, invocations, messages, occupancy, runs
from tfx.hub.store.events import AgentRetired, RequestNoted
from tfx.hub.store.ops import op_of
from tfx.hub.wire.agents import (
    PruneAgentsRequest,
    PruneAgentsResult,
    RetireRequest,
    RetireResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.judge import Judge
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Op, Tx


class Retiring:
    """Agents that are gone for good."""

    def __init__(self, store: Store, life: Life, judge: Judge) -> None:
        self._store = store
        self._life = life
        self._judge = judge

    async def agents_retire(self, caller: Caller, request: RetireRequest) -> RetireResult:
        """Retire an agent: what waits for it becomes dead letters `recipient-retired`."""
        name = own_name(request.agent_id)
        op = op_of("agents_retire", request)

        def command(tx: Tx) -> RetireResult:
            before = _retired_before(tx, caller.actor, op)
            if before is not None:
                did = bool(before.together)
                return RetireResult(agent_id=name, retired=did, dead_lettered=before.dead_lettered)
            known = agents.find(tx, name)
            if known is None:
                raise no_agent(name)
            if known.retired_at_ms is not None:
                tx.note(f"agent/{name}", known.stream, "retire")
                return RetireResult(agent_id=name, retired=False, dead_lettered=0)
            dead = self._retire(tx, [known], caller.actor, "retired", op)
            return RetireResult(agent_id=name, retired=True, dead_lettered=dead)

        return await self._store.write(command)

    async def agents_prune(self, caller: Caller, request: PruneAgentsRequest) -> PruneAgentsResult:
        """Retire every agent that is offline and was not seen for `unseen_ms`."""
        op = None if request.dry_run else op_of("agents_prune", request)

        def command(tx: Tx) -> PruneAgentsResult:
            before = _retired_before(tx, caller.actor, op)
            if before is not None:
                names = tuple(AgentId(each) for each in before.together)
                return PruneAgentsResult(
                    agents=names, dead_lettered=before.dead_lettered, dry_run=False
                )
            gone = [
                row
                for row in agents.page(tx, "", 100_000)
                if row.retired_at_ms is None
                and self._life.state(row, tx.now_ms) is AgentState.OFFLINE
                and tx.now_ms - self._life.seen(row) >= request.unseen_ms
            ]
            dead = 0 if request.dry_run else self._retire(tx, gone, caller.actor, "pruned", op)
            runs.note(tx, "prune")
            return PruneAgentsResult(
                agents=tuple(row.id for row in gone), dead_lettered=dead, dry_run=request.dry_run
            )

        return await self._store.write(command)

    def _retire(self, tx: Tx, gone: list[AgentRow], actor: AgentId, why: str, op: Op | None) -> int:
        """Retire agents and bury their mail; the first notes what the key brought about."""
        for row in gone:
            endings.end_session(tx, row.session, actor)
        waiting = [each for row in gone for each in messages.open_deliveries(tx, row.id, AT_ONCE)]
        for at, row in enumerate(gone):
            body = AgentRetired(id=row.id, reason=why)
            key = None
            if at == 0 and op is not None:
                key = op
                together: list[str] = [each.id for each in gone]
                body = AgentRetired(
                    id=row.id, reason=why, dead_lettered=len(waiting), together=together
                )
            agents.retire(tx, row, actor, body, key)
            self._free(tx, row.id, actor)
        for each in waiting:
            messages.bury(tx, each, DeadReason.RECIPIENT_RETIRED, None, actor)
        return len(waiting)

    def _free(self, tx: Tx, name: AgentId, actor: AgentId) -> None:
        """End every seat of an agent, and what runs in its terminal with its own row (EV-B3)."""
        taken = occupancy.find(tx, name)
        for seat in () if taken is None else taken.seats:
            evicted = self._judge.evicted(seat, tx.now_ms, force=True)
            if seat.tier is Tier.INVOCATION and evicted is not None:
                found = invocations.find(tx, seat.id)
                if found is not None and found.state == InvocationState.RUNNING:
                    invocations.lose(tx, found, evicted, SeatEnd.RETIRED, actor)
                    continue
            if taken is not None:
                occupancy.vacate(tx, taken, seat, SeatEnd.RETIRED, actor)


def _retired_before(tx: Tx, actor: AgentId, op: Op | None) -> AgentRetired | None:
    before = tx.done_before(actor, op)
    if before is not None and isinstance(before.body, RequestNoted):
        return AgentRetired(id="", reason="")  # nobody was
    return before.body if before is not None and isinstance(before.body, AgentRetired) else None
