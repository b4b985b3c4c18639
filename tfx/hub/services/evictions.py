"""End a seat whose holder did not end it, and what it guarded with it.

Shared by the services about occupancy; who may be evicted is the judge's. Whatever ends a hold
without a delivery brings its message back (EV-B11).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfx.errors import NotFound, StateConflict
from tfx.hub.models import HUB, AgentId, DeadReason, DeliveryState
from tfx.hub.occupancy_models import Evidence, InvocationState, SeatEnd, Tier
from tfx.hub.services.life import no_agent
from tfx.hub.store import agents, invocations, messages, occupancy, views

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.models import Limits
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.occupancy import Occupancy, Seat
    from tfx.hub.store.occupancy_bodies import Evicted
    from tfx.hub.store.tx import Tx


class Evictions:
    """Ends of seats."""

    def __init__(self, judge: Judge, limits: Limits) -> None:
        self._judge = judge
        self._limits = limits

    def clear_way(
        self, tx: Tx, row: Occupancy, tiers: tuple[Tier, ...], actor: AgentId, *, force: bool
    ) -> None:
        """Evict who sits in these tiers.

        Raises StateConflict `receiver-busy` for one that is not proven gone, unless forced.
        """
        for seat in row.seats:
            if seat.tier in tiers:
                evicted = self.proven(tx, row, seat, force=force)
                self.evict(tx, row, seat, evicted, actor)

    def proven(self, tx: Tx, row: Occupancy, seat: Seat, *, force: bool = False) -> Evicted:
        """Return the record of an eviction; raises StateConflict `receiver-busy` without one."""
        evicted = self._judge.evicted(seat, tx.now_ms, force=force)
        if evicted is None:
            raise self.busy(row.agent, seat, tx.now_ms)
        return evicted

    def busy(self, agent: AgentId, seat: Seat, now_ms: int) -> StateConflict:
        """Return the refusal that names the holder and what is known of its life."""
        verdict = self._judge.of(seat, now_ms)
        details: dict[str, JsonValue] = {
            "agent_id": agent,
            "tier": seat.tier.value,
            "seat_id": seat.id,
            "host": seat.holder.host,
            "pid": seat.holder.pid,
            "liveness": verdict.liveness.value,
            "beat_age_ms": verdict.beat_age_ms,
            "until_ms": verdict.until_ms,
        }
        return StateConflict(
            f"{agent} is busy ({seat.tier.value}): pid {seat.holder.pid} on {seat.holder.host} "
            f"is {verdict.liveness.value}, last heard {verdict.beat_age_ms // 1000} s ago",
            code="receiver-busy",
            hint=f"tfx hub busy {agent}",
            details=details,
        )

    def evict(self, tx: Tx, row: Occupancy, seat: Seat, evicted: Evicted, actor: AgentId) -> None:
        """End a seat: by the hub on evidence, by a person with force."""
        forced = evicted.evidence == Evidence.FORCE
        end, by = (SeatEnd.FORCED, actor) if forced else (SeatEnd.LOST, HUB)
        if seat.tier is Tier.INVOCATION:
            found = invocations.find(tx, seat.id)
            if found is not None and found.state == InvocationState.RUNNING:
                invocations.lose(tx, found, evicted, end, by)  # both rows or none (EV-B3)
                return
        occupancy.vacate(tx, row, seat, end, by, evicted=evicted)
        self.end_guard(tx, row.agent, seat, delivered=False)

    def begin_guard(self, tx: Tx, agent: AgentId, message_id: str, hold_id: str) -> int:
        """Claim a message for a hold and return the attempt; it counts from now on (EV-Q5).

        It stays claimed as long as the hold, at most until it expires: no visibility time-out
        gives it to another turn meanwhile. Raises NotFound `unknown-message`, StateConflict
        `not-queued`.
        """
        stored = views.message(tx, message_id)
        found = occupancy.guarded(tx, agent, message_id)
        if stored is None or found is None:
            raise NotFound(f"{agent} has no message {message_id}", code="unknown-message")
        delivery = found.delivery
        if delivery.state != DeliveryState.QUEUED or delivery.expires_at_ms <= tx.now_ms:
            raise StateConflict(
                f"the message {message_id} does not wait any more: it is {delivery.state}",
                code="not-queued",
                details={"message_id": message_id, "state": delivery.state},
            )
        candidate = replace(stored.message, attempts=delivery.attempts)
        messages.claim(tx, candidate, agent, hold_id, delivery.expires_at_ms - tx.now_ms)
        return delivery.attempts + 1

    def end_guard(self, tx: Tx, agent: AgentId, seat: Seat, *, delivered: bool) -> None:
        """Ack the message that a hold guarded, or give it back; a poisoned one is buried."""
        if seat.message is None:
            return
        found = occupancy.guarded(tx, agent, seat.message)
        if found is None or found.claim != seat.id:
            return  # acked by its receiver, expired or purged meanwhile
        if delivered:
            acking = messages.find_for_ack(tx, agent, seat.message)
            if acking is not None:
                messages.ack(tx, acking, agent, seat.message)
        elif found.delivery.attempts >= self._limits.max_attempts:
            error = f"{found.delivery.attempts} turns ended without its delivery"
            messages.bury(tx, found.delivery, DeadReason.MAX_ATTEMPTS, error)
        else:
            messages.give_back(tx, found.delivery)


def living(tx: Tx, name: AgentId) -> AgentRow:
    """Return an agent that is not retired; raises UnknownAgent."""
    known = agents.find(tx, name)
    if known is None or known.retired_at_ms is not None:
        raise no_agent(name)
    return known


def lease_lost(agent: AgentId, seat_id: str, evidence: str | None = None) -> StateConflict:
    """Return the refusal of an old holder: another came, or it was declared gone (EV-B7).

    With the evidence where it is on record, so that one whom a person evicted need not come back.
    """
    details: dict[str, JsonValue] = {"agent_id": agent, "seat_id": seat_id}
    if evidence is not None:
        details["evidence"] = evidence
    return StateConflict(
        f"{seat_id} does not hold {agent} any more",
        code="lease-lost",
        hint=f"tfx hub busy {agent}",
        details=details,
    )
