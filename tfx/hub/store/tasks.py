"""Tasks: create, change, move, attach, delete; what is ready.

SQL and events only; who may do what is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.hub.models import AgentId, StreamNo, TraceId
from tfx.hub.store.events import encode_body
from tfx.hub.store.kinds import Kind
from tfx.hub.store.work_bodies import (
    ArtifactAttached,
    TaskChanged,
    TaskCreated,
    TaskDeleted,
    TaskMoved,
)

if TYPE_CHECKING:
    from tfx.core.database import Row, Value
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Op, Tx

COLUMNS: Final = (
    "t.stream, t.room, t.number, t.status, t.title, t.detail, t.priority, t.author, t.client_key, "
    "t.parent, t.exclusive, t.source_message, t.source_task, t.branch, t.pr, t.output, t.label, "
    "t.assignee, t.instance, t.session, t.note, t.rounds, t.trace_id, t.created_at_ms, "
    "t.changed_at_ms, t.closed_at_ms, t.deleted_at_ms, t.last_seq"
)
_FROM: Final = f"SELECT {COLUMNS} FROM tasks t "  # noqa: S608  (column names)
BY_NUMBER: Final = _FROM + "WHERE t.room = ? AND t.number = ?"
BY_STREAM: Final = _FROM + "WHERE t.stream = ?"
BY_KEY: Final = _FROM + "WHERE t.room = ? AND t.client_key = ?"
IS_OPEN: Final = "{0}.closed_at_ms IS NULL AND {0}.deleted_at_ms IS NULL"
OPEN_BLOCKERS: Final = (
    "SELECT o.number FROM blockers b JOIN tasks o ON o.stream = b.blocker "  # noqa: S608
    f"WHERE b.task = ? AND {IS_OPEN.format('o')} ORDER BY o.number"
)
RIVALS: Final = (
    "SELECT x.number FROM tasks x "  # noqa: S608  (a rule of this module)
    "WHERE x.room = ?1 AND x.exclusive = ?2 AND x.stream <> ?3 "
    "AND x.status IN ('assigned', 'in_progress', 'blocked', 'in_review') "
    f"AND {IS_OPEN.format('x')} ORDER BY x.number"
)
_READY: Final = (
    "t.room = ?1 AND t.status = 'accepted' AND t.deleted_at_ms IS NULL "  # noqa: S608
    "AND NOT EXISTS (SELECT 1 FROM locks k WHERE k.room = t.room AND coalesce(k.task, 0) = 0 "
    "AND k.cleared_at_ms IS NULL) "
    "AND NOT EXISTS (SELECT 1 FROM locks k WHERE k.room = t.room "
    "AND coalesce(k.task, 0) = t.stream AND k.cleared_at_ms IS NULL) "
    "AND NOT EXISTS (SELECT 1 FROM work_leases l WHERE l.task = t.stream AND l.status = 'active') "
    "AND NOT EXISTS (SELECT 1 FROM blockers b JOIN tasks o ON o.stream = b.blocker "
    f"WHERE b.task = t.stream AND {IS_OPEN.format('o')}) "
    "AND (t.exclusive IS NULL OR NOT EXISTS (SELECT 1 FROM tasks x WHERE x.room = t.room "
    "AND x.exclusive = t.exclusive AND x.stream <> t.stream "
    "AND x.status IN ('assigned', 'in_progress', 'blocked', 'in_review') "
    f"AND {IS_OPEN.format('x')})) "
)
NEXT: Final = (
    _FROM + f"WHERE {_READY} AND (t.assignee IS NULL AND (t.label IS NULL OR t.label IN (?2, ?3)) "
    "OR t.assignee = ?2) ORDER BY t.priority DESC, t.number LIMIT 1"
)
READY_PAGE: Final = (  # that an accepted task is open lets the index of open ones be used
    _FROM + f"WHERE {_READY} AND t.closed_at_ms IS NULL AND t.number > ?2 "
    "ORDER BY t.number LIMIT ?3"
)
PAGE: Final = (
    _FROM + "WHERE t.room = ?1 AND t.number > ?2 AND t.deleted_at_ms IS NULL "
    "ORDER BY t.number LIMIT ?3"
)
OPEN_PAGE: Final = (
    _FROM + f"WHERE t.room = ?1 AND t.number > ?2 AND {IS_OPEN.format('t')} "
    "ORDER BY t.number LIMIT ?3"
)
REVISION: Final = (
    "SELECT max(last_seq) FROM tasks WHERE room = ?1 "
    "UNION ALL SELECT max(last_seq) FROM locks WHERE room = ?1"
)
FIRST_BODY: Final = "SELECT body FROM log WHERE seq = ?"
TURNS: Final = (
    "SELECT count(*) FROM invocations WHERE task = ?1 AND kind = 'turn' AND stream > coalesce("
    "(SELECT max(seq) FROM log WHERE stream = ?1 AND (kind = 'work_forced' "
    "OR (kind = 'task_moved' AND json_extract(body, '$.decided')))), 0)"
)
BLOCKERS: Final = (
    "SELECT o.number FROM blockers b JOIN tasks o ON o.stream = b.blocker WHERE b.task = ? "
    "AND o.deleted_at_ms IS NULL ORDER BY o.number"
)
BLOCKER_STREAMS: Final = "SELECT blocker FROM blockers WHERE task = ? ORDER BY blocker"
ARTIFACTS: Final = (
    "SELECT kind, identity, attached_by, attached_at_ms FROM artifacts WHERE task = ? "
    "ORDER BY last_seq, identity"
)
# The edge task -> blocker closes a circle when the task is already reached from the blocker.
REACHES_BY_BLOCKERS: Final = (
    "WITH RECURSIVE r (stream) AS (SELECT ?1 UNION SELECT b.blocker FROM blockers b "
    "JOIN r ON r.stream = b.task) SELECT 1 FROM r WHERE stream = ?2"
)
REACHES_BY_PARENTS: Final = (
    "WITH RECURSIVE r (stream) AS (SELECT ?1 UNION SELECT t.parent FROM tasks t "
    "JOIN r ON r.stream = t.stream WHERE t.parent IS NOT NULL) SELECT 1 FROM r WHERE stream = ?2"
)
_HELD_BY: Final = "SELECT id, epoch FROM work_leases WHERE task = ? AND status = 'active'"
_LAST_NUMBER: Final = (
    "SELECT max(coalesce((SELECT last FROM numbers WHERE room = ?1), 0), "
    "coalesce((SELECT max(number) FROM tasks WHERE room = ?1), 0))"
)
_KEEP_NUMBER: Final = (
    "INSERT INTO numbers (room, last) VALUES (?, ?) "
    "ON CONFLICT (room) DO UPDATE SET last = excluded.last"
)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as the projection has it; `parent` is a stream."""

    stream: StreamNo
    room: str
    number: int
    status: str
    title: str
    detail: str
    priority: int
    author: AgentId
    client_key: str | None
    parent: int | None
    exclusive: str | None
    source_message: str | None
    source_task: str | None
    branch: str | None
    pr: str | None
    output: str | None
    label: str | None
    assignee: AgentId | None
    instance: str | None
    session: str | None
    note: str | None
    rounds: int
    trace_id: TraceId
    created_at_ms: int
    changed_at_ms: int
    closed_at_ms: int | None
    deleted_at_ms: int | None
    last_seq: int

    @property
    def name(self) -> str:
        """The name of its stream, for the ids of its events."""
        return f"task/{self.room}/{self.number}"


