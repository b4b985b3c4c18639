"""Hold an agent's receiver while a turn is delivered to it: one at a time, fenced.

Knows no SQL and no transport; not the work leases of tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import AccessDenied, StateConflict
from tfx.hub.models import AgentId, LeaseId, agent_id
from tfx.hub.occupancy_models import SeatEnd, Tier
from tfx.hub.services.evictions import lease_lost, living
from tfx.hub.services.judge import holder_of, shown
from tfx.hub.store import occupancy
from tfx.hub.store.ids import new_id
from tfx.hub.store.occupancy_bodies import ReceiverHeld
from tfx.hub.store.ops import op_of
from tfx.hub.wire.occupancy import (
    BeatResult,
    ReceiverBeatRequest,
    ReceiverHoldRequest,
    ReceiverHoldResult,
    ReceiverReleaseRequest,
    ReleaseResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.evictions import Evictions
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.events import Event
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

_OTHERS = (Tier.TERMINAL, Tier.INVOCATION)


class Receivers:
    """The short holds of receivers (EV-B1 … EV-B11)."""

    def __init__(self, store: Store, judge: Judge, evictions: Evictions) -> None:
        self._store = store
        self._judge = judge
        self._evictions = evictions

    async def receiver_hold(
        self, caller: Caller, request: ReceiverHoldRequest
    ) -> ReceiverHoldResult:
        """Hold a receiver, over a holder only when it is proven gone, or by force.

        Raises StateConflict `receiver-busy` with the holder, UnknownAgent,
        AccessDenied `operator-needed` for `force`; for the message what `begin_guard` raises.
        """
        name = agent_id(request.agent_id, "agent_id")
        if request.force and not caller.operator:
            raise AccessDenied("force needs the operator credential", code="operator-needed")
        op = op_of("receiver_hold", request)

        def command(tx: Tx) -> tuple[Event, int]:
            """Return the event, and the deadline as it is now."""
            before = tx.done_before(name, op)
            if before is not None:
                return before, _still_held(tx, name, before)
            known = living(tx, name)
            row = occupancy.find(tx, name)
            evicted = None
            if row is not None:
                if row.hold is not None:
                    evicted = self._evictions.proven(tx, row, row.hold, force=request.force)
                    self._evictions.end_guard(tx, name, row.hold, delivered=False)
                self._evictions.clear_way(tx, row, _OTHERS, caller.actor, force=request.force)
            hold_id = LeaseId(new_id(tx.now_ms))
            attempt = None
            if request.message_id is not None:
                attempt = self._evictions.begin_guard(tx, name, request.message_id, hold_id)
            body = ReceiverHeld(
                agent=name,
                hold=hold_id,
                holder=holder_of(request.process, request.ttl_ms),
                until_ms=tx.now_ms + request.ttl_ms,
                attempt=attempt,
                evicted=evicted,
                message=request.message_id,
            )
            return occupancy.hold(tx, known.stream, body, op), body.until_ms

        event, until_ms = await self._store.write(command)
        result = _held(event, until_ms, self._store.clock.now_ms())
        self._judge.beat(result.hold_id)
        return result

    async def receiver_beat(self, caller: Caller, request: ReceiverBeatRequest) -> BeatResult:
        """Take a holder's sign of life; an old one gets StateConflict `lease-lost` (EV-B7)."""
        del caller
        name = agent_id(request.agent_id, "agent_id")
        row = await self._store.read(lambda reader: occupancy.find(reader, name))
        if row is None or row.hold is None or row.hold.id != request.hold_id:
            raise lease_lost(name, request.hold_id)
        self._judge.beat(row.hold.id)
        now_ms = self._store.clock.now_ms()
        return BeatResult(
            agent_id=name,
            seat_id=row.hold.id,
            until_ms=self._judge.of(row.hold, now_ms).until_ms,
            server_time_ms=now_ms,
        )

    async def receiver_release(
        self, caller: Caller, request: ReceiverReleaseRequest
    ) -> ReleaseResult:
        """End a hold; doing it twice is no error, and a successor's is never touched (EV-B8).

        Raises StateConflict `lease-lost` for an old holder: nothing it says counts (EV-B7).
        """
        del caller
        name = agent_id(request.agent_id, "agent_id")
        op = op_of("receiver_release", request)

        def command(tx: Tx) -> bool:
            if tx.done_before(name, op) is not None:
                return True
            row = occupancy.find(tx, name)
            if row is None:
                raise lease_lost(name, request.hold_id)
            seat = row.hold
            if seat is None or seat.id != request.hold_id:
                if occupancy.left_by_itself(tx, row, Tier.MESSAGE, request.hold_id):
                    return False
                raise lease_lost(name, request.hold_id)
            occupancy.vacate(tx, row, seat, SeatEnd.RELEASED, name, op=op)
            self._evictions.end_guard(tx, name, seat, delivered=request.delivered)
            return True

        released = await self._store.write(command)
        return ReleaseResult(agent_id=name, released=released)


def _still_held(tx: Tx, name: AgentId, before: Event) -> int:
    """Return until when the hold of an earlier request counts.

    Raises StateConflict `lease-lost` once it has ended: the key of a hold that is gone gives
    neither its first answer, which would be no longer true, nor another hold (EV-B7, EV-L7).
    """
    body = before.body
    if not isinstance(body, ReceiverHeld):
        raise _other_operation()
    row = occupancy.find(tx, name)
    if row is None or row.hold is None or row.hold.id != body.hold:
        raise lease_lost(name, body.hold)
    return row.hold.until_ms


def _other_operation() -> StateConflict:
    return StateConflict("the key was used for another operation", code="idempotency-conflict")


def _held(event: Event, until_ms: int, now_ms: int) -> ReceiverHoldResult:
    body = event.body
    if not isinstance(body, ReceiverHeld):
        raise _other_operation()
    return ReceiverHoldResult(
        agent_id=AgentId(body.agent),
        hold_id=LeaseId(body.hold),
        generation=event.seq,
        until_ms=until_ms,
        attempt=body.attempt,
        taken_over=shown(body.evicted),
        server_time_ms=now_ms,
    )
