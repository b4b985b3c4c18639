"""How leases stand: beats, and what became of them (WK-L25 … WK-L28, WK-D8).

Changes no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import NotFound
from tfx.hub.services.life import own_name
from tfx.hub.services.shapes import ENVELOPE_BYTES, fitting
from tfx.hub.services.work import people
from tfx.hub.services.work.decisions import task_of
from tfx.hub.services.work.shapes import lock_view, review_view
from tfx.hub.store import agents, leases, reviews, tasks
from tfx.hub.wire.leases import (
    BeatRequest,
    BeatResult,
    HeldLease,
    LeaseStatusRequest,
    LeaseStatusResult,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfx.hub.models import Caller
    from tfx.hub.services.work.shapes import Shapes
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow


class Standing:
    """What is known of leases without changing them."""

    def __init__(self, store: Store, shapes: Shapes) -> None:
        self._store = store
        self._shapes = shapes

    async def work_beat(self, caller: Caller, request: BeatRequest) -> BeatResult:
        """Take a sign of life; it touches nothing but its own row and revives nothing (WK-L28)."""
        del caller
        name = own_name(request.agent_id)
        store = self._store

        def query(reader: Reader) -> tuple[HeldLease, ...] | None:
            known = agents.find(reader, name)
            if known is None or known.session != request.session:
                return None
            return tuple(
                HeldLease(lease_id=row.id, epoch=row.epoch, room=task.room, task=task.number)
                for row in leases.of_session(reader, request.session)
                if (task := tasks.by_stream(reader, row.task)) is not None
            )

        held = await store.read(query)
        now = store.clock.now_ms()
        if held is None or not store.pulses.take(
            request.session, request.sequence, request.observed_at_ms, now
        ):
            return BeatResult(accepted=False, leases=())
        store.beats.touch(name, now)
        return BeatResult(accepted=True, leases=held)

    async def work_status(self, caller: Caller, request: LeaseStatusRequest) -> LeaseStatusResult:
        """Tell what became of a lease, what a task had, or what an agent or a room has (WK-D8)."""
        del caller

        def query(reader: Reader) -> LeaseStatusResult:
            if request.lease_id is not None:
                found = leases.find(reader, request.lease_id)
                if found is not None:
                    return self._status(reader, request, [found])
                review = reviews.find(reader, request.lease_id)
                if review is not None:
                    return self._status(reader, request, [], [review])
                what = f"no lease and no review has the id {request.lease_id}"
                raise NotFound(what, code="unknown-lease")
            most = request.limit + 1  # one more than is shown says that there is more
            if request.task is None and request.room is None and request.agent_id is not None:
                rows = leases.of_agent(reader, request.agent_id, most)
                judged = reviews.of_agent(reader, request.agent_id, most)
                return self._status(reader, request, rows, judged)
            room = people.room_of(reader, request)
            locks = reviews.locks_of_room(reader, room)
            if request.task is not None:
                task = task_of(reader, room, request.task)
                rows = leases.history(reader, task.stream, most)
                mine = [each for each in locks if each.task in {None, task.stream}]
                one = reviews.active(reader, task.stream)
                return self._status(reader, request, rows, [] if one is None else [one], mine)
            judged = reviews.of_room(reader, room, most)
            rows = leases.of_room(reader, room, most)
            return self._status(reader, request, rows, judged, locks)

        return await self._store.read(query)

    def _status(
        self,
        reader: Reader,
        request: LeaseStatusRequest,
        rows: list[LeaseRow],
        judged: Sequence[reviews.ReviewRow] = (),
        locks: Sequence[reviews.LockRow] = (),
    ) -> LeaseStatusResult:
        most = request.limit
        held = [self._shapes.lease(reader, row, _task(reader, row)) for row in rows[:most]]
        open_ones = [review_view(reader, each) for each in judged[:most]]
        still = [lock_view(reader, each) for each in locks[:most]]
        found = (*held, *open_ones, *still)
        shown, _ = fitting(found, request.max_bytes - ENVELOPE_BYTES)
        to_reviews, to_locks = len(held), len(held) + len(open_ones)
        return LeaseStatusResult(
            leases=tuple(held[: len(shown)]),
            reviews=tuple(open_ones[: max(0, len(shown) - to_reviews)]),
            locks=tuple(still[: max(0, len(shown) - to_locks)]),
            more=len(shown) < len(rows) + len(judged) + len(locks),
        )


def _task(reader: Reader, lease: LeaseRow) -> TaskRow:
    found = tasks.by_stream(reader, lease.task)
    if found is None:
        raise NotFound("the task of this lease was forgotten", code="unknown-task")
    return found
