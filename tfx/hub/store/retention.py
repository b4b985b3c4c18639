"""Forget whole closed streams past their keep time, events and rows together (EV-P8, H-72, H-73).

SQL only; how long is kept is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.hub.store.tally import Counted

if TYPE_CHECKING:
    from tfx.core import database
    from tfx.hub.models import Retention
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Tx

PAGE: Final = 500
BATCH: Final = 200
VACUUM_PAGES: Final = 256

# A message is open while a delivery is; a reply stays as long as the request that it answers.
MESSAGES: Final = (
    "SELECT m.stream, m.posted_at_ms, "
    "(SELECT count(*) FROM deliveries d WHERE d.message = m.stream AND d.due_at_ms IS NOT NULL), "
    "(SELECT max(d.closed_at_ms) FROM deliveries d WHERE d.message = m.stream), "
    "(SELECT count(*) FROM deliveries d WHERE d.message = m.stream AND d.state = 'dead'), "
    "m.cause IS NOT NULL AND EXISTS (SELECT 1 FROM messages r WHERE r.id = m.cause) "
    "AND EXISTS (SELECT 1 FROM log l WHERE l.seq = m.stream AND l.kind = 'reply_posted') "
    "FROM messages m WHERE m.stream > ? ORDER BY m.stream LIMIT ?"
)
HUMANS: Final = (
    "SELECT stream FROM human_requests WHERE closed_at_ms IS NOT NULL AND closed_at_ms <= ? "
    "ORDER BY closed_at_ms LIMIT ?"
)
AGENTS: Final = (
    "SELECT stream, id FROM agents WHERE retired_at_ms IS NOT NULL AND retired_at_ms <= ? "
    "ORDER BY retired_at_ms LIMIT ?"
)
INVOCATIONS: Final = (
    "SELECT stream FROM invocations WHERE ended_at_ms IS NOT NULL AND ended_at_ms <= ? "
    "ORDER BY ended_at_ms LIMIT ?"
)
# What was asked of no task and no lock is noted in the run: it stays while such a note is young.
# A jump of the clock moved rows of other streams: its run stays while any older one does. A hold
# lives on the stream of an agent that may be older than every run: with a jump, a run stays while
# there is one.
RUNS: Final = (
    "SELECT stream FROM runs WHERE started_at_ms <= ?1 AND stream <> ?2 "
    "AND NOT EXISTS (SELECT 1 FROM log WHERE log.stream = runs.stream "
    "AND log.op_id IS NOT NULL AND log.at_ms > ?1) "
    "AND last_seq < (SELECT coalesce(min(stream), 9223372036854775807) FROM messages) "
    "AND last_seq < (SELECT coalesce(min(stream), 9223372036854775807) FROM human_requests) "
    "AND last_seq < (SELECT coalesce(min(task), 9223372036854775807) FROM work_leases "
    "WHERE expires_at_ms IS NOT NULL) "
    "AND NOT (EXISTS (SELECT 1 FROM occupancy WHERE hold IS NOT NULL) AND EXISTS "
    "(SELECT 1 FROM log WHERE log.stream = runs.stream AND log.kind = 'clock_jumped')) "
    "LIMIT ?3"
)
# The newest of a room stays, so that the revision of its board never falls (WK-B2).
TASKS: Final = (
    "SELECT stream FROM tasks WHERE closed_at_ms IS NOT NULL AND closed_at_ms <= ? "
    "AND last_seq < (SELECT max(n.last_seq) FROM tasks n WHERE n.room = tasks.room) "
    "ORDER BY closed_at_ms LIMIT ?"
)
DELETED_TASKS: Final = (
    "SELECT stream FROM tasks WHERE deleted_at_ms IS NOT NULL AND deleted_at_ms <= ? "
    "AND last_seq < (SELECT max(n.last_seq) FROM tasks n WHERE n.room = tasks.room) "
    "ORDER BY deleted_at_ms LIMIT ?"
)
# A lock goes with its task, a cleared one when messages of its age do.
LOCKS: Final = (
    "SELECT stream FROM locks WHERE cleared_at_ms IS NOT NULL AND cleared_at_ms <= ? "
    "AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.stream = locks.task) "
    "AND last_seq < (SELECT max(n.last_seq) FROM tasks n WHERE n.room = locks.room) "
    "ORDER BY cleared_at_ms LIMIT ?"
)
LOCKS_OF: Final = "SELECT stream FROM locks WHERE task = ?"
# Read by its receiver, never answered: nobody will owe it any more.
OWED: Final = (
    "SELECT count(*) FROM messages WHERE settled IS NULL AND type IN ('request', 'handoff') "
    "AND stream IN (SELECT stream FROM forgetting)"
)
_FORGET: Final = (
    "DELETE FROM deliveries WHERE message IN (SELECT stream FROM forgetting)",
    "DELETE FROM messages WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM human_requests WHERE stream IN (SELECT stream FROM forgetting)",
    (
        "DELETE FROM subscriptions WHERE agent IN "
        "(SELECT id FROM agents WHERE stream IN (SELECT stream FROM forgetting))"
    ),
    (
        "DELETE FROM beats WHERE agent IN "
        "(SELECT id FROM agents WHERE stream IN (SELECT stream FROM forgetting))"
    ),
    "DELETE FROM occupancy WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM invocations WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM agents WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM runs WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM blockers WHERE task IN (SELECT stream FROM forgetting)",
    "DELETE FROM artifacts WHERE task IN (SELECT stream FROM forgetting)",
    "DELETE FROM work_leases WHERE task IN (SELECT stream FROM forgetting)",
    "DELETE FROM review_leases WHERE task IN (SELECT stream FROM forgetting)",
    "DELETE FROM locks WHERE stream IN (SELECT stream FROM forgetting)",
    "DELETE FROM tasks WHERE stream IN (SELECT stream FROM forgetting)",
)


@dataclass(frozen=True, slots=True)
class Closed:
    """Streams that may be forgotten now, by what they are."""

    messages: tuple[int, ...] = ()
    dead_letters: tuple[int, ...] = ()
    humans: tuple[int, ...] = ()
    agents: tuple[int, ...] = ()
    runs: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    locks: tuple[int, ...] = ()
    invocations: tuple[int, ...] = ()

    @property
    def streams(self) -> tuple[int, ...]:
        """All of them."""
        bus = self.messages + self.dead_letters + self.humans + self.agents + self.runs
        return bus + self.tasks + self.locks + self.invocations


@dataclass(frozen=True, slots=True)
class Walk:
    """One page of the walk over messages; `after` is where the next begins, None at the end."""

    messages: tuple[int, ...]
    dead_letters: tuple[int, ...]
    after: int | None


def closed_messages(source: Tx | Reader, keep: Retention, after: int) -> Walk:
    """Return which messages of the next page are closed and past their keep time."""
    rows = source.all(MESSAGES, (after, PAGE))
    plain: list[int] = []
    dead: list[int] = []
    now = source.now_ms
    for stream, posted, still_open, closed, dead_count, held in rows:
        if still_open or held:
            continue
        keep_ms = keep.dead_letters_ms if dead_count else keep.messages_ms
        since = closed if isinstance(closed, int) else int(posted or 0)
        if keep_ms and now - since >= keep_ms:
            (dead if dead_count else plain).append(int(stream or 0))
    last = int(rows[-1][0] or 0) if len(rows) == PAGE else None
    return Walk(tuple(plain), tuple(dead), last)


def closed_others(source: Tx | Reader, keep: Retention, run: int) -> Closed:
    """Return human requests, agents and runs that may be forgotten now; `run` is the live one."""
    now = source.now_ms
    humans = _streams(source, HUMANS, keep.human_requests_ms, now)
    gone = _streams(source, AGENTS, keep.agents_ms, now)
    runs: tuple[int, ...] = ()
    if keep.messages_ms:
        rows = source.all(RUNS, (now - keep.messages_ms, run, BATCH))
        runs = tuple(int(row[0] or 0) for row in rows)
    ended = {
        *_streams(source, TASKS, keep.tasks_ms, now),
        *_streams(source, DELETED_TASKS, keep.tasks_ms, now),
    }
    tasks = tuple(sorted(ended))
    locks = {each for task in tasks for each in _numbers(source, LOCKS_OF, (task,))}
    locks |= set(_streams(source, LOCKS, keep.messages_ms, now))
    return Closed(
        humans=humans,
        agents=gone,
        runs=runs,
        tasks=tasks,
        locks=tuple(sorted(locks)),
        invocations=_streams(source, INVOCATIONS, keep.messages_ms, now),
    )


def forget(tx: Tx, streams: tuple[int, ...], counted_seq: int) -> int:
    """Forget streams with their events and rows; return how many events went.

    A stream whose last event is not in the totals yet (`counted_seq`) is left for later.
    """
    connection = tx.connection
    highest = 0
    for stream in streams:
        for (last,) in connection.execute("SELECT max(seq) FROM log WHERE stream = ?", (stream,)):
            if last is not None and last <= counted_seq:
                connection.execute("INSERT INTO forgetting VALUES (?)", (stream,))
                highest = max(highest, last)
    dead = tx.one(
        "SELECT count(*) FROM deliveries WHERE state = 'dead' "
        "AND message IN (SELECT stream FROM forgetting)"
    )
    owed = tx.one(OWED)
    for statement in _FORGET:
        connection.execute(statement)
    connection.execute("DELETE FROM log WHERE stream IN (SELECT stream FROM forgetting)")
    gone = connection.changes()
    connection.execute("DELETE FROM forgetting")
    connection.execute("UPDATE counted SET forgotten_seq = max(forgotten_seq, ?)", (highest,))
    if dead is not None and owed is not None and (dead[0] or owed[0]):
        tx.effects.append(Counted(dead=-int(dead[0] or 0), owed=-int(owed[0] or 0)))
    return gone


def count_events(source: Tx | Reader, streams: tuple[int, ...]) -> int:
    """Return how many events the streams have."""
    total = 0
    for stream in streams:
        row = source.one("SELECT count(*) FROM log WHERE stream = ?", (stream,))
        total += int(row[0] or 0) if row is not None else 0
    return total


def _numbers(source: Tx | Reader, sql: str, values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(row[0] or 0) for row in source.all(sql, values))


def _streams(source: Tx | Reader, sql: str, keep_ms: int, now: int) -> tuple[int, ...]:
    if not keep_ms:
        return ()
    return tuple(int(row[0] or 0) for row in source.all(sql, (now - keep_ms, BATCH)))


def vacuum_slice(connection: database.Connection) -> bool:
    """Give a few free pages back to the file system; return True while there are more (H-74)."""
    free = connection.pragma("freelist_count")
    if not isinstance(free, int) or free == 0:
        return False
    connection.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
    return free > VACUUM_PAGES
