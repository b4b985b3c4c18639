"""Whether the holder of a seat is gone: by proof, or by its deadline where none can be had.

Shared by the services about occupancy and agents; changes nothing, and knows no wire request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.core.identity import Finding, Liveness, ProcessIdentity
from tfx.errors import InvalidRequest, NotFound
from tfx.hub.models import LeaseId, MessageId
from tfx.hub.occupancy_models import Evidence, Tier
from tfx.hub.store import invocations, occupancy
from tfx.hub.store.occupancy import Seat
from tfx.hub.store.occupancy_bodies import Evicted, Holder
from tfx.hub.wire.seats import EvictedView, SeatView

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.hub.models import AgentId
    from tfx.hub.store.invocations import InvocationRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx
    from tfx.hub.wire.agents import ProcessFacts

GRACE_MS: Final = 60_000
"""So long after a start or a jump of the clock no deadline ends a seat (EV-B9)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a holder; with `evidence` it may be evicted."""

    liveness: Liveness
    evidence: Evidence | None
    beat_age_ms: int
    until_ms: int


class Judge:
    """Judges holders; `examine` is the one door to the processes of this machine."""

    def __init__(self, store: Store, examine: Callable[[ProcessIdentity], Finding]) -> None:
        self._store = store
        self.examine = examine

    def of(self, seat: Seat, now_ms: int) -> Verdict:
        """Return what is known of the holder of a seat (EV-B4, EV-B6).

        Proof counts at once; the deadline of one that cannot be looked at only when it had its
        time to call since the hub started or the clock jumped. A silent live process stays.
        """
        finding = self.examine(seat.process)
        pulse = self._store.pulses.get(seat.id)
        heard_ms = seat.since_ms if pulse is None else pulse.received_at_ms
        until_ms = max(seat.until_ms, heard_ms + seat.holder.ttl_ms)
        evidence = None
        if finding.liveness is Liveness.DEAD and finding.proof is not None:
            evidence = Evidence(finding.proof.value)
        elif finding.liveness is Liveness.UNKNOWN and now_ms >= until_ms:
            evidence = Evidence.DEADLINE if self._store.clock.steady_ms() >= GRACE_MS else None
        return Verdict(finding.liveness, evidence, max(0, now_ms - heard_ms), until_ms)

    def evicted(self, seat: Seat, now_ms: int, *, force: bool = False) -> Evicted | None:
        """Return the record of an eviction, or None where nothing allows one."""
        verdict = self.of(seat, now_ms)
        evidence = verdict.evidence or (Evidence.FORCE if force else None)
        if evidence is None:
            return None
        return Evicted(
            beat_age_ms=verdict.beat_age_ms,
            evidence=evidence.value,
            holder=seat.holder,
            id=seat.id,
        )

    def beat(self, seat_id: LeaseId) -> None:
        """Take a sign of life, the beginning being the first; volatile, never an event.

        It moves with a jump of the clock, and every deadline that runs from it (EV-B9).
        """
        pulses, now_ms = self._store.pulses, self._store.clock.now_ms()
        old = pulses.get(seat_id)
        if old is None:
            pulses.take(seat_id, 1, now_ms, now_ms)
        else:  # a clock that was set back since makes no beat an old one
            pulses.take(seat_id, old.sequence + 1, max(now_ms, old.observed_at_ms), now_ms)

    def view(self, seat: Seat, now_ms: int) -> SeatView:
        """Return a seat as others may see it."""
        verdict = self.of(seat, now_ms)
        return SeatView(
            tier=seat.tier,
            seat_id=seat.id,
            host=seat.holder.host,
            pid=seat.holder.pid,
            liveness=verdict.liveness,
            evidence=verdict.evidence,
            since_ms=seat.since_ms,
            until_ms=verdict.until_ms,
            beat_age_ms=verdict.beat_age_ms,
            message_id=None if seat.message is None else MessageId(seat.message),
        )

    def seats(self, reader: Reader, agent: AgentId) -> tuple[int, tuple[SeatView, ...]]:
        """Return the generation of an agent and who keeps it busy; one search by key (EV-B2)."""
        row = occupancy.find(reader, agent)
        if row is None:
            return 0, ()
        return row.generation, tuple(self.view(seat, reader.now_ms) for seat in row.seats)


def seat_of(row: InvocationRow) -> Seat:
    """Return an invocation as a seat, to be judged as one."""
    until_ms = row.started_at_ms + row.holder.ttl_ms
    return Seat(Tier.INVOCATION, row.id, row.holder, row.started_at_ms, until_ms)


def holder_of(facts: ProcessFacts, ttl_ms: int) -> Holder:
    """Return the process that a request names, as a holder."""
    return Holder(
        boot_id=facts.boot_id,
        host=facts.host,
        pid=facts.pid,
        pid_namespace=facts.pid_namespace,
        start_token=facts.start_token,
        ttl_ms=ttl_ms,
    )


def shown(evicted: Evicted | None) -> EvictedView | None:
    """Return an eviction in its wire form."""
    if evicted is None:
        return None
    return EvictedView(
        seat_id=LeaseId(evicted.id),
        host=evicted.holder.host,
        pid=evicted.holder.pid,
        evidence=Evidence(evicted.evidence),
        beat_age_ms=evicted.beat_age_ms,
    )


def task_of(source: Tx | Reader, room: str | None, number: int | None) -> int | None:
    """Return the stream of the task that a request names, None where it names none.

    Raises InvalidRequest for half a name, NotFound `unknown-task`.
    """
    if (room is None) != (number is None):
        raise InvalidRequest("room and task go together", details={"field": "task"})
    if room is None or number is None:
        return None
    found = invocations.task_stream(source, room, number)
    if found is None:
        raise NotFound(f"there is no task {number} in {room}", code="unknown-task")
    return found
