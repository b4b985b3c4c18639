"""Steps 8 to 11: one exclusive transaction that transforms, proves and commits (U-52 … U-55).

Needs a connection that is alone on the file and a verified backup; every failure is a rollback.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import copies, database
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.schema import registry, steps
from tfx.hub.schema.registry import Verdict
from tfx.hub.store import rebuild
from tfx.upgrade import functions, inspect
from tfx.upgrade.model import Phase

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.from_v1 import Outcome
    from tfx.upgrade.inspect import Seen
    from tfx.upgrade.reporter import Reporter

_PRAGMAS: Final = (
    ("foreign_keys", False),
    ("recursive_triggers", False),
    ("legacy_alter_table", True),
    ("trusted_schema", False),
)
_EXTRA: Final = 3
_TICKS: Final = 100_000
_LOG_SAME: Final = (
    "SELECT (SELECT count(*) FROM main.log) - (SELECT count(*) FROM old.log), "
    "(SELECT count(*) FROM old.log o LEFT JOIN main.log n ON n.seq = o.seq WHERE NOT ("
    "n.event_id IS o.event_id AND n.stream IS o.stream AND n.previous IS o.previous "
    "AND n.at_ms IS o.at_ms AND n.kind IS o.kind AND n.actor IS o.actor AND n.op_id IS o.op_id "
    "AND n.op_digest IS o.op_digest AND n.answers IS o.answers AND n.body IS o.body "
    "AND n.payload IS o.payload))"
)
_LOG_SEQUENCE: Final = "SELECT coalesce(max(seq), 0) FROM {0}.sqlite_sequence WHERE name = 'log'"


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done to one locked database; `still_there` is asked right before COMMIT."""

    path: Path
    seen: Seen
    backup: Path
    now_ms: int
    still_there: Callable[[], None]


def identity_on_disk(path: Path) -> tuple[int, int]:
    """Return device and inode of a path, so that a file put in its place is noticed (U-108)."""
    status = path.lstat()
    return status.st_dev, status.st_ino


def run(connection: Connection, job: Job, report: Reporter) -> Outcome | None:
    """Bring the database to the program's own version; return what the steps tell of it.

    Raises OperationFailed when a step or a proof fails, StateConflict when the file was replaced;
    the database is as before then.
    """
    report.enter(Phase.PREPARE)
    prepare(connection)
    functions.add(connection)
    database.on_progress(connection, _nothing, _TICKS)
    outcome: Outcome | None = None
    with database.errors_typed(str(job.path)):
        attach(connection, job.backup)
        with database.ExclusiveTransaction(connection):
            again = inspect.look(connection)
            if again.identity.schema_hash != job.seen.identity.schema_hash:
                raise StateConflict(f"{job.path} changed meanwhile", code="changed")
            report.enter(Phase.TRANSFORM)
            if job.seen.judgement.verdict is Verdict.OTHER_FOLD:
                _refold(connection, report)
            else:
                outcome = _steps(connection, job, report)
            report.enter(Phase.VERIFY)
            _verify(connection, job, outcome, report)
            report.enter(Phase.COMMIT)
            job.still_there()
        connection.execute("DETACH old")
    return outcome


def prepare(connection: Connection) -> None:
    """Set what must hold during the transaction, and read it back (U-52, U-67)."""
    with database.errors_typed():
        for name, value in _PRAGMAS:
            connection.pragma(name, value)
            if bool(connection.pragma(name)) is not value:
                raise OperationFailed(f"PRAGMA {name} stays {not value}", code="pragma")
        connection.pragma("synchronous", "EXTRA")
        if connection.pragma("synchronous") != _EXTRA:
            raise OperationFailed("PRAGMA synchronous stays below EXTRA", code="pragma")
        connection.pragma("cache_size", -inspect.CACHE_KIB)
        connection.pragma("temp_store", "FILE")


