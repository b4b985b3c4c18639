"""Work leases: mint, renew, warn, end, hand off; who holds what.

SQL and events only; who may do what is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.models import HUB, AgentId, LeaseId, StreamNo
from tfx.hub.store.kinds import Kind
from tfx.hub.store.wakeups import DEADLINE
from tfx.hub.store.work_bodies import WorkClaimed, WorkEnded, WorkHandedOff, WorkRenewed, WorkWarned

if TYPE_CHECKING:
    from tfx.core.database import Row, Value
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx

WARN_MS: Final = 600_000
"""A holder is warned when a quarter of the time to live is left, but not earlier than this."""
_COLUMNS: Final = (
    "l.id, l.task, l.status, l.epoch, l.agent, l.session, l.instance, l.label, l.worktree, "
    "l.created_at_ms, l.updated_at_ms, l.ttl_ms, l.expires_at_ms, l.warned_at_ms, l.ended_at_ms, "
    "l.reason, l.successor"
)
_FROM: Final = f"SELECT {_COLUMNS} FROM work_leases l "  # noqa: S608  (column names)
BY_ID: Final = _FROM + "WHERE l.id = ?"
ACTIVE: Final = _FROM + "WHERE l.task = ? AND l.status = 'active'"
HISTORY: Final = _FROM + "WHERE l.task = ? ORDER BY l.epoch DESC LIMIT ?"
OF_SESSION: Final = _FROM + "WHERE l.session = ? AND l.status = 'active' ORDER BY l.task"
OF_AGENT: Final = (
    _FROM + "JOIN tasks t ON t.stream = l.task WHERE t.assignee = ? AND t.closed_at_ms IS NULL "
    "AND t.deleted_at_ms IS NULL AND l.status = 'active' ORDER BY l.task LIMIT ?"
)
OF_ROOM: Final = (
    _FROM + "JOIN tasks t ON t.stream = l.task WHERE t.room = ? AND t.closed_at_ms IS NULL "
    "AND t.deleted_at_ms IS NULL AND l.status = 'active' ORDER BY t.number LIMIT ?"
)
DUE: Final = (
    _FROM + "WHERE l.status = 'active' AND l.expires_at_ms IS NOT NULL AND l.expires_at_ms <= ? "
    "ORDER BY l.expires_at_ms LIMIT ?"
)
_WARN_AT: Final = f"l.expires_at_ms - min(l.ttl_ms / 4, {WARN_MS})"
TO_WARN: Final = (
    _FROM + "WHERE l.status = 'active' AND l.expires_at_ms IS NOT NULL AND l.warned_at_ms IS NULL "
    f"AND {_WARN_AT} <= ? ORDER BY l.expires_at_ms LIMIT ?"
)
NEXT_DUE: Final = (
    f"SELECT min(CASE WHEN l.warned_at_ms IS NULL THEN {_WARN_AT} "  # noqa: S608
    "ELSE l.expires_at_ms END) FROM work_leases l "
    "WHERE l.status = 'active' AND l.expires_at_ms IS NOT NULL"
)
HOLDERS: Final = (
    "SELECT agent FROM work_leases WHERE status = 'active' "
    "UNION SELECT agent FROM review_leases WHERE status = 'active'"
)
LAST_OF_SESSION: Final = _FROM + "WHERE l.task = ? AND l.session = ? ORDER BY l.epoch DESC LIMIT 1"
ENDED_BY: Final = (  # the last event that touched an ended lease is the one that ended it
    "SELECT e.kind, e.actor FROM work_leases l JOIN log e ON e.seq = l.last_seq WHERE l.id = ?"
)
NEXT_EPOCH: Final = "SELECT id FROM work_leases WHERE task = ? AND epoch > ? ORDER BY epoch LIMIT 1"
_LAST_EPOCH: Final = "SELECT max(epoch) FROM work_leases WHERE task = ?"


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A work lease as the projection has it."""

    id: LeaseId
    task: StreamNo
    status: str
    epoch: int
    agent: AgentId
    session: str
    instance: str | None
    label: str | None
    worktree: str | None
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int | None
    expires_at_ms: int | None
    warned_at_ms: int | None
    ended_at_ms: int | None
    reason: str | None
    successor: LeaseId | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who a lease is for, and how."""

    agent: AgentId
    session: str
    label: str | None = None
    instance: str | None = None
    worktree: str | None = None
    ttl_ms: int | None = None


def find(source: Tx | Reader, lease_id: str) -> LeaseRow | None:
    """Return a lease by its id, however it stands."""
    return _one(source, BY_ID, (lease_id,))


def active(source: Tx | Reader, task: int) -> LeaseRow | None:
    """Return the active lease of a task."""
    return _one(source, ACTIVE, (task,))


def history(source: Tx | Reader, task: int, limit: int) -> list[LeaseRow]:
    """Return the leases of a task, newest first."""
    return _all(source, HISTORY, (task, limit))


def last_of_session(source: Tx | Reader, task: int, session: str) -> LeaseRow | None:
    """Return the newest lease that a session had on a task, however it stands."""
    return _one(source, LAST_OF_SESSION, (task, session))


def was_taken(source: Tx | Reader, lease: LeaseRow) -> bool:
    """Say whether an ended lease ended otherwise than by its holder's giving or finishing it."""
    if lease.successor is not None:
        return True
    row = source.one(ENDED_BY, (lease.id,))
    return row is None or str(row[0]) == Kind.WORK_FORCED or row[1] != lease.agent


def of_session(source: Tx | Reader, session: str) -> list[LeaseRow]:
    """Return what a session holds."""
    return _all(source, OF_SESSION, (session,))


