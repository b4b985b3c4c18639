"""The protocol in place: from a locked path to a receipt, one phase after the other (U-46 … U-57).

The lock is the caller's; the live hash alone decides what is done.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import copies, database
from tfx.errors import OperationFailed
from tfx.hub.schema import registry
from tfx.hub.schema.outcome import merged
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import backup, check, functions, inspect, migrate, space
from tfx.upgrade.manifest import Reason, Stage
from tfx.upgrade.model import Adopted, LeftOutRow, Phase, Receipt, RowCount, State

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.hub.schema.outcome import Outcome
    from tfx.upgrade.backup import Backup, Tools
    from tfx.upgrade.inspect import Seen
    from tfx.upgrade.reporter import Reporter

INCREMENTAL: Final = 2


@dataclass(frozen=True, slots=True)
class Label:
    """How a backup is called and whence its content came."""

    reason: Reason
    name: str
    source: Path


def upgrade(path: Path, tools: Tools, label: Label | None = None) -> Receipt:
    """Bring the database at a path to this program's version, or find that it is.

    Raises StateConflict for a database that is newer, unknown, tampered or in use, and
    OperationFailed for everything that goes wrong; the database is the old one then, or, after
    the commit point, the new one.
    """
    report = tools.report
    label = label or Label(Reason.UPGRADE, path.stem, path)
    report.enter(Phase.INSPECT)
    seen = inspect.glance(path)
    if seen is not None:
        inspect.refuse(seen, path)
        if seen.judgement.verdict is Verdict.CURRENT and not _unfinished(path, tools):
            return _current(path, seen, report)
    inspect.refuse_early(path)
    connection, mode = _seized(path, tools)
    with database.closing(connection):
        report.enter(Phase.IDENTITY)
        seen = inspect.look(connection)
        inspect.refuse(seen, path)
        if seen.judgement.verdict is Verdict.CURRENT:
            return _finish(connection, path, seen, mode, tools)
        return _upgrade(_Held(connection, path, seen, mode), tools, label)


def preflight(connection: Connection, seen: Seen) -> tuple[LeftOutRow, ...]:
    """Check the old rows; return those that will be left out (U-49).

    Raises OperationFailed `corrupt` for damage, and `rows-refused` for rows of an own version
    that the next one cannot represent (K-37). The later steps of a chain look at their own rows
    inside the transaction, before they change any.
    """
    with database.errors_typed():
        wrong = check.damage(copies.quick_check(connection), seen)
    if wrong:
        raise OperationFailed(
            f"the database is damaged: {wrong[0]}",
            code="corrupt",
            hint="tfx backup list",
            details={"found": list(wrong[:20])},
        )
    if seen.judgement.verdict is not Verdict.OLDER:
        return ()
    functions.add(connection)
    step = migrate.chain_of(seen)[0]
    with database.errors_typed():
        found = step.scan(connection)
        connection.execute("DROP TABLE IF EXISTS temp.left_out")
        connection.execute("DROP TABLE IF EXISTS temp.state_map")
    migrate.refuse_rows(step, found)
    return _rows(found)


def factor_of(connection: Connection, seen: Seen) -> float:
    """Return how often the size of the database is needed beside it (U-121)."""
    with database.errors_typed():
        vacuumed = connection.pragma("auto_vacuum") != INCREMENTAL
    if vacuumed or any(step.rebuilt for step in migrate.chain_of(seen)):
        return space.REBUILT
    return space.ADDED if seen.fold == registry.FOLD else space.REFOLDED


def factor_at(path: Path) -> float:
    """Return what `factor_of` does for a file that nobody has open; refuses as `upgrade` does."""
    connection = database.open_reading(path, immutable=True)
    with database.closing(connection):
        seen = inspect.look(connection)
        inspect.refuse(seen, path)
        return factor_of(connection, seen)


def _seized(path: Path, tools: Tools) -> tuple[Connection, str]:
    tools.report.enter(Phase.LIVENESS)
    return inspect.seize(path, tools.vfs)


@dataclass(frozen=True, slots=True)
class _Held:
    """A database that is ours alone, what it is, and the journal mode it was found in."""

    connection: Connection
    path: Path
    seen: Seen
    mode: str


def _upgrade(held: _Held, tools: Tools, label: Label) -> Receipt:
    connection, path, seen, mode = held.connection, held.path, held.seen, held.mode
    report = tools.report
    report.enter(Phase.PREFLIGHT)
    inode = migrate.identity_on_disk(path)
    preflight(connection, seen)
    report.enter(Phase.SPACE)
    size = inspect.size_of(connection)
    spaces = space.needs(path, tools.store, size, factor_of(connection, seen))
    space.refuse_when_short(spaces)
    with database.errors_typed(str(path)):
        before = inspect.count_rows(connection)
    wanted = backup.Wanted(
        source=label.source,
        name=label.name,
        seen=seen,
        reason=label.reason,
        journal_mode=mode,
        to_version=registry.CURRENT,
        to_hash=registry.HASHES[registry.CURRENT],
        now_ms=tools.now_ms,
    )
    made = backup.ensure(connection, tools, wanted)
    kept_size = made.manifest.size or 0

    def still_there() -> None:
        migrate.same_file(path, inode)
        migrate.backup_there(made.file, kept_size)

    job = migrate.Job(path, seen, made.file, tools.now_ms, still_there)
    outcome = merged(migrate.run(connection, job, report))
    report.enter(Phase.CONFIRM)
    after = _confirm(connection, path, mode, made if label.reason is Reason.UPGRADE else None)
    return Receipt(
        state=State.UPGRADED,
        database=str(path),
        from_version=seen.judgement.version,
        to_version=after.judgement.version,
        from_schema_hash=seen.identity.schema_hash,
        to_schema_hash=after.identity.schema_hash,
        backup_directory=str(made.directory),
        backup_sha256=made.manifest.sha256,
        backup_reused=made.reused,
        rows=_counts(before, inspect.count_rows(connection)),
        bytes_before=size,
        bytes_after=inspect.size_of(connection),
        adopted=adopted_of(outcome, before) if seen.judgement.version == 1 else None,
        space=spaces,
        phases=report.finished(),
    )


def _confirm(connection: Connection, path: Path, mode: str, made: Backup | None) -> Seen:
    """Step 12: the header as a new file would have it, the journal mode, the receipt (U-56)."""
    with database.errors_typed(str(path)):
        if connection.pragma("auto_vacuum") != INCREMENTAL:
            connection.pragma("temp_store", "FILE")
            connection.pragma("shrink_memory")
            connection.pragma("cache_size", -inspect.VACUUM_CACHE_KIB)
            connection.pragma("auto_vacuum", "INCREMENTAL")
            connection.execute("VACUUM")
            wrong = copies.integrity_check(connection)
            if wrong:
                raise OperationFailed(f"{path} is damaged: {wrong[0]}", code="corrupt")
        after = inspect.look(connection)
        if after.judgement.verdict is not Verdict.CURRENT:
            raise OperationFailed(
                f"{path} is {after.judgement.verdict} after the commit", code="not-proven"
            )
        if mode == "wal":
            connection.pragma("journal_mode", "WAL")
    if made is not None:
        backup.advance(made, Stage.DONE, Phase.CONFIRM)
    return after


def _finish(connection: Connection, path: Path, seen: Seen, mode: str, tools: Tools) -> Receipt:
    """Finish what an earlier run left after its commit (U-57, U-109), or only say `current`."""
    tools.report.enter(Phase.CONFIRM)
    left = _unfinished(path, tools)
    wanted = mode if left is None else left.manifest.journal_mode
    if left is not None:
        _confirm(connection, path, wanted, left)
    elif mode == "wal":
        with database.errors_typed(str(path)):
            connection.pragma("journal_mode", "WAL")
    receipt = _current(path, seen, tools.report)
    if left is None:
        return receipt
    return replace(receipt, finished_earlier_run=True, backup_directory=str(left.directory))


def _unfinished(path: Path, tools: Tools) -> Backup | None:
    return backup.unfinished(tools.store, path, registry.HASHES[registry.CURRENT])


def _current(path: Path, seen: Seen, report: Reporter) -> Receipt:
    return Receipt(
        state=State.CURRENT,
        database=str(path),
        from_version=seen.judgement.version,
        to_version=seen.judgement.version,
        from_schema_hash=seen.identity.schema_hash,
        to_schema_hash=seen.identity.schema_hash,
        phases=report.finished(),
    )


def _counts(before: dict[str, int], after: dict[str, int]) -> dict[str, RowCount]:
    return {
        table: RowCount(before.get(table), after.get(table))
        for table in sorted(before.keys() | after.keys())
    }


def adopted_of(outcome: Outcome, before: dict[str, int]) -> Adopted:
    """Return what the steps from triflux's schema tell, for the receipt."""
    left = Counter(each.table for each in outcome.left_out)
    tables = before.keys() - outcome.not_taken.keys()
    return Adopted(
        arrived={table: before[table] - left[table] for table in sorted(tables)},
        source=None,
        source_sha256=None,
        left_out=_rows(outcome),
        not_taken=outcome.not_taken,
        dropped_values=outcome.dropped_values,
        last_activity_ms=outcome.last_activity_ms,
        shift_ms=outcome.shift_ms,
    )


def _rows(outcome: Outcome) -> tuple[LeftOutRow, ...]:
    return tuple(
        LeftOutRow(each.table, each.key, each.rowid, each.reason) for each in outcome.left_out
    )
