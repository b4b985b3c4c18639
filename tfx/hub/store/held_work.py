"""Look into the hub's database for who holds and reviews work, what waits, and what is locked.

Opens read-only as `inspection` does (K-22) and judges nothing: whether a holder still lives is for
the caller to ask its process.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.core import database
from tfx.core.clock import SystemClock
from tfx.core.identity import ProcessIdentity
from tfx.hub.models import AgentId, LeaseId
from tfx.hub.store.reader import Reader
from tfx.hub.work_models import LockReason, TaskStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tfx.core.database import Row

MOST: Final = 1_000
_AGENT: Final = (
    "a.session IS NOT NULL, a.retired_at_ms, a.host, a.boot_id, a.pid, a.start_token, "
    "a.pid_namespace, max(coalesce(b.seen_at_ms, 0), coalesce(a.registered_at_ms, 0))"
)
_OF_AGENT: Final = "LEFT JOIN agents a ON a.id = {key} LEFT JOIN beats b ON b.agent = {key} "
LEASES: Final = (
    "SELECT t.room, t.number, l.agent, l.id, l.epoch, l.expires_at_ms, "  # noqa: S608  (columns)
    f"max(l.updated_at_ms, t.changed_at_ms), {_AGENT} "
    "FROM work_leases l JOIN tasks t ON t.stream = l.task "
    + _OF_AGENT.format(key="l.agent")
    + "WHERE l.status = 'active' ORDER BY l.created_at_ms LIMIT ?"
)
LEFT: Final = (
    "SELECT t.room, t.number, coalesce(t.assignee, t.label), t.status, "  # noqa: S608  (columns)
    f"max(t.changed_at_ms, coalesce(a.ended_at_ms, 0)), a.id IS NOT NULL, {_AGENT} FROM tasks t "
    + _OF_AGENT.format(key="coalesce(t.assignee, t.label)")
    + "WHERE t.status IN ('assigned', 'in_progress', 'blocked') AND t.deleted_at_ms IS NULL "
    "AND t.closed_at_ms IS NULL "
    "AND (t.assignee IS NOT NULL OR (t.label IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agents g "
    "WHERE g.retired_at_ms IS NULL AND json_extract(g.metadata, '$.label') = t.label))) "
    "AND NOT EXISTS (SELECT 1 FROM work_leases l "
    "WHERE l.task = t.stream AND l.status = 'active') ORDER BY t.changed_at_ms LIMIT ?"
)
REVIEWS: Final = (
    "SELECT t.room, t.number, r.agent, r.id, r.created_at_ms, "  # noqa: S608  (column names)
    f"{_AGENT} FROM review_leases r JOIN tasks t ON t.stream = r.task "
    + _OF_AGENT.format(key="r.agent")
    + "WHERE r.status = 'active' ORDER BY r.created_at_ms LIMIT ?"
)
WAITING: Final = (
    "SELECT t.room, t.number, t.assignee, "  # noqa: S608  (column names)
    "max(t.changed_at_ms, coalesce((SELECT max(r.ended_at_ms) FROM review_leases r "
    "WHERE r.task = t.stream), 0)), EXISTS (SELECT 1 FROM work_leases l "
    f"WHERE l.task = t.stream AND l.status = 'active'), {_AGENT} FROM tasks t "
    + _OF_AGENT.format(key="t.assignee")
    + "WHERE t.status = 'in_review' AND t.deleted_at_ms IS NULL AND t.closed_at_ms IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM review_leases r WHERE r.task = t.stream "
    "AND r.status = 'active') ORDER BY t.changed_at_ms LIMIT ?"
)
STOPPED: Final = (
    "SELECT t.room, t.number, t.assignee, e.at_ms FROM tasks t JOIN log e ON e.seq = "
    "(SELECT max(m.seq) FROM log m WHERE m.stream = t.stream AND m.kind = 'task_moved') "
    "WHERE t.status = 'blocked' AND t.deleted_at_ms IS NULL AND json_extract(e.body, '$.policy') "
    "ORDER BY e.seq LIMIT ?"
)
LOCKS: Final = (
    "SELECT k.room, t.number, k.reason, k.set_by, k.set_at_ms FROM locks k "
    "LEFT JOIN tasks t ON t.stream = k.task "
    "WHERE k.cleared_at_ms IS NULL AND t.closed_at_ms IS NULL AND t.deleted_at_ms IS NULL "
    "ORDER BY k.stream LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who a task is given to; `process` is known for an open session that named one."""

    name: AgentId
    has_session: bool
    is_retired: bool
    process: ProcessIdentity | None
    seen_ms: int


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task with an active lease; `moved_ms` is when the lease or the task last changed."""

    room: str
    task: int
    holder: Worker
    lease: LeaseId
    epoch: int
    expires_at_ms: int | None
    moved_ms: int


@dataclass(frozen=True, slots=True)
class LeftTask:
    """A task that is somebody's and that nobody holds; not one that waits for its review.

    `left_ms` is when it last changed or the session of its assignee ended. One that is given to a
    name alone has it as its assignee, unless an agent is registered by that name as its label.
    """

    room: str
    task: int
    status: TaskStatus
    assignee: Worker
    is_known: bool
    left_ms: int


@dataclass(frozen=True, slots=True)
class HeldReview:
    """A task that somebody reviews since `since_ms`."""

    room: str
    task: int
    reviewer: Worker
    review: LeaseId
    since_ms: int


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task in review that nobody reviews; `since_ms` is when it changed or its review ended.

    `is_held` says that its assignee still has the lease.
    """

    room: str
    task: int
    assignee: Worker | None
    is_held: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class StoppedTask:
    """A task that the policy blocked at `since_ms`, until a person decides (WK-K8)."""

    room: str
    task: int
    assignee: AgentId | None
    since_ms: int


