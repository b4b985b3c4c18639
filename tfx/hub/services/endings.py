"""How leases end by themselves: time, the end of a session, the change of a task.

One function for each, so that a lease that is swept and one found too late look alike (WK-D3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import TfxError
from tfx.hub.models import HUB, AgentId
from tfx.hub.services import notices
from tfx.hub.store import leases, reviews, runs, task_story, tasks
from tfx.hub.store.kinds import Kind
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import StreamNo
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

GRACE_MS: Final = 60_000
EXPIRED: Final = "expired"
SESSION_ENDED: Final = "session ended"
CHANGED: Final = "completed or ownership changed"


def expire(tx: Tx, task: TaskRow, lease: LeaseRow) -> None:
    """End a lease whose time is over; the task is accepted again unless it waits for a verdict.

    That is a review, or the person where the policy has blocked it (WK-K8): it stays as it is then.
    """
    keeps = task.status == TaskStatus.IN_REVIEW or task_story.stopped_by_policy(tx, task)
    status = None if keeps else TaskStatus.ACCEPTED.value
    leases.end(tx, Kind.WORK_EXPIRED, task, lease, EXPIRED, HUB, status=status)
    notices.lost(tx, task, lease, EXPIRED)


def expire_due(tx: Tx, task: TaskRow) -> TaskRow:
    """Expire the task's lease if it is due; return the task as it is then (WK-L1)."""
    held = leases.active(tx, task.stream)
    if held is None or held.expires_at_ms is None or held.expires_at_ms > tx.now_ms:
        return task
    expire(tx, task, held)
    return tasks.by_stream(tx, task.stream) or task


async def follow(store: Store, run: StreamNo, jump_ms: int) -> None:
    """Move every open deadline and the hub's time by a jump, in one step for every command.

    A deadline that a command gave between the two would be over at once. After a time without the
    hub leases get a grace. What refuses the step takes it back whole.
    """
    moved: list[int] = []

    def move(by_ms: int) -> None:
        store.clock.follow(by_ms)
        store.beats.shift(by_ms)
        store.pulses.shift(by_ms)

    def command(tx: Tx) -> None:
        runs.jump(tx, run, jump_ms)
        if jump_ms > 0:
            give_grace(tx, jump_ms)
        move(jump_ms)
        moved.append(jump_ms)

    try:
        await store.write(command)
    except TfxError:
        for each in moved:
            move(-each)
        raise


def give_grace(tx: Tx, jump_ms: int = 0) -> int:
    """Let leases that end soon run a little longer: while the hub was away nobody could renew.

    Called when the hub starts, and when its time is about to jump ahead: after a suspend, or a time
    in which it did not run (WK-D3, EV-B9).
    """
    ahead_ms = jump_ms + GRACE_MS
    over = leases.due(tx, 1_000_000, ahead_ms)
    for lease in over:
        task = tasks.by_stream(tx, lease.task)
        if task is not None:
            leases.prolong(tx, task, lease, tx.now_ms + ahead_ms)
    return len(over)


def sweep(tx: Tx, limit: int) -> int:
    """Expire what is due and warn who is next; return how many leases it touched (WK-D3)."""
    over = leases.due(tx, limit)
    for lease in over:
        task = tasks.by_stream(tx, lease.task)
        if task is not None:
            expire(tx, task, lease)
    soon = leases.to_warn(tx, limit)
    for lease in soon:
        task = tasks.by_stream(tx, lease.task)
        if task is not None:
            leases.warn(tx, task, lease)
            notices.ending(tx, task, lease)
    return max(len(over), len(soon))


def end_session(tx: Tx, session: str | None, actor: AgentId) -> int:
    """Revoke everything that a session holds, in the transaction that ends it (WK-L24).

    The task keeps its assignee, so that only the same agent can reclaim it.
    """
    if session is None:
        return 0
    held = leases.of_session(tx, session)
    for lease in held:
        task = tasks.by_stream(tx, lease.task)
        if task is not None:
            leases.end(tx, Kind.WORK_REVOKED, task, lease, SESSION_ENDED, actor)
            notices.lost(tx, task, lease, SESSION_ENDED)
    for review in reviews.of_session(tx, session):
        task = tasks.by_stream(tx, review.task)
        if task is not None:
            reviews.end(tx, Kind.REVIEW_REVOKED, task, review, SESSION_ENDED, actor, None)
            notices.review_lost(tx, task, review, SESSION_ENDED)
    return len(held)


def end_review(tx: Tx, task: TaskRow, reason: str, actor: AgentId) -> None:
    """End the review of a task that is in review no more; the reviewer is told (WK-D8)."""
    review = reviews.active(tx, task.stream)
    if review is not None:
        reviews.end(tx, Kind.REVIEW_REVOKED, task, review, reason, actor, None)
        if review.agent != actor:
            notices.review_lost(tx, task, review, reason)


def end_own_review(tx: Tx, task: TaskRow, owner: AgentId, actor: AgentId) -> None:
    """End the review of a task whose new owner is the reviewer (WK-R2)."""
    review = reviews.active(tx, task.stream)
    if review is not None and review.agent == owner:
        end_review(tx, task, "it is the reviewer's own work now", actor)


def revoke(tx: Tx, task: TaskRow, lease: LeaseRow, reason: str, actor: AgentId) -> None:
    """End the lease of a task that is about to change hands or to leave them (WK-L22)."""
    leases.end(tx, Kind.WORK_REVOKED, task, lease, reason, actor)
    if lease.agent != actor:
        notices.lost(tx, task, lease, reason)
