"""Turn events of tasks, leases, reviews and locks into changes of rows: pure (EV-P1).

Knows no connection, clock, process or random value.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from tfx.hub.store.changes import Cell, Change, Changes
from tfx.hub.store.kinds import Kind
from tfx.hub.store.work_bodies import (
    ArtifactAttached,
    LockSet,
    ReviewClaimed,
    ReviewEnded,
    TaskChanged,
    TaskCreated,
    TaskMoved,
    WorkClaimed,
    WorkEnded,
    WorkHandedOff,
    WorkRenewed,
    WorkWarned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfx.hub.store.events import Event

CLOSED: Final = frozenset({"done", "cancelled"})
_END_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        Kind.WORK_RELEASED.value: "released",
        Kind.WORK_REVOKED.value: "revoked",
        Kind.WORK_FORCED.value: "revoked",
        Kind.WORK_EXPIRED.value: "expired",
    }
)


def _created(event: Event) -> Changes:
    body = cast("TaskCreated", event.body)
    row = (
        event.stream,
        body.room,
        body.number,
        body.status,
        body.title,
        body.detail,
        body.priority,
        body.author,
        body.client_key,
        body.parent,
        body.exclusive,
        body.source_message,
        body.source_task,
        body.branch,
        body.pr,
        body.output,
        body.trace_id,
        event.at_ms,
        event.at_ms,
        event.seq,
    )
    return [(Change.TASK_ADD, row), *_blockers(event, body.blockers)]


def _blockers(event: Event, blockers: list[int]) -> Changes:
    return [(Change.BLOCKER_ADD, (event.stream, each, event.seq)) for each in blockers]


def _changed(event: Event) -> Changes:
    body = cast("TaskChanged", event.body)
    row = (
        body.title,
        body.detail,
        body.priority,
        body.parent,
        body.exclusive,
        body.branch,
        body.pr,
        body.output,
        body.note,
        event.at_ms,
        event.seq,
        event.stream,
    )
    return [
        (Change.TASK_EDIT, row),
        (Change.BLOCKERS_CLEAR, (event.stream,)),
        *_blockers(event, body.blockers),
    ]


def _moved(event: Event) -> Changes:
    body = cast("TaskMoved", event.body)
    row = (
        body.status,
        body.label,
        body.assignee,
        body.instance,
        body.session,
        body.note,
        body.rounds,
        event.at_ms,
        event.at_ms if body.status in CLOSED else None,
        event.seq,
        event.stream,
    )
    return [(Change.TASK_MOVE, row)]


def _deleted(event: Event) -> Changes:
    """Leave the ended leases: what became of one is told until the task is forgotten (WK-D8)."""
    return [
        (Change.BLOCKERS_CLEAR, (event.stream,)),
        (Change.ARTIFACTS_DROP, (event.stream,)),
        (Change.TASK_BURY, (event.at_ms, event.at_ms, event.seq, event.stream)),
    ]


def _attached(event: Event) -> Changes:
    body = cast("ArtifactAttached", event.body)
    row = (event.stream, body.identity, body.artifact, event.actor, event.at_ms, event.seq)
    links = (body.branch, body.pr, event.at_ms, event.seq, event.stream)
    return [(Change.ARTIFACT_ADD, row), (Change.TASK_LINK, links)]


def _owned(event: Event, body: WorkClaimed | WorkHandedOff) -> Changes:
    task = (
        body.status,
        body.label,
        body.agent,
        body.instance,
        body.session,
        event.at_ms,
        event.seq,
        event.stream,
    )
    lease = (
        body.lease,
        event.stream,
        body.epoch,
        body.agent,
        body.session,
        body.instance,
        body.label,
        body.worktree if isinstance(body, WorkClaimed) else None,
        event.at_ms,
        event.at_ms,
        body.ttl_ms,
        body.expires_at_ms,
        event.seq,
    )
    return [(Change.TASK_OWN, task), (Change.LEASE_ADD, lease)]


def _claimed(event: Event) -> Changes:
    return _owned(event, cast("WorkClaimed", event.body))


def _handed_off(event: Event) -> Changes:
    body = cast("WorkHandedOff", event.body)
    why = body.reason or "handed off"
    end = ("released", event.at_ms, event.at_ms, why, body.lease, event.seq, body.evicted)
    return [(Change.LEASE_END, end), *_owned(event, body)]


def _renewed(event: Event) -> Changes:
    body = cast("WorkRenewed", event.body)
    row = (body.ttl_ms, body.expires_at_ms, event.at_ms, event.seq, body.lease)
    return [(Change.LEASE_RENEW, row)]


def _warned(event: Event) -> Changes:
    body = cast("WorkWarned", event.body)
    return [(Change.LEASE_WARN, (event.at_ms, event.seq, body.lease))]


def _ended(event: Event) -> Changes:
    body = cast("WorkEnded", event.body)
    changes: Changes = []
    if body.lease is not None:
        row = (
            _END_OF[event.kind],
            event.at_ms,
            event.at_ms,
            body.reason,
            body.successor,
            event.seq,
            body.lease,
        )
        changes.append((Change.LEASE_END, row))
    if body.status is not None:
        row_of_task = (body.status, event.at_ms, event.seq, event.stream)
        changes.append((Change.TASK_FREE, row_of_task))
    else:
        changes.append(_touched(event))
    return changes


def _touched(event: Event) -> tuple[Change, tuple[Cell, ...]]:
    """Move the task's revision: its line on the board names holder and reviewer (WK-B2)."""
    return (Change.TASK_TOUCH, (event.seq, event.stream))