def find(source: Tx | Reader, room: str, number: int) -> TaskRow | None:
    """Return a task by its number in a room; also a deleted one."""
    return _one(source, BY_NUMBER, (room, number))


def by_stream(source: Tx | Reader, stream: int) -> TaskRow | None:
    """Return a task by its stream."""
    return _one(source, BY_STREAM, (stream,))


def by_key(source: Tx | Reader, room: str, key: str) -> TaskRow | None:
    """Return the task that was made with a key, whoever made it (WK-T6)."""
    return _one(source, BY_KEY, (room, key))


def first_ready(source: Tx | Reader, room: str, names: tuple[str, str]) -> TaskRow | None:
    """Return the first task that an agent may claim now: by priority, then age (WK-T12).

    `names` are its key and its registered label (WK-T10).
    """
    return _one(source, NEXT, (room, *names))


def page(
    source: Tx | Reader, room: str, after: int, limit: int, *, ready: bool, closed: bool
) -> list[TaskRow]:
    """Return tasks of a room after a number: ready ones, open ones, or all but deleted ones."""
    sql = READY_PAGE if ready else PAGE if closed else OPEN_PAGE
    return [row_of(row) for row in source.all(sql, (room, after, limit))]


def revision(source: Tx | Reader, room: str) -> int:
    """Return the last seq that changed something a board shows (WK-B2)."""
    return max(int(row[0] or 0) for row in source.all(REVISION, (room,)))