def of_agent(source: Tx | Reader, agent: str, limit: int) -> list[LeaseRow]:
    """Return what an agent holds, in whichever session."""
    return _all(source, OF_AGENT, (agent, limit))


def of_room(source: Tx | Reader, room: str, limit: int) -> list[LeaseRow]:
    """Return every active lease of a room."""
    return _all(source, OF_ROOM, (room, limit))


def due(tx: Tx, limit: int, ahead_ms: int = 0) -> list[LeaseRow]:
    """Return active leases whose time is over, or will be so much later."""
    return _all(tx, DUE, (tx.now_ms + ahead_ms, limit))


def to_warn(tx: Tx, limit: int) -> list[LeaseRow]:
    """Return active leases that end soon and whose holder was not told (WK-D3)."""
    return _all(tx, TO_WARN, (tx.now_ms, limit))


def holders(source: Tx | Reader) -> list[str]:
    """Return the agents that hold a work or a review lease."""
    return [str(row[0]) for row in source.all(HOLDERS)]


def successor(source: Tx | Reader, lease: LeaseRow) -> LeaseId | None:
    """Return the lease that came after one that has ended (WK-D8)."""
    if lease.ended_at_ms is None or lease.successor is not None:
        return lease.successor
    row = source.one(NEXT_EPOCH, (lease.task, lease.epoch))
    return None if row is None else LeaseId(str(row[0]))


def claim(  # noqa: PLR0917  (one event)
    tx: Tx, task: TaskRow, holder: Holder, status: str, lease: LeaseId, op: Op | None
) -> WorkClaimed:
    """Mint the next lease of a task and make the task its holder's (WK-L5, WK-L6)."""
    body = WorkClaimed(
        agent=holder.agent,
        epoch=_next_epoch(tx, task),
        expires_at_ms=_until(tx, holder),
        instance=holder.instance,
        label=holder.label,
        lease=lease,
        session=holder.session,
        status=status,
        ttl_ms=holder.ttl_ms,
        worktree=holder.worktree,
    )
    tx.append(task.name, task.stream, Kind.WORK_CLAIMED, holder.agent, body, op=op)
    tx.signals.append(DEADLINE)
    return body


def hand_off(  # noqa: PLR0913, PLR0917  (both sides of one event)
    tx: Tx,
    task: TaskRow,
    old: LeaseRow,
    holder: Holder,
    status: str,
    lease: LeaseId,
    actor: AgentId,
    reason: str | None,
    op: Op | None,
) -> None:
    """End a lease and mint the next, in one event (WK-L18)."""
    body = WorkHandedOff(
        agent=holder.agent,
        epoch=_next_epoch(tx, task),
        evicted=old.id,
        expires_at_ms=_until(tx, holder),
        from_agent=old.agent,
        instance=holder.instance,
        label=holder.label,
        lease=lease,
        reason=reason,
        session=holder.session,
        status=status,
        ttl_ms=holder.ttl_ms,
    )
    tx.append(task.name, task.stream, Kind.WORK_HANDED_OFF, actor, body, op=op)
    tx.signals.append(DEADLINE)


def renew(tx: Tx, task: TaskRow, lease: LeaseRow, ttl_ms: int, op: Op | None) -> None:
    """Let a lease run from now on (WK-D2)."""
    body = WorkRenewed(expires_at_ms=tx.now_ms + ttl_ms, lease=lease.id, ttl_ms=ttl_ms)
    tx.append(task.name, task.stream, Kind.WORK_RENEWED, lease.agent, body, op=op)
    tx.signals.append(DEADLINE)


def prolong(tx: Tx, task: TaskRow, lease: LeaseRow, until_ms: int) -> None:
    """Let a lease run until a time, by the hub's own grace; its time to live stays."""
    body = WorkRenewed(expires_at_ms=until_ms, lease=lease.id, ttl_ms=lease.ttl_ms or 1)
    tx.append(task.name, task.stream, Kind.WORK_RENEWED, HUB, body)
    tx.signals.append(DEADLINE)


def warn(tx: Tx, task: TaskRow, lease: LeaseRow) -> None:
    """Record that the holder was told of the end to come."""
    tx.append(task.name, task.stream, Kind.WORK_WARNED, HUB, WorkWarned(lease=lease.id))


def end(  # noqa: PLR0917  (one event)
    tx: Tx,
    kind: Kind,
    task: TaskRow,
    lease: LeaseRow | None,
    reason: str,
    actor: AgentId,
    *,
    status: str | None = None,
    op: Op | None = None,
) -> None:
    """End a lease, or an assignment without one; with a status the task becomes nobody's."""
    body = WorkEnded(
        agent=task.assignee if lease is None else lease.agent,
        epoch=None if lease is None else lease.epoch,
        lease=None if lease is None else lease.id,
        reason=reason,
        session=task.session if lease is None else lease.session,
        status=status,
    )
    tx.append(task.name, task.stream, kind, actor, body, op=op)


def _next_epoch(tx: Tx, task: TaskRow) -> int:
    row = tx.one(_LAST_EPOCH, (task.stream,))
    return 0 if row is None or row[0] is None else int(row[0]) + 1


def _until(tx: Tx, holder: Holder) -> int | None:
    return None if holder.ttl_ms is None else tx.now_ms + holder.ttl_ms


def _one(source: Tx | Reader, sql: str, values: tuple[Value, ...]) -> LeaseRow | None:
    row = source.one(sql, values)
    return None if row is None else _lease(row)


def _all(source: Tx | Reader, sql: str, values: tuple[Value, ...]) -> list[LeaseRow]:
    return [_lease(row) for row in source.all(sql, values)]


def _lease(row: Row) -> LeaseRow:
    return LeaseRow(*row)  # type: ignore[arg-type]