def attach(connection: Connection, backup: Path) -> None:
    """Attach the verified backup as `old`, immutable."""
    connection.execute("ATTACH ? AS old", (database.uri(backup, "mode=ro&immutable=1"),))


def sequence_kept(connection: Connection) -> bool:
    """Return True when no AUTOINCREMENT mark fell below the highest id (U-32, U-105)."""
    rows = connection.execute("SELECT seq FROM main.sqlite_sequence WHERE name = 'log'").fetchall()
    marks = [int(row[0] or 0) for row in rows]
    found = connection.execute("SELECT coalesce(max(seq), 0) FROM main.log").fetchall()
    return max(marks, default=0) >= int(found[0][0] or 0)


def _steps(connection: Connection, job: Job, report: Reporter) -> Outcome:
    version = job.seen.judgement.version
    if version is None:
        raise OperationFailed(f"{job.path} has no known version", code="storage")
    outcome: Outcome | None = None
    for step in steps.chain(version, registry.CURRENT):
        outcome = step.transform(connection, job.now_ms, report.table)
        if outcome.left_out and not step.may_leave_out:
            first = outcome.left_out[0]
            raise OperationFailed(
                f"{len(outcome.left_out)} rows cannot be represented; the first is "
                f"{first.table} {first.key}: {first.reason}",
                code="rows-refused",
            )
    if outcome is None:
        raise OperationFailed(f"no step leads on from version {version}", code="storage")
    return outcome


def _refold(connection: Connection, report: Reporter) -> None:
    total = inspect.count_rows(connection, ("log",))["log"]
    rebuild.refold_all(connection, lambda done: report.table("log", done, total))


def _verify(connection: Connection, job: Job, outcome: Outcome | None, report: Reporter) -> None:
    """Prove the uncommitted result: rows, keys, sequence, hash, integrity (U-54)."""
    wrong: list[str] = []
    if outcome is not None:
        for step in steps.chain(job.seen.judgement.version or 0, registry.CURRENT):
            wrong += step.prove(connection, outcome, report.table)
    else:
        wrong += _log_differences(connection)
    if not wrong and not sequence_kept(connection):
        wrong.append("ids of the log could be used again")
    wrong += copies.foreign_key_check(connection)
    after = inspect.look(connection)
    if after.judgement.verdict is not Verdict.CURRENT:
        wrong += after.judgement.differences or (f"it would be {after.judgement.verdict}",)
    wrong += wrong or copies.integrity_check(connection)
    if wrong:
        raise OperationFailed(
            f"the upgraded database was not what it must be and was taken back: {wrong[0]}",
            code="not-proven",
            details={"found": list(wrong[:20])},
        )


def _log_differences(connection: Connection) -> list[str]:
    for more, changed in connection.execute(_LOG_SAME):
        if more or changed:
            return [f"the log has {more} rows more and {changed} changed ones"]
    marks = [
        int(row[0])
        for schema in ("old", "main")
        for row in connection.execute(_LOG_SEQUENCE.format(schema))
    ]
    return [] if marks[1] >= marks[0] else ["the mark of the log fell"]


def same_file(path: Path, wanted: tuple[int, int]) -> None:
    """Raise StateConflict when another file lies at the path now."""
    try:
        found = identity_on_disk(path)
    except FileNotFoundError:
        found = (0, 0)
    if found != wanted:
        raise StateConflict(
            f"{path} was replaced while it was worked on; nothing was changed",
            code="replaced",
            details={"path": str(path)},
        )


def backup_there(backup: Path, sha_size: int) -> None:
    """Raise OperationFailed when the backup has gone before the commit (U-110)."""
    try:
        size = backup.lstat().st_size
    except OSError:
        size = -1
    if size != sha_size:
        raise OperationFailed(
            f"the backup {backup} is gone; nothing was changed",
            code="backup-gone",
            details={"path": str(backup)},
        )


def _nothing() -> None:
    """Let Python run its signal handlers inside a long statement."""
