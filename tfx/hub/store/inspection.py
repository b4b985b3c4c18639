"""Look into the hub's database without changing a byte: what it is, and whether it is sound.

Opens read-only, immutable when no WAL lies there (K-22); never checkpoints, repairs or migrates.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tfx.core import database
from tfx.core.clock import SystemClock
from tfx.core.files import read_plain
from tfx.hub.models import DeadReason
from tfx.hub.schema import registry
from tfx.hub.schema.identity import Stamp, identify
from tfx.hub.schema.registry import Judgement, Verdict
from tfx.hub.store.reader import Reader
from tfx.hub.store.rebuild import Refold

FINDINGS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Counts:
    """What waits in a database for somebody.

    `dead_letters`: those that had a receiver; what was said to a topic that nobody reads waits
    for nobody.
    """

    pending_human_requests: int
    dead_letters: int
    queued: int
    overdue_sessions: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen. `damage` is what the checks of SQLite complain of; None = not looked at.

    `counts` is None unless the schema is the current one.
    """

    judgement: Judgement
    stamp: Stamp | None
    journal_mode: str
    sqlite: str
    sqlite_is_old: bool
    damage: tuple[str, ...]
    orphans: tuple[str, ...]
    last_event_at_ms: int | None
    counts: Counts | None


def inspect(path: Path, *, deep: bool = False) -> Inspection:
    """Return what a database is. With `deep` every index is compared with its table.

    Raises NotFound, or what opening and reading it raises (`corrupt`, `not-a-database`, `busy`).
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        identity = identify(connection)
        judgement = registry.judge(identity)
        current = judgement.verdict is Verdict.CURRENT
        reader = Reader(connection, SystemClock().now_ms())
        return Inspection(
            judgement=judgement,
            stamp=identity.stamp,
            journal_mode=_journal_mode(path),
            sqlite=database.sqlite_version(),
            sqlite_is_old=_version(database.sqlite_version()) < database.OLDEST_SQLITE,
            damage=_damage(connection, deep=deep),
            orphans=_orphans(connection),
            last_event_at_ms=_last_event(reader) if current else None,
            counts=_counts(reader) if current else None,
        )


def is_current(path: Path) -> bool:
    """Say whether a database has the schema of this program; looks at nothing else.

    Raises NotFound, or what opening and reading it raises.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        return registry.judge(identify(connection)).verdict is Verdict.CURRENT


@dataclass(frozen=True, slots=True)
class Traffic:
    """How much a loss of the database would lose: its messages, and when the last was posted."""

    messages: int
    last_posted_at_ms: int | None


def traffic(path: Path) -> Traffic | None:
    """Return what a database holds of messages; None unless the schema is the current one.

    Raises NotFound, or what opening and reading it raises.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        if registry.judge(identify(connection)).verdict is not Verdict.CURRENT:
            return None
        reader = Reader(connection, SystemClock().now_ms())
        total = reader.one("SELECT count(*) FROM messages")
        last = reader.one("SELECT posted_at_ms FROM messages ORDER BY stream DESC LIMIT 1")
    return Traffic(
        0 if total is None else int(total[0] or 0),
        None if last is None else int(last[0] or 0),
    )


def last_event(path: Path) -> int | None:
    """Return the newest time in the log of a database; None unless the schema is the current one.

    Raises NotFound, or what opening and reading it raises.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        if registry.judge(identify(connection)).verdict is not Verdict.CURRENT:
            return None
        return _last_event(Reader(connection, SystemClock().now_ms()))


def disagreements(path: Path) -> tuple[str, ...]:
    """Return the rows of a stopped hub's database that are not as its log says (EV-P6).

    Folds the log in a private scratch database. Raises TfxError.
    """
    connection = database.open_inspector(path)
    with contextlib.closing(connection), database.errors_typed(str(path)):
        refold = Refold()
        try:
            reader = Reader(connection, SystemClock().now_ms())
            found = refold.compare(reader) or []
        finally:
            refold.close()
    return tuple(f"{each.table} {each.key}: {each.what}" for each in found)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _journal_mode(path: Path) -> str:
    """Return `wal` or `delete` by the header: an immutable connection does not tell."""
    try:
        header = read_plain(path, 20)
    except OSError:
        return "unknown"
    return {2: "wal", 1: "delete"}.get(header[18] if len(header) > 18 else 0, "unknown")  # noqa: PLR2004  (the offset of the write format in an SQLite header)


def _damage(connection: database.Connection, *, deep: bool) -> tuple[str, ...]:
    pragma = "integrity_check" if deep else "quick_check"
    try:
        rows = connection.execute(f"PRAGMA {pragma}({FINDINGS_SHOWN})").fetchall()
    except database.Error as error:
        return (str(database.error_of(error)),)
    found = tuple(str(row[0]) for row in rows)
    return () if found == ("ok",) else found


def _orphans(connection: database.Connection) -> tuple[str, ...]:
    try:
        rows = list(islice(connection.execute("PRAGMA foreign_key_check"), FINDINGS_SHOWN))
    except database.Error as error:
        return (str(database.error_of(error)),)
    return tuple(f"{row[0]} row {row[1]} has no {row[2]}" for row in rows)


def _last_event(reader: Reader) -> int | None:
    row = reader.one("SELECT max(at_ms) FROM log")
    return int(row[0]) if row is not None and row[0] is not None else None


def _counts(reader: Reader) -> Counts:
    def count(sql: str, *values: database.Value) -> int:
        row = reader.one(sql, values)
        return int(row[0] or 0) if row is not None else 0

    return Counts(
        count("SELECT count(*) FROM human_requests WHERE state = 'pending'"),
        count(
            "SELECT count(*) FROM deliveries WHERE state = 'dead' AND replayed_as IS NULL "
            "AND reason IS NOT ?",
            DeadReason.NO_SUBSCRIBER.value,
        ),
        count("SELECT count(*) FROM deliveries WHERE state = 'queued'"),
        count(
            "SELECT count(*) FROM agents a LEFT JOIN beats b ON b.agent = a.id "
            "WHERE a.session IS NOT NULL AND a.retired_at_ms IS NULL "
            "AND coalesce(b.lease_expires_ms, a.registered_at_ms + a.ttl_ms) < ?",
            reader.now_ms,
        ),
    )


def open_by(path: Path) -> tuple[int, ...]:
    """Return the pids that have a file open, as far as /proc lets us see."""
    real = os.path.realpath(path)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
            if any(_leads_to(entry.path, real) for entry in entries):
                found.append(int(process.name))
    return tuple(found)


def _leads_to(link: str, real: str) -> bool:
    with contextlib.suppress(OSError):
        return str(Path(link).readlink()) == real
    return False