def turns(source: Tx | Reader, task: TaskRow) -> int:
    """Return how many turns were reported for a task since a person moved it."""
    row = source.one(TURNS, (task.stream,))
    return 0 if row is None else int(row[0] or 0)


def numbers(source: Tx | Reader, sql: str, values: tuple[Value, ...]) -> tuple[int, ...]:
    """Return the task numbers that a query of this module finds."""
    return tuple(int(row[0] or 0) for row in source.all(sql, values))


def blockers_of(source: Tx | Reader, stream: int) -> tuple[StreamNo, ...]:
    """Return what a task waits for, also what is deleted and so holds nothing up."""
    return tuple(StreamNo(int(row[0] or 0)) for row in source.all(BLOCKER_STREAMS, (stream,)))


def artifacts(source: Tx | Reader, stream: int) -> list[Row]:
    """Return kind, identity, author and time of each artifact of a task."""
    return source.all(ARTIFACTS, (stream,))


def reaches(source: Tx | Reader, sql: str, start: int, goal: int) -> bool:
    """Say whether a task is reached from another by the edges of `sql` (WK-T11)."""
    return source.one(sql, (start, goal)) is not None


def next_number(tx: Tx, room: str) -> int:
    """Return the next number of a room and keep it as used (WK-T4)."""
    row = tx.one(_LAST_NUMBER, (room,))
    number = (0 if row is None else int(row[0] or 0)) + 1
    tx.connection.execute(_KEEP_NUMBER, (room, number))
    return number


def first_text(source: Tx | Reader, task: TaskRow) -> str:
    """Return the body of the event that made a task, as the log holds it."""
    row = source.one(FIRST_BODY, (task.stream,))
    return "" if row is None else str(row[0])


def text_of(body: TaskCreated) -> str:
    """Return a body as the log would hold it, to compare with what it holds."""
    return encode_body(body)


def create(tx: Tx, body: TaskCreated, actor: AgentId, op: Op | None) -> Event:
    """Append a new task."""
    name = f"task/{body.room}/{body.number}"
    return tx.begin_stream(name, Kind.TASK_CREATED, actor, body, op=op)


def change(tx: Tx, task: TaskRow, body: TaskChanged, actor: AgentId, op: Op | None) -> None:
    """Replace what may be edited of a task."""
    lease, epoch = _held_by(tx, task)
    whole = msgspec.structs.replace(body, lease=lease, epoch=epoch)
    tx.append(task.name, task.stream, Kind.TASK_CHANGED, actor, whole, op=op)


def move(tx: Tx, task: TaskRow, body: TaskMoved, actor: AgentId, op: Op | None) -> None:
    """Give a task another status or assignee; its lease must agree (WK-L22)."""
    tx.append(task.name, task.stream, Kind.TASK_MOVED, actor, body, op=op)


def attach(tx: Tx, task: TaskRow, body: ArtifactAttached, actor: AgentId, op: Op | None) -> None:
    """Attach an artifact to a task, in one event (WK-L14)."""
    lease, epoch = _held_by(tx, task)
    whole = msgspec.structs.replace(body, lease=lease, epoch=epoch)
    tx.append(task.name, task.stream, Kind.ARTIFACT_ATTACHED, actor, whole, op=op)


def delete(tx: Tx, task: TaskRow, reason: str, actor: AgentId, op: Op | None) -> None:
    """Delete a task with its leases (WK-L23)."""
    body = TaskDeleted(reason=reason)
    tx.append(task.name, task.stream, Kind.TASK_DELETED, actor, body, op=op)


def _held_by(tx: Tx, task: TaskRow) -> tuple[str | None, int | None]:
    row = tx.one(_HELD_BY, (task.stream,))
    return (None, None) if row is None else (str(row[0]), int(row[1] or 0))


def _one(source: Tx | Reader, sql: str, values: tuple[Value, ...]) -> TaskRow | None:
    row = source.one(sql, values)
    return None if row is None else row_of(row)


def row_of(row: Row) -> TaskRow:
    """Return a task from a row of `COLUMNS`."""
    return TaskRow(*row)  # type: ignore[arg-type]
