"""What is recorded as running: looked at by the probe, and listed.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.models import AgentId, LeaseId, TraceId
from tfx.hub.occupancy_models import (
    Evidence,
    InvocationKind,
    InvocationState,
    Outcome,
    SeatEnd,
)
from tfx.hub.services.judge import seat_of, task_of
from tfx.hub.store import invocations
from tfx.hub.wire.invocations import (
    InvocationsRequest,
    InvocationsResult,
    InvocationView,
    ProbeRequest,
    ProbeResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.invocations import InvocationRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

PAGE: Final = 500
_LAST: Final = 2**63 - 1


class Running:
    """Invocations as a person or the hub looks at them."""

    def __init__(self, store: Store, judge: Judge) -> None:
        self._store = store
        self._judge = judge

    async def invocations_probe(self, caller: Caller, request: ProbeRequest) -> ProbeResult:
        """Look at every process that is recorded as running; who is proven gone is lost (EV-I1)."""
        del caller, request
        return await self.probe()

    async def probe(self) -> ProbeResult:
        """Do what `invocations_probe` does; a second one finds nothing more to do.

        Found by a look, decided again inside the transaction (EV-T7).
        """
        looked_at, after = 0, 0
        suspects: list[str] = []

        def look(reader: Reader) -> list[InvocationRow]:
            rows = invocations.running(reader, after, PAGE)
            suspects.extend(
                row.id for row in rows if self._judge.of(seat_of(row), reader.now_ms).evidence
            )
            return rows

        while rows := await self._store.read(look):
            looked_at += len(rows)
            after = rows[-1].stream
        if not suspects:
            return ProbeResult(looked_at=looked_at, lost=())

        def command(tx: Tx) -> list[LeaseId]:
            return [each for each in map(LeaseId, suspects) if self._lose(tx, each)]

        lost = await self._store.write(command)
        return ProbeResult(looked_at=looked_at, lost=tuple(lost))

    def _lose(self, tx: Tx, invocation_id: LeaseId) -> bool:
        found = invocations.find(tx, invocation_id)
        if found is None or found.state != InvocationState.RUNNING:
            return False
        evicted = self._judge.evicted(seat_of(found), tx.now_ms)
        if evicted is not None:
            invocations.lose(tx, found, evicted, SeatEnd.LOST)
        return evicted is not None

    async def invocations(self, caller: Caller, request: InvocationsRequest) -> InvocationsResult:
        """List invocations, newest first; raises NotFound `unknown-task`."""
        del caller
        before = _LAST if request.before is None else request.before

        def query(reader: Reader) -> InvocationsResult:
            rows = invocations.page(
                reader,
                before,
                request.limit + 1,
                agent=request.agent_id,
                task=task_of(reader, request.room, request.task),
                state=request.state,
            )
            more = len(rows) > request.limit
            rows = rows[: request.limit]
            return InvocationsResult(
                invocations=tuple(self._view(row, reader.now_ms) for row in rows),
                next_before=rows[-1].stream if more else None,
            )

        return await self._store.read(query)

    def _view(self, row: InvocationRow, now_ms: int) -> InvocationView:
        runs = row.state == InvocationState.RUNNING
        verdict = self._judge.of(seat_of(row), now_ms) if runs else None
        return InvocationView(
            seq=row.stream,
            invocation_id=row.id,
            kind=InvocationKind(row.kind),
            agent_id=row.agent,
            state=InvocationState(row.state),
            title=row.title,
            trace_id=None if row.trace_id is None else TraceId(row.trace_id),
            room=row.room,
            task=row.task,
            host=row.holder.host,
            pid=row.holder.pid,
            liveness=None if verdict is None else verdict.liveness,
            beat_age_ms=None if verdict is None else verdict.beat_age_ms,
            started_at_ms=row.started_at_ms,
            ended_at_ms=row.ended_at_ms,
            is_late=row.is_late,
            outcome=None if row.outcome is None else Outcome(row.outcome),
            summary=row.summary,
            error=row.error,
            evidence=None if row.evidence is None else Evidence(row.evidence),
            notified_by=None if row.notified_by is None else AgentId(row.notified_by),
            notified_at_ms=row.notified_at_ms,
        )
