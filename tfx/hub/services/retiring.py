"""Retire agents: one by name, or all that were not seen for long.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.hub.models import AgentState, DeadReason
from tfx.hub.services.life import AT_ONCE, no_agent, own_name
from tfx.hub.store import agents, messages
from tfx.hub.store.ops import op_of
from tfx.hub.wire.agents import (
    PruneAgentsRequest,
    PruneAgentsResult,
    RetireRequest,
    RetireResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Caller
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Op, Tx


class Retiring:
    """Agents that are gone for good."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store = store
        self._life = life

    async def agents_retire(self, caller: Caller, request: RetireRequest) -> RetireResult:
        """Retire an agent: what waits for it becomes dead letters `recipient-retired`."""
        name = own_name(request.agent_id)
        op = op_of("agents_retire", request)

        def command(tx: Tx) -> RetireResult:
            known = agents.find(tx, name)
            if known is None:
                raise no_agent(name)
            if known.retired_at_ms is not None:
                return RetireResult(agent_id=name, retired=False, dead_lettered=0)
            return RetireResult(
                agent_id=name,
                retired=True,
                dead_lettered=_retire(tx, known, caller.actor, "retired", op),
            )

        return await self._store.write(command)

    async def agents_prune(self, caller: Caller, request: PruneAgentsRequest) -> PruneAgentsResult:
        """Retire every agent that is offline and was not seen for `unseen_ms`."""

        def command(tx: Tx) -> PruneAgentsResult:
            gone = [
                row
                for row in agents.page(tx, "", 100_000)
                if row.retired_at_ms is None
                and self._life.state(row, tx.now_ms) is AgentState.OFFLINE
                and tx.now_ms - self._life.seen(row) >= request.unseen_ms
            ]
            dead = 0
            if not request.dry_run:
                for row in gone:
                    dead += _retire(tx, row, caller.actor, "pruned", None)
            return PruneAgentsResult(
                agents=tuple(row.id for row in gone), dead_lettered=dead, dry_run=request.dry_run
            )

        return await self._store.write(command)


def _retire(tx: Tx, known: AgentRow, actor: AgentId, why: str, op: Op | None) -> int:
    agents.retire(tx, known, actor, why, op)
    waiting = messages.open_deliveries(tx, known.id, AT_ONCE)
    for each in waiting:
        messages.bury(tx, each, DeadReason.RECIPIENT_RETIRED, None, actor)
    return len(waiting)