def _review_claimed(event: Event) -> Changes:
    body = cast("ReviewClaimed", event.body)
    row = (body.review, event.stream, body.agent, body.session, event.at_ms, event.seq)
    return [(Change.REVIEW_ADD, row), _touched(event)]


def _review_ended(event: Event) -> Changes:
    body = cast("ReviewEnded", event.body)
    status = "released" if event.kind == Kind.REVIEW_RELEASED else "revoked"
    row = (status, event.at_ms, body.reason, event.seq, body.review)
    return [(Change.REVIEW_END, row), _touched(event)]


def _lock_set(event: Event) -> Changes:
    body = cast("LockSet", event.body)
    row = (
        event.stream,
        body.lock,
        body.room,
        body.task,
        body.reason,
        body.note,
        event.actor,
        event.at_ms,
        event.seq,
    )
    return [(Change.LOCK_ADD, row)]


def _lock_cleared(event: Event) -> Changes:
    return [(Change.LOCK_CLEAR, (event.actor, event.at_ms, event.seq, event.stream))]


def _denied(_event: Event) -> Changes:
    """Keep it in the log only: a refusal changes no row."""
    return []


WORK_FOLDERS: Final[Mapping[str, Callable[[Event], Changes]]] = MappingProxyType(
    {
        Kind.TASK_CREATED.value: _created,
        Kind.TASK_CHANGED.value: _changed,
        Kind.TASK_MOVED.value: _moved,
        Kind.TASK_DELETED.value: _deleted,
        Kind.ARTIFACT_ATTACHED.value: _attached,
        Kind.WORK_CLAIMED.value: _claimed,
        Kind.WORK_RENEWED.value: _renewed,
        Kind.WORK_WARNED.value: _warned,
        Kind.WORK_RELEASED.value: _ended,
        Kind.WORK_HANDED_OFF.value: _handed_off,
        Kind.WORK_REVOKED.value: _ended,
        Kind.WORK_EXPIRED.value: _ended,
        Kind.WORK_FORCED.value: _ended,
        Kind.REVIEW_CLAIMED.value: _review_claimed,
        Kind.REVIEW_RELEASED.value: _review_ended,
        Kind.REVIEW_REVOKED.value: _review_ended,
        Kind.LOCK_SET.value: _lock_set,
        Kind.LOCK_CLEARED.value: _lock_cleared,
        Kind.CLAIM_DENIED.value: _denied,
    }
)
