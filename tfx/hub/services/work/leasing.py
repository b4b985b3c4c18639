"""Work leases: claim, renew, release, hand off, force, beat, look.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import InvalidRequest, NotFound, StateConflict
from tfx.hub.models import LeaseId
from tfx.hub.services import endings, notices
from tfx.hub.services.life import own_name
from tfx.hub.services.work import freeing, people, policy, targets
from tfx.hub.services.work.claiming import claim
from tfx.hub.services.work.decisions import (
    CLOSED,
    OWNED,
    compare,
    lost,
    must_hold,
    not_lost,
    observed,
    task_of,
)
from tfx.hub.services.work.recording import Asked, decide, recorded
from tfx.hub.services.work.shapes import Depth
from tfx.hub.store import leases, tasks
from tfx.hub.store.events import RequestNoted
from tfx.hub.store.ids import new_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.ops import op_of
from tfx.hub.store.work_bodies import WorkClaimed, WorkEnded, WorkHandedOff
from tfx.hub.wire.leases import (
    ClaimRequest,
    ForceReleaseRequest,
    HandoffRequest,
    HandoffResult,
    LeaseResult,
    ReleaseRequest,
    ReleaseResult,
    RenewRequest,
    RenewResult,
)
from tfx.hub.work_models import LeaseState, TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.life import Life
    from tfx.hub.services.work.decisions import Expected
    from tfx.hub.services.work.people import Worker
    from tfx.hub.services.work.recording import Refused
    from tfx.hub.services.work.shapes import Shapes
    from tfx.hub.store.events import Event
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx
    from tfx.hub.wire.work import Fenced, LeaseView, TaskView


class Leasing:
    """Who works on what."""

    def __init__(self, store: Store, life: Life, shapes: Shapes) -> None:
        self._store = store
        self._life = life
        self._shapes = shapes

    async def work_claim(self, caller: Caller, request: ClaimRequest) -> LeaseResult:
        """Claim a task (WK-L1 … WK-L7); claiming again returns the same lease (WK-L2)."""
        op = op_of("work_claim", request)

        def command(tx: Tx) -> LeaseResult | Refused:
            who, agent, session = people.supervised(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(agent, op)
            if before is not None:
                return self._claimed(tx, _claimed_by(before))
            task = endings.expire_due(tx, task)
            holder = leases.Holder(
                agent,
                session,
                label=request.label or agent,
                instance=request.instance,
                worktree=request.worktree,
                ttl_ms=request.ttl_ms,
            )
            return recorded(
                tx,
                task,
                who,
                "claim",
                guarded=True,
                work=lambda: self._claimed(tx, claim(tx, task, holder, op)),
                told=lambda made: made.lease.lease_id,
            )

        return await decide(self._store, command, Asked(request, "claim", guarded=True))

    async def work_renew(self, caller: Caller, request: RenewRequest) -> RenewResult:
        """Give a lease a new end (WK-D2); only one that was claimed with a time to live has any."""
        op = op_of("work_renew", request)

        def command(tx: Tx) -> RenewResult | Refused:
            found = leases.find(tx, request.lease_id)
            if found is None:
                raise NotFound(f"no lease has the id {request.lease_id}", code="unknown-lease")
            task = _task(tx, found)
            who = people.worker(tx, caller, request)
            if tx.done_before(found.agent, op) is not None:
                return RenewResult(lease=self._lease(tx, found.id))
            task = endings.expire_due(tx, task)

            def work() -> RenewResult:
                held = leases.find(tx, found.id) or found
                if held.status != LeaseState.ACTIVE:
                    raise lost(tx, task, held)
                if held.epoch != request.epoch:
                    raise StateConflict("the epoch is another one", code="lease-changed")
                must_hold(tx, task, who, held)
                if held.ttl_ms is None:
                    raise StateConflict(
                        "this lease has no time to live, so it needs no renewal",
                        code="no-ttl",
                        details={"lease_id": held.id},
                    )
                leases.renew(tx, task, held, request.ttl_ms or held.ttl_ms, op)
                return RenewResult(lease=self._lease(tx, held.id))

            return recorded(tx, task, who, "renew", guarded=False, work=work)

        return await decide(self._store, command, Asked(request, "renew", guarded=False))

    async def work_release(self, caller: Caller, request: ReleaseRequest) -> ReleaseResult:
        """Give a task back (WK-L15, WK-L16); of an assignment without a lease too (WK-L21)."""
        op = op_of("work_release", request)
        expected = await self._expected(request)

        def command(tx: Tx) -> ReleaseResult | Refused:
            who = people.worker(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(who.actor, op)
            if before is not None:
                return self._released(tx, task, _ended(before))
            task = endings.expire_due(tx, task)

            def work() -> ReleaseResult:
                held = compare(tx, task, expected)
                not_lost(tx, task, who, expected)
                reason = request.reason or "released"
                if held is None:
                    freeing.may_give_up(task, who)
                else:
                    must_hold(tx, task, who, held)
                policy.must_be_free(tx, task, who)
                freeing.free(tx, Kind.WORK_RELEASED, task, held, reason, who, op)
                return self._released(tx, task, None if held is None else held.id)

            return recorded(tx, task, who, "release", guarded=False, work=work)

        return await decide(self._store, command, Asked(request, "release", guarded=False))

    async def work_force_release(
        self, caller: Caller, request: ForceReleaseRequest
    ) -> ReleaseResult:
        """Take a task from its holder or from a dead assignee (WK-D5, WK-K2)."""
        op = op_of("work_force_release", request)
        if request.lease_id is None and request.epoch is None and not request.no_lease:
            raise InvalidRequest(
                "say which lease is taken: lease_id and epoch, or that there is none",
                code="lease-needed",
                hint="tfx lease status",
            )
        expected = await self._expected(request)

        def command(tx: Tx) -> ReleaseResult | Refused:
            who = people.worker(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(who.actor, op)
            if before is not None:
                return self._released(tx, task, _ended(before))
            task = endings.expire_due(tx, task)

            def work() -> ReleaseResult:
                held = compare(tx, task, expected)
                if held is None and (task.status not in OWNED or not (task.assignee or task.label)):
                    raise freeing.nothing_held(task)
                freeing.free(tx, Kind.WORK_FORCED, task, held, request.reason, who, op)
                return self._released(tx, task, None if held is None else held.id)

            return recorded(tx, task, who, "force-release", guarded=False, work=work)

        return await decide(self._store, command, Asked(request, "force-release", guarded=False))

    async def work_handoff(self, caller: Caller, request: HandoffRequest) -> HandoffResult:
        """Hand a task to exactly one live session, in one event (WK-L17, WK-L18)."""
        op = op_of("work_handoff", request)
        expected = await self._expected(request)
        target = own_name(request.to)

        def command(tx: Tx) -> HandoffResult | Refused:
            who = people.worker(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(who.actor, op)
            if before is not None and isinstance(before.body, WorkHandedOff):
                return self._handed(tx, task, before.body.evicted, before.body.lease)
            task = endings.expire_due(tx, task)

            def work() -> HandoffResult:
                held = compare(tx, task, expected)
                not_lost(tx, task, who, expected)
                if held is None or task.status in CLOSED:
                    raise freeing.nothing_held(task)
                must_hold(tx, task, who, held)
                policy.must_be_free(tx, task, who)
                session, instance = targets.one_live(
                    tx, self._life, task, target, request.to_session, request.to_instance
                )
                if (target, session) == (held.agent, held.session):
                    raise StateConflict(f"{target} has the task already", code="held")
                holder = leases.Holder(
                    target,
                    session,
                    label=target,
                    instance=instance,
                    ttl_ms=request.ttl_ms,
                )
                return self._hand_off(tx, task, held, holder, who, request.reason, op)

            return recorded(tx, task, who, "handoff", guarded=True, work=work)

        return await decide(self._store, command, Asked(request, "handoff", guarded=True))

    async def _expected(self, request: Fenced) -> Expected | None:
        """Return what the author believes; without a word of it, what can be seen now (WK-L9)."""
        number: int = getattr(request, "task")  # noqa: B009  (every fenced request here has it)

        def look(reader: Reader) -> Expected | None:
            room = people.room_of(reader, request)
            return observed(reader, request, tasks.find(reader, room, number))

        return await self._store.read(look)

    def _hand_off(  # noqa: PLR0917  (both sides and the reason)
        self,
        tx: Tx,
        task: TaskRow,
        held: LeaseRow,
        holder: leases.Holder,
        who: Worker,
        reason: str | None,
        op: Op | None,
    ) -> HandoffResult:
        status = task.status
        if status == TaskStatus.BLOCKED:
            status = TaskStatus.ASSIGNED.value
        lease = LeaseId(new_id(tx.now_ms))
        leases.hand_off(tx, task, held, holder, status, lease, who.actor, reason, op)
        endings.end_own_review(tx, task, holder.agent, who.actor)
        if who.agent != held.agent:
            notices.lost(tx, task, held, reason or "handed off", lease)
        notices.handed(tx, task, holder.agent, lease, held.epoch + 1, reason)
        return self._handed(tx, task, held.id, lease)

    def _claimed(self, tx: Tx, lease: LeaseRow | str) -> LeaseResult:
        found = lease if not isinstance(lease, str) else leases.find(tx, lease)
        if found is None:
            raise NotFound("the lease was forgotten with its task", code="unknown-lease")
        task = _task(tx, found)
        return LeaseResult(
            lease=self._shapes.lease(tx, found, task),
            task=self._shapes.task(tx, task, Depth.CLAIMED),
        )

    def _handed(self, tx: Tx, task: TaskRow, old: str, new: str) -> HandoffResult:
        return HandoffResult(
            released=self._lease(tx, old), lease=self._lease(tx, new), task=self._now(tx, task)
        )

    def _released(self, tx: Tx, task: TaskRow, lease_id: str | None) -> ReleaseResult:
        ended = None if lease_id is None else self._lease(tx, lease_id)
        return ReleaseResult(released=ended, task=self._now(tx, task))

    def _now(self, tx: Tx, task: TaskRow) -> TaskView:
        return self._shapes.task(tx, tasks.by_stream(tx, task.stream) or task)

    def _lease(self, tx: Tx | Reader, lease_id: str) -> LeaseView:
        found = leases.find(tx, lease_id)
        if found is None:
            raise NotFound("the lease was forgotten with its task", code="unknown-lease")
        return self._shapes.lease(tx, found, _task(tx, found))


def _task(source: Tx | Reader, lease: LeaseRow) -> TaskRow:
    found = tasks.by_stream(source, lease.task)
    if found is None:
        raise NotFound("the task of this lease was forgotten", code="unknown-task")
    return found


def _claimed_by(event: Event) -> str:
    """Return the lease that a claim made, or found that its author had."""
    if isinstance(event.body, RequestNoted):
        return event.body.result or ""
    return event.body.lease if isinstance(event.body, WorkClaimed) else ""


def _ended(event: Event) -> str | None:
    return event.body.lease if isinstance(event.body, WorkEnded) else None
