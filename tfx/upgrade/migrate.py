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
from tfx.hub.schema import kept, registry, steps
from tfx.hub.schema.registry import Verdict
from tfx.hub.store import rebuild
from tfx.upgrade import functions, inspect
from tfx.upgrade.model import Phase

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Outcome, Tell
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
_ROWS_NAMED: Final = 100
_LOG: Final = ("log",)
"""What a refold keeps; the projections are made again."""


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


def run(connection: Connection, job: Job, report: Reporter) -> tuple[Outcome, ...]:
    """Bring the database to the program's own version and fold; return what each step tells.

    Raises OperationFailed when a step or a proof fails or a step of its own versions meets a row
    that cannot be represented (K-37), StateConflict when the file was replaced; the database is
    as before then.
    """
    report.enter(Phase.PREPARE)
    prepare(connection)
    functions.add(connection)
    database.on_progress(connection, _nothing, _TICKS)
    with database.errors_typed(str(job.path)):
        attach(connection, job.backup)
        with database.ExclusiveTransaction(connection):
            again = inspect.look(connection)
            if again.identity.schema_hash != job.seen.identity.schema_hash:
                raise StateConflict(f"{job.path} changed meanwhile", code="changed")
            outcomes = _steps(connection, job, report)
            still = _untouched(job.seen)
            if inspect.look(connection).fold != registry.FOLD:
                _refold(connection, report, first=not outcomes)
                still = frozenset()
            report.enter(Phase.VERIFY)
            _verify(connection, still)
            report.enter(Phase.COMMIT)
            job.still_there()
        connection.execute("DETACH old")
    return outcomes


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


def chain_of(seen: Seen) -> tuple[steps.Step, ...]:
    """Return the steps from what a database is to this program's version; none for its own."""
    if seen.judgement.version is None:
        raise OperationFailed("the database has no known version", code="storage")
    return steps.chain(seen.judgement.version, registry.CURRENT)


def refuse_rows(step: steps.Step, found: Outcome) -> None:
    """Raise OperationFailed `rows-refused` unless the step may leave rows out (K-37)."""
    if step.may_leave_out or not found.left_out:
        return
    named = [f"{row.table} rowid {row.rowid} ({row.key}): {row.reason}" for row in found.left_out]
    raise OperationFailed(
        f"{len(named)} rows cannot be represented by schema {step.target}; the first is {named[0]}",
        code="rows-refused",
        hint="tfx backup list",
        details={"rows": list(named[:_ROWS_NAMED]), "count": len(named)},
    )


def _steps(connection: Connection, job: Job, report: Reporter) -> tuple[Outcome, ...]:
    """Run every step of the chain, each proven before the next begins."""
    outcomes: list[Outcome] = []
    for step in chain_of(job.seen):
        report.enter(Phase.TRANSFORM)
        first = not outcomes
        if not first:  # the first one's rows were looked at before anything was written
            refuse_rows(step, step.scan(connection))
        still = _keeping(connection, step.kept, report.table, first=first)
        outcome = step.transform(connection, job.now_ms, report.table)
        refuse_rows(step, outcome)
        report.enter(Phase.VERIFY)
        _refuse_unproven([*step.prove(connection, outcome, report.table), *still()])
        outcomes.append(outcome)
    return tuple(outcomes)


def _refold(connection: Connection, report: Reporter, *, first: bool) -> None:
    report.enter(Phase.TRANSFORM)
    still = _keeping(connection, _LOG, report.table, first=first)
    total = inspect.count_rows(connection, _LOG)["log"]
    rebuild.refold_all(connection, lambda done: report.table("log", done, total))
    report.enter(Phase.VERIFY)
    _refuse_unproven(still())


def _keeping(
    connection: Connection, tables: tuple[str, ...], tell: Tell, *, first: bool
) -> Callable[[], list[str]]:
    """Return the proof that tables keep their rows from now on.

    What changes the backup's own rows first is held against the backup; what comes later against
    digests taken now, for what the step before it left is in no backup (U-54).
    """
    if first:
        return lambda: kept.differences(connection, tables, tell)
    before = kept.digests(connection, tables, tell)
    return lambda: kept.changed(connection, before, tell)


def _untouched(seen: Seen) -> frozenset[str]:
    """Return the tables of the backup that no step has written to."""
    chain = chain_of(seen)
    if not chain or any(step.rebuilt for step in chain):
        return frozenset()
    return frozenset.intersection(*(frozenset(step.kept) for step in chain))


def _verify(connection: Connection, untouched: frozenset[str]) -> None:
    """Prove the uncommitted result as a whole: ids, keys, identity, integrity (U-54)."""
    wrong: list[str] = []
    if not sequence_kept(connection):
        wrong.append("ids of the log could be used again")
    wrong += copies.foreign_key_check(connection)
    after = inspect.look(connection)
    if after.judgement.verdict is not Verdict.CURRENT:
        wrong += after.judgement.differences or (f"it would be {after.judgement.verdict}",)
    _refuse_unproven(wrong or _damage(connection, untouched))


def _damage(connection: Connection, untouched: frozenset[str]) -> list[str]:
    """Return what is wrong inside the file.

    Where whole tables kept their pages, rows and indexes were checked in the backup, byte for byte
    the same: the pages of all are looked at again, rows against indexes only in the others (U-11).
    """
    if not untouched:
        return copies.integrity_check(connection)
    found = copies.quick_check(connection)
    for table in sorted(inspect.count_rows(connection).keys() - untouched):
        found += copies.integrity_check(connection, table)
    return found


def _refuse_unproven(wrong: list[str]) -> None:
    if wrong:
        raise OperationFailed(
            f"the upgraded database was not what it must be and was taken back: {wrong[0]}",
            code="not-proven",
            details={"found": list(wrong[:20])},
        )


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
