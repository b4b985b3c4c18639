"""Reviews and locks: take and end the one, set and clear the other.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import AccessDenied, StateConflict
from tfx.hub.models import LeaseId
from tfx.hub.services import notices
from tfx.hub.services.work import people
from tfx.hub.services.work.decisions import task_of
from tfx.hub.services.work.recording import Asked, decide, note, recorded, refusal
from tfx.hub.services.work.shapes import lock_view, review_view
from tfx.hub.store import leases, reviews
from tfx.hub.store.events import RequestNoted
from tfx.hub.store.ids import new_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.ops import op_of
from tfx.hub.store.work_bodies import LockSet, ReviewClaimed, ReviewEnded
from tfx.hub.wire.leases import (
    LockClearRequest,
    LockClearResult,
    LockResult,
    LockSetRequest,
    ReviewClaimRequest,
    ReviewReleaseRequest,
    ReviewResult,
)
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Caller
    from tfx.hub.services.work.people import Worker
    from tfx.hub.services.work.recording import Refused
    from tfx.hub.store.events import Event
    from tfx.hub.store.reviews import ReviewRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx


class Reviewing:
    """Who judges, and what stands still."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def work_review_claim(self, caller: Caller, request: ReviewClaimRequest) -> ReviewResult:
        """Take the review of a task that is in review, and never of one's own (WK-R1 … WK-R3)."""
        op = op_of("work_review_claim", request)

        def command(tx: Tx) -> ReviewResult | Refused:
            who, agent, session = people.supervised(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(agent, op)
            if before is not None:
                return _review_of(tx, before)

            def work() -> ReviewResult:
                found = reviews.active(tx, task.stream)
                if found is not None and found.agent == agent:
                    return ReviewResult(review=review_view(tx, found))
                _may_review(tx, task, agent, found)
                review = LeaseId(new_id(tx.now_ms))
                reviews.claim(tx, task, review, agent, session, op)
                made = reviews.active(tx, task.stream)
                return ReviewResult(review=None if made is None else review_view(tx, made))

            return recorded(tx, task, who, "review-claim", guarded=True, work=work, told=_review_id)

        return await decide(self._store, command, Asked(request, "review-claim", guarded=True))

    async def work_review_release(
        self, caller: Caller, request: ReviewReleaseRequest
    ) -> ReviewResult:
        """End a review (WK-R4): a wrong id is an error, none held is none."""
        op = op_of("work_review_release", request)

        def command(tx: Tx) -> ReviewResult | Refused:
            who = people.worker(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            before = tx.done_before(who.actor, op)
            if before is not None:
                return _review_of(tx, before)

            def work() -> ReviewResult:
                found = reviews.active(tx, task.stream)
                if found is None and request.review_id is None:
                    return ReviewResult(review=None)
                _must_be_its(task, who, found, request.review_id)
                if found is None:
                    return ReviewResult(review=None)
                if who.is_holder(found.agent, found.session):
                    reason = request.reason or "released"
                    reviews.end(tx, Kind.REVIEW_RELEASED, task, found, reason, who.actor, op)
                else:
                    reason = request.reason or "ended by the operator"
                    reviews.end(tx, Kind.REVIEW_REVOKED, task, found, reason, who.actor, op)
                    notices.review_lost(tx, task, found, reason)
                ended = reviews.find(tx, found.id) or found
                return ReviewResult(review=review_view(tx, ended))

            return recorded(
                tx, task, who, "review-release", guarded=False, work=work, told=_review_id
            )

        return await decide(self._store, command, Asked(request, "review-release", guarded=False))

    async def work_lock(self, caller: Caller, request: LockSetRequest) -> LockResult:
        """Stop a task or a room (WK-K1); the same lock again is the same lock."""
        op = op_of("work_lock", request)

        def command(tx: Tx) -> LockResult | Refused:
            who, task = _scope(tx, caller, request)
            stream = None if task is None else task.stream
            found = reviews.lock_of(tx, who.room, stream)
            before = tx.done_before(who.actor, op)
            if before is not None and (found is None or found.stream != before.stream):
                raise StateConflict(
                    "what this request locked goes on since then",
                    code="stale",
                    hint="tfx lease status",
                )
            if found is None:
                body = LockSet(
                    lock=new_id(tx.now_ms),
                    note=request.note,
                    reason=request.reason.value,
                    room=who.room,
                    task=stream,
                )
                reviews.set_lock(tx, body, who.actor, op)
                found = reviews.lock_of(tx, who.room, stream)
            if (
                found is None
                or found.reason != request.reason
                or request.note not in {None, found.note}
            ):
                error = StateConflict(
                    "it is locked already, for another reason",
                    code="lock-active",
                    hint="tfx lease unlock",
                    details={"reason": None if found is None else found.reason},
                )
                return refusal(tx, error, who, "lock", lock=found)
            note(tx, "lock", lock=found, result=found.id)
            return LockResult(lock=lock_view(tx, found))

        return await decide(self._store, command, Asked(request, "lock", guarded=False))

    async def work_unlock(self, caller: Caller, request: LockClearRequest) -> LockClearResult:
        """Let a task or a room go on; where no lock is nothing happens."""
        op = op_of("work_unlock", request)

        def command(tx: Tx) -> LockClearResult | Refused:
            who, task = _scope(tx, caller, request)
            before = tx.done_before(who.actor, op)
            if before is not None and isinstance(before.body, RequestNoted):
                return LockClearResult(cleared=None)
            if before is not None:
                old = reviews.lock_by_stream(tx, before.stream)
                return LockClearResult(cleared=None if old is None else lock_view(tx, old))
            found = reviews.lock_of(tx, who.room, None if task is None else task.stream)
            if found is None:
                note(tx, "unlock", task=task)
                return LockClearResult(cleared=None)
            view = lock_view(tx, found)
            reviews.clear_lock(tx, found, who.actor, op)
            return LockClearResult(cleared=view)

        return await decide(self._store, command, Asked(request, "unlock", guarded=False))


def _scope(
    tx: Tx, caller: Caller, request: LockSetRequest | LockClearRequest
) -> tuple[Worker, TaskRow | None]:
    who = people.worker(tx, caller, request)
    return who, None if request.task is None else task_of(tx, who.room, request.task)


def _review_of(tx: Tx, before: Event) -> ReviewResult:
    """Return what the same request was answered with: its review as it stands now, or none."""
    body, review = before.body, None
    if isinstance(body, RequestNoted):
        review = body.result
    elif isinstance(body, (ReviewClaimed, ReviewEnded)):
        review = body.review
    old = None if review is None else reviews.find(tx, review)
    return ReviewResult(review=None if old is None else review_view(tx, old))


def _review_id(answer: ReviewResult) -> str | None:
    return None if answer.review is None else answer.review.review_id


def _may_review(tx: Tx, task: TaskRow, agent: AgentId, found: ReviewRow | None) -> None:
    held = leases.active(tx, task.stream)
    if agent == task.assignee or (held is not None and held.agent == agent):
        raise AccessDenied(
            f"task {task.number} is {agent}'s own work: another agent has to review it",
            code="self-review",
            details={"task": task.number},
        )
    if found is not None:
        raise StateConflict(
            f"{found.agent} reviews task {task.number} already",
            code="held",
            details={"task": task.number, "reviewer": found.agent, "review_id": found.id},
        )
    if task.status != TaskStatus.IN_REVIEW:
        raise StateConflict(
            f"task {task.number} is {task.status}, not in_review",
            code="bad-status",
            details={"task": task.number, "status": task.status},
        )


def _must_be_its(
    task: TaskRow, who: Worker, found: ReviewRow | None, review_id: str | None
) -> None:
    if found is None or review_id not in {None, found.id}:
        raise StateConflict(
            f"the review of task {task.number} is another one; look again",
            code="lease-changed",
            details={"task": task.number, "review_id": None if found is None else found.id},
        )
    if not (who.is_operator or who.is_holder(found.agent, found.session)):
        raise AccessDenied(
            f"{found.agent} reviews task {task.number}",
            code="lease-holder",
            details={"task": task.number, "reviewer": found.agent},
        )
