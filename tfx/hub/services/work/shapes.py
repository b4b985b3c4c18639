"""Tasks, leases, reviews and locks as others see them.

Reads only.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from tfx.hub.models import AgentId, LeaseId
from tfx.hub.services.work.decisions import OWNED
from tfx.hub.store import leases, reviews, tasks
from tfx.hub.wire.work import (
    LeaseView,
    LockView,
    ReviewView,
    TaskLine,
    TaskView,
)
from tfx.hub.wire.work_parts import ArtifactView, Assignee
from tfx.hub.work_models import ArtifactKind, LeaseState, LockReason, TaskStatus

if TYPE_CHECKING:
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.pulses import Pulses
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.reviews import LockRow, ReviewRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx


class Depth(IntEnum):
    """How much of a task's detail an answer carries, in characters (H-31)."""

    CHANGED = 0
    """Of a change: its author knows the task."""
    CLAIMED = 2_000
    """Of a claim: most details are no longer, so no second call is needed."""
    WHOLE = 20_000


ARTIFACTS_SHOWN: Final = 20
"""So many artifacts stand in the whole of a task, the newest."""
ARTIFACTS_IN_SHORT: Final = 5
"""So many stand in every other answer."""


class Shapes:
    """Turns rows into views; knows the pulses, which are no rows."""

    def __init__(self, pulses: Pulses) -> None:
        self._pulses = pulses

    def lease(self, source: Tx | Reader, row: LeaseRow, task: TaskRow) -> LeaseView:
        """Return a lease as it stands."""
        pulse = self._pulses.get(row.session)
        heard = row.created_at_ms if pulse is None else pulse.received_at_ms
        return LeaseView(
            lease_id=row.id,
            epoch=row.epoch,
            room=task.room,
            task=task.number,
            state=LeaseState(row.status),
            agent_id=row.agent,
            session=row.session,
            instance=row.instance,
            label=row.label,
            worktree=row.worktree,
            created_at_ms=row.created_at_ms,
            last_beat_ms=max(row.created_at_ms, min(heard, row.ended_at_ms or heard)),
            ttl_ms=row.ttl_ms,
            expires_at_ms=row.expires_at_ms,
            ended_at_ms=row.ended_at_ms,
            reason=row.reason,
            successor=leases.successor(source, row),
        )

    def task(self, source: Tx | Reader, row: TaskRow, depth: Depth = Depth.CHANGED) -> TaskView:
        """Return a task with what belongs to it; all of that only when it is the whole."""
        held = leases.active(source, row.stream)
        review = reviews.active(source, row.stream)
        parent = _parent(source, row)
        reasons = waits_for(source, row, held)
        artifacts = tasks.artifacts(source, row.stream)
        shown = ARTIFACTS_SHOWN if depth is Depth.WHOLE else ARTIFACTS_IN_SHORT
        return TaskView(
            room=row.room,
            task=row.number,
            status=TaskStatus(row.status),
            title=row.title,
            detail=row.detail[:depth] if depth else None,
            detail_chars=len(row.detail),
            priority=row.priority,
            author=row.author,
            assignee=_assignee(row),
            lease=None if held is None else self.lease(source, held, row),
            review=None if review is None else review_view(source, review),
            locks=tuple(
                lock_view(source, lock)
                for lock in (
                    reviews.lock_of(source, row.room, None),
                    reviews.lock_of(source, row.room, row.stream),
                )
                if lock is not None
            ),
            ready=not reasons,
            waits_for=reasons,
            parent=None if parent is None else parent.number,
            blocked_by=tasks.numbers(source, tasks.BLOCKERS, (row.stream,)),
            exclusive=row.exclusive,
            source_message=row.source_message,
            source_task=row.source_task,
            branch=row.branch,
            pr=row.pr,
            output=row.output,
            artifacts=tuple(
                ArtifactView(
                    kind=ArtifactKind(str(kind)),
                    identity=str(identity),
                    attached_by=AgentId(str(author)),
                    attached_at_ms=int(at or 0),
                )
                for kind, identity, author, at in artifacts[-shown:]
            ),
            artifacts_total=len(artifacts),
            note=row.note,
            rounds=row.rounds,
            trace_id=row.trace_id,
            created_at_ms=row.created_at_ms,
            changed_at_ms=row.changed_at_ms,
            closed_at_ms=row.closed_at_ms,
            deleted_at_ms=row.deleted_at_ms,
            revision=row.last_seq,
        )


def line(source: Tx | Reader, row: TaskRow) -> TaskLine:
    """Return a task as it stands in a list."""
    held = leases.active(source, row.stream)
    review = reviews.active(source, row.stream)
    parent = _parent(source, row)
    reasons = waits_for(source, row, held)
    return TaskLine(
        task=row.number,
        status=TaskStatus(row.status),
        title=row.title,
        priority=row.priority,
        agent_id=row.assignee,
        label=row.label,
        holder=None if held is None else held.agent,
        reviewer=None if review is None else review.agent,
        ready=not reasons,
        waits_for=reasons,
        parent=None if parent is None else parent.number,
        branch=row.branch,
        pr=row.pr,
        changed_at_ms=row.changed_at_ms,
        revision=row.last_seq,
    )


def waits_for(source: Tx | Reader, row: TaskRow, held: LeaseRow | None) -> tuple[str, ...]:
    """Return why a task cannot be claimed, nothing when it is ready (WK-T11)."""
    found: list[str] = []
    if row.status != TaskStatus.ACCEPTED:
        found.append(f"status {row.status}")
    if held is not None:
        found.append(f"held by {held.agent}")
    if row.status not in OWNED and row.closed_at_ms is None:
        found += [
            f"blocked by {each}"
            for each in tasks.numbers(source, tasks.OPEN_BLOCKERS, (row.stream,))
        ]
        if row.exclusive is not None:
            rivals = tasks.numbers(source, tasks.RIVALS, (row.room, row.exclusive, row.stream))
            found += [f"not beside {each}" for each in rivals]
    lock = reviews.lock_over(source, row.room, row.stream)
    if lock is not None:
        found.append(f"locked: {lock.reason}")
    return tuple(found)


def review_view(source: Tx | Reader, row: ReviewRow) -> ReviewView:
    """Return a review as it stands, or as it ended."""
    task = tasks.by_stream(source, row.task)
    return ReviewView(
        review_id=LeaseId(row.id),
        room="" if task is None else task.room,
        task=0 if task is None else task.number,
        state=LeaseState(row.status),
        agent_id=row.agent,
        session=row.session,
        created_at_ms=row.created_at_ms,
        ended_at_ms=row.ended_at_ms,
        reason=row.reason,
    )


def lock_view(source: Tx | Reader, row: LockRow) -> LockView:
    """Return a lock."""
    task = None if row.task is None else tasks.by_stream(source, row.task)
    return LockView(
        lock_id=row.id,
        room=row.room,
        task=None if task is None else task.number,
        reason=LockReason(row.reason),
        note=row.note,
        set_by=row.set_by,
        set_at_ms=row.set_at_ms,
    )


def _parent(source: Tx | Reader, row: TaskRow) -> TaskRow | None:
    """Return the parent of a task unless it is gone."""
    found = None if row.parent is None else tasks.by_stream(source, row.parent)
    return None if found is None or found.deleted_at_ms is not None else found


def _assignee(row: TaskRow) -> Assignee | None:
    if row.assignee is None and row.label is None:
        return None
    return Assignee(
        label=row.label, agent_id=row.assignee, instance=row.instance, session=row.session
    )
