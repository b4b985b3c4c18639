"""Review leases and locks: take, end, find.

SQL and events only; who may do what is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.models import AgentId, LeaseId, StreamNo
from tfx.hub.store.kinds import Kind
from tfx.hub.store.work_bodies import LockCleared, LockSet, ReviewClaimed, ReviewEnded

if TYPE_CHECKING:
    from tfx.core.database import Row
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx

_REVIEW: Final = (
    "SELECT id, task, agent, session, created_at_ms, status, ended_at_ms, reason "
    "FROM review_leases "
)
ACTIVE_REVIEW: Final = _REVIEW + "WHERE task = ? AND status = 'active'"
REVIEWS_OF_AGENT: Final = _REVIEW + "WHERE status = 'active' AND agent = ? ORDER BY task LIMIT ?"
REVIEWS_OF_ROOM: Final = (
    "SELECT r.id, r.task, r.agent, r.session, r.created_at_ms, r.status, r.ended_at_ms, r.reason "
    "FROM review_leases r "
    "JOIN tasks t ON t.stream = r.task WHERE r.status = 'active' AND t.room = ? "
    "ORDER BY r.task LIMIT ?"
)
REVIEW_BY_ID: Final = _REVIEW + "WHERE id = ?"
REVIEWS_OF_SESSION: Final = _REVIEW + "WHERE session = ? AND status = 'active' ORDER BY task"
_LOCK: Final = (
    "SELECT k.stream, k.id, k.room, k.task, k.reason, k.note, k.set_by, k.set_at_ms FROM locks k "
)
ACTIVE_LOCK: Final = (
    _LOCK + "WHERE k.room = ?1 AND coalesce(k.task, 0) = ?2 AND k.cleared_at_ms IS NULL"
)
LOCK_BY_STREAM: Final = _LOCK + "WHERE k.stream = ?"
LOCKS_OF_ROOM: Final = (
    _LOCK + "WHERE k.room = ? AND k.cleared_at_ms IS NULL ORDER BY coalesce(k.task, 0)"
)


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review lease as the projection has it."""

    id: LeaseId
    task: StreamNo
    agent: AgentId
    session: str
    created_at_ms: int
    status: str
    ended_at_ms: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock that is set; of a room when `task` is null."""

    stream: StreamNo
    id: str
    room: str
    task: int | None
    reason: str
    note: str | None
    set_by: AgentId
    set_at_ms: int

    @property
    def name(self) -> str:
        """The name of its stream, for the ids of its events."""
        return f"lock/{self.id}"


def active(source: Tx | Reader, task: int) -> ReviewRow | None:
    """Return who reviews a task."""
    row = source.one(ACTIVE_REVIEW, (task,))
    return None if row is None else _review(row)


def find(source: Tx | Reader, review_id: str) -> ReviewRow | None:
    """Return a review by its id, however it stands."""
    row = source.one(REVIEW_BY_ID, (review_id,))
    return None if row is None else _review(row)


def of_session(source: Tx | Reader, session: str) -> list[ReviewRow]:
    """Return what a session reviews."""
    return [_review(row) for row in source.all(REVIEWS_OF_SESSION, (session,))]


def of_agent(source: Tx | Reader, agent: str, limit: int) -> list[ReviewRow]:
    """Return what an agent reviews."""
    return [_review(row) for row in source.all(REVIEWS_OF_AGENT, (agent, limit))]


def of_room(source: Tx | Reader, room: str, limit: int) -> list[ReviewRow]:
    """Return every review that is open in a room."""
    return [_review(row) for row in source.all(REVIEWS_OF_ROOM, (room, limit))]


def claim(  # noqa: PLR0917  (one event)
    tx: Tx, task: TaskRow, review: LeaseId, agent: AgentId, session: str, op: Op | None
) -> None:
    """Make an agent the reviewer of a task."""
    body = ReviewClaimed(agent=agent, review=review, session=session)
    tx.append(task.name, task.stream, Kind.REVIEW_CLAIMED, agent, body, op=op)


def end(  # noqa: PLR0917  (one event)
    tx: Tx, kind: Kind, task: TaskRow, review: ReviewRow, reason: str, actor: AgentId, op: Op | None
) -> None:
    """End a review."""
    body = ReviewEnded(reason=reason, review=review.id)
    tx.append(task.name, task.stream, kind, actor, body, op=op)


def lock_of(source: Tx | Reader, room: str, task: int | None) -> LockRow | None:
    """Return the lock of exactly this scope."""
    row = source.one(ACTIVE_LOCK, (room, task or 0))
    return None if row is None else _lock(row)


def lock_by_stream(source: Tx | Reader, stream: int) -> LockRow | None:
    """Return a lock by its stream, set or cleared."""
    row = source.one(LOCK_BY_STREAM, (stream,))
    return None if row is None else _lock(row)


def lock_over(source: Tx | Reader, room: str, task: int | None) -> LockRow | None:
    """Return the lock that stops a task or, without one, new work: the room's comes first."""
    of_room = lock_of(source, room, None)
    return of_room if of_room is not None or task is None else lock_of(source, room, task)


def locks_of_room(source: Tx | Reader, room: str) -> list[LockRow]:
    """Return every lock that is set in a room, its own first."""
    return [_lock(row) for row in source.all(LOCKS_OF_ROOM, (room,))]


def set_lock(tx: Tx, body: LockSet, actor: AgentId, op: Op | None) -> None:
    """Set a lock; it is a stream of its own."""
    tx.begin_stream(f"lock/{body.lock}", Kind.LOCK_SET, actor, body, op=op)


def clear_lock(tx: Tx, lock: LockRow, actor: AgentId, op: Op | None) -> None:
    """Clear a lock."""
    body = LockCleared(lock=lock.id)
    tx.append(lock.name, lock.stream, Kind.LOCK_CLEARED, actor, body, op=op)


def _review(row: Row) -> ReviewRow:
    return ReviewRow(*row)  # type: ignore[arg-type]


def _lock(row: Row) -> LockRow:
    return LockRow(*row)  # type: ignore[arg-type]
