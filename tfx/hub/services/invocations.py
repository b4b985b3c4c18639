"""What runs for agents: start, beat, finish, notify.

Knows no SQL and no transport. Nothing is ever refused because of a recorded invocation but another
one in the same terminal (EV-I1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import NotFound, StateConflict
from tfx.hub.models import AgentId, LeaseId, agent_id
from tfx.hub.occupancy_models import (
    InvocationKind,
    InvocationState,
    Outcome,
)
from tfx.hub.services.evictions import lease_lost, living
from tfx.hub.services.judge import holder_of, seat_of, task_of
from tfx.hub.services.work import policy
from tfx.hub.store import invocations, occupancy
from tfx.hub.store.ids import new_id
from tfx.hub.store.occupancy_bodies import (
    AgentBusy,
    InvocationFinished,
    InvocationStarted,
)
from tfx.hub.store.ops import op_of
from tfx.hub.wire.invocations import (
    InvocationBeatRequest,
    InvocationBeatResult,
    InvocationFinishRequest,
    InvocationFinishResult,
    InvocationNotifyRequest,
    InvocationNotifyResult,
    InvocationStartRequest,
    InvocationStartResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.evictions import Evictions
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.events import Event
    from tfx.hub.store.invocations import InvocationRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx


class Invocations:
    """The record of what runs."""

    def __init__(self, store: Store, judge: Judge, evictions: Evictions, *, turns: int) -> None:
        self._store = store
        self._turns = turns
        self._judge = judge
        self._evictions = evictions

    async def invocation_start(
        self, caller: Caller, request: InvocationStartRequest
    ) -> InvocationStartResult:
        """Record that a process runs; of kind `terminal` it occupies its agent (EV-B3).

        Raises UnknownAgent, NotFound `unknown-task`; StateConflict `receiver-busy` when
        another lives in the agent's terminal.
        """
        del caller
        name = agent_id(request.agent_id, "agent_id")
        op = op_of("invocation_start", request)

        def command(tx: Tx) -> Event:
            before = tx.done_before(name, op)
            if before is not None:
                return _still(tx, before)
            known = living(tx, name)
            identity = new_id(tx.now_ms)
            body = InvocationStarted(
                agent=name,
                holder=holder_of(request.process, request.ttl_ms),
                id=identity,
                invocation_kind=request.kind.value,
                task=task_of(tx, request.room, request.task),
                title=request.title,
                trace_id=request.trace_id,
            )
            seat = None
            if request.kind is InvocationKind.TERMINAL:
                seat = self._seat(tx, body)
            event = invocations.start(tx, body, op, seat=seat, agent_stream=known.stream)
            if request.kind is InvocationKind.TURN:
                policy.after_turn(tx, body.task, self._turns)
            return event

        event = await self._store.write(command)
        body = event.body
        if not isinstance(body, InvocationStarted):
            said = "the key was used for another operation"
            raise StateConflict(said, code="idempotency-conflict")
        self._judge.beat(LeaseId(body.id))
        return InvocationStartResult(
            invocation_id=LeaseId(body.id), agent_id=name, started_at_ms=event.at_ms
        )

    def _seat(self, tx: Tx, body: InvocationStarted) -> AgentBusy:
        """Return the slice of a new terminal invocation, over one that is proven gone."""
        row = occupancy.find(tx, body.agent)
        evicted = None
        if row is not None and row.invocation is not None:
            evicted = self._evictions.proven(tx, row, row.invocation)
            found = invocations.find(tx, row.invocation.id)
            if found is not None and found.state == InvocationState.RUNNING:
                invocations.lose(tx, found, evicted, None)
        return AgentBusy(agent=body.agent, holder=body.holder, invocation=body.id, evicted=evicted)

    async def invocation_beat(
        self, caller: Caller, request: InvocationBeatRequest
    ) -> InvocationBeatResult:
        """Take a sign of life; what has ended gets StateConflict `lease-lost` (EV-B7)."""
        del caller

        def look(reader: Reader) -> InvocationRow:
            row = invocations.find(reader, request.invocation_id)
            if row is None:
                raise _unknown(request.invocation_id)
            if not _is_current(reader, row):
                raise lease_lost(row.agent, row.id, row.evidence)
            return row

        found = await self._store.read(look)
        self._judge.beat(found.id)
        now_ms = self._store.clock.now_ms()
        return InvocationBeatResult(
            invocation_id=found.id,
            until_ms=self._judge.of(seat_of(found), now_ms).until_ms,
            server_time_ms=now_ms,
        )

    async def invocation_finish(
        self, caller: Caller, request: InvocationFinishRequest
    ) -> InvocationFinishResult:
        """Record how it ended; the first word counts, one after `lost` is late (EV-I2, EV-B8).

        Raises NotFound `unknown-invocation`.
        """
        del caller
        op = op_of("invocation_finish", request)

        def command(tx: Tx) -> InvocationFinishResult:
            found = invocations.find(tx, request.invocation_id)
            if found is None:
                raise _unknown(request.invocation_id)
            tx.done_before(found.agent, op)  # a key that was used for another request is refused
            if found.state == InvocationState.FINISHED:
                return _finish(found)
            body = InvocationFinished(
                outcome=request.outcome.value,
                error=request.error,
                is_late=found.state == InvocationState.LOST,
                summary=request.summary,
            )
            invocations.finish(tx, found, body, op)
            return _finish(invocations.find(tx, request.invocation_id) or found)

        return await self._store.write(command)

    async def invocation_notify(
        self, caller: Caller, request: InvocationNotifyRequest
    ) -> InvocationNotifyResult:
        """Make the first who asks the one who tells of the end; the others learn who it is (EV-I3).

        Raises NotFound `unknown-invocation`, StateConflict `still-running`.
        """
        del caller
        by = agent_id(request.by, "by")
        op = op_of("invocation_notify", request)

        def command(tx: Tx) -> InvocationNotifyResult:
            before = tx.done_before(by, op)
            found = invocations.find(tx, request.invocation_id)
            if found is None:
                raise _unknown(request.invocation_id)
            if found.state == InvocationState.RUNNING:
                raise StateConflict(f"{found.id} still runs", code="still-running")
            won, who, at_ms = before is not None, found.notified_by, found.notified_at_ms
            if who is None or at_ms is None:
                event = invocations.notify(tx, found, by, op)
                won, who, at_ms = True, by, event.at_ms
            return InvocationNotifyResult(
                invocation_id=found.id, won=won, notified_by=AgentId(who), notified_at_ms=at_ms
            )

        return await self._store.write(command)


def _is_current(source: Tx | Reader, row: InvocationRow) -> bool:
    """Say whether it is recorded as running, one in a terminal by both of its rows (EV-B3)."""
    if row.state != InvocationState.RUNNING:
        return False
    if row.kind != InvocationKind.TERMINAL:
        return True
    taken = occupancy.find(source, row.agent)
    return taken is not None and taken.invocation is not None and taken.invocation.id == row.id


def _still(tx: Tx, before: Event) -> Event:
    """Return the first result of a key while it is true.

    Raises StateConflict `lease-lost` once what it started has ended, so that nobody takes a
    retry's answer for a seat.
    """
    if isinstance(before.body, InvocationStarted):
        found = invocations.find(tx, before.body.id)
        if found is None or not _is_current(tx, found):
            raise lease_lost(
                AgentId(before.body.agent),
                before.body.id,
                None if found is None else found.evidence,
            )
    return before


def _finish(found: InvocationRow) -> InvocationFinishResult:
    return InvocationFinishResult(
        invocation_id=found.id,
        outcome=Outcome(found.outcome or Outcome.OK),
        is_late=found.is_late,
        ended_at_ms=found.ended_at_ms or 0,
    )


def _unknown(invocation_id: str) -> NotFound:
    return NotFound(f"no invocation has the id {invocation_id}", code="unknown-invocation")