@dataclass(frozen=True, slots=True)
class StandingLock:
    """A lock of an open task, or of a room without `task`."""

    room: str
    task: int | None
    reason: LockReason
    set_by: AgentId
    set_at_ms: int


@dataclass(frozen=True, slots=True)
class HeldWork:
    """What was seen, the oldest first and at most `MOST` of each."""

    held: tuple[HeldTask, ...]
    left: tuple[LeftTask, ...]
    reviews: tuple[HeldReview, ...]
    waiting: tuple[WaitingTask, ...]
    stopped: tuple[StoppedTask, ...]
    locks: tuple[StandingLock, ...]


def look(path: Path) -> HeldWork:
    """Return who holds what; the file must have the current schema.

    Raises what opening and reading it raises.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        reader = Reader(connection, SystemClock().now_ms())
        return HeldWork(
            held=tuple(map(_held, reader.all(LEASES, (MOST,)))),
            left=tuple(map(_left, reader.all(LEFT, (MOST,)))),
            reviews=tuple(map(_review, reader.all(REVIEWS, (MOST,)))),
            waiting=tuple(map(_waiting, reader.all(WAITING, (MOST,)))),
            stopped=tuple(map(_stopped, reader.all(STOPPED, (MOST,)))),
            locks=tuple(map(_lock, reader.all(LOCKS, (MOST,)))),
        )


def _held(row: Row) -> HeldTask:
    room, task, agent, lease, epoch, expires, moved, *rest = row
    return HeldTask(
        room=str(room),
        task=_whole(task),
        holder=_worker(agent, rest),
        lease=LeaseId(str(lease)),
        epoch=_whole(epoch),
        expires_at_ms=None if expires is None else _whole(expires),
        moved_ms=_whole(moved),
    )


def _left(row: Row) -> LeftTask:
    room, task, assignee, status, left, is_known, *rest = row
    return LeftTask(
        room=str(room),
        task=_whole(task),
        status=TaskStatus(str(status)),
        assignee=_worker(assignee, rest),
        is_known=bool(is_known),
        left_ms=_whole(left),
    )


def _review(row: Row) -> HeldReview:
    room, task, agent, review, since, *rest = row
    return HeldReview(
        str(room), _whole(task), _worker(agent, rest), LeaseId(str(review)), _whole(since)
    )


def _waiting(row: Row) -> WaitingTask:
    room, task, assignee, since, is_held, *rest = row
    who = None if assignee is None else _worker(assignee, rest)
    return WaitingTask(str(room), _whole(task), who, bool(is_held), _whole(since))


def _stopped(row: Row) -> StoppedTask:
    room, task, assignee, since = row
    name = None if assignee is None else AgentId(str(assignee))
    return StoppedTask(str(room), _whole(task), name, _whole(since))


def _lock(row: Row) -> StandingLock:
    room, task, reason, set_by, set_at = row
    return StandingLock(
        str(room),
        None if task is None else _whole(task),
        LockReason(str(reason)),
        AgentId(str(set_by)),
        _whole(set_at),
    )


def _worker(name: database.Value, rest: list[database.Value]) -> Worker:
    has_session, retired, host, boot, pid, start, namespace, seen = rest
    process = None
    if has_session and start is not None and boot is not None and pid is not None:
        process = ProcessIdentity(
            str(host), str(boot), _whole(pid), str(start), str(namespace or "")
        )
    return Worker(AgentId(str(name)), bool(has_session), retired is not None, process, _whole(seen))


def _whole(value: database.Value) -> int:
    return int(value or 0)
