"""Write a verified backup into the live file, after backing up what is there (U-82).

The inode stays; the lock is the caller's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfx.core import database
from tfx.errors import InvalidRequest, NotFound, OperationFailed
from tfx.hub.schema import registry
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import adopt, backup, inspect, manifest, migrate, space
from tfx.upgrade.manifest import Reason, Stage
from tfx.upgrade.model import Phase, Receipt, RowCount, State

if TYPE_CHECKING:
    from tfx.upgrade.backup import Tools
    from tfx.upgrade.manifest import Manifest

REDELIVERED = "mail that was acked since the backup was made will be delivered again"


def restore(directory: Path, path: Path, tools: Tools) -> Receipt:
    """Bring the live database to what a backup holds; raises as the protocol does."""
    report = tools.report
    report.enter(Phase.VERIFY_BACKUP)
    wanted, file = kept(directory)
    checked = tools.examine(file)
    if (checked.sha256, checked.rows) != (wanted.sha256, wanted.rows):
        raise OperationFailed(f"{file} is not what its manifest says", code="backup-changed")
    report.enter(Phase.LIVENESS)
    connection, mode = inspect.seize(path, tools.vfs)
    inode = migrate.identity_on_disk(path)
    with database.closing(connection):
        report.enter(Phase.IDENTITY)
        seen = inspect.look(connection)
        size = inspect.size_of(connection)
        before = inspect.count_rows(connection)
        report.enter(Phase.SPACE)
        largest = max(size, checked.size)
        space.refuse_when_short(space.needs(path, tools.store, largest, 2.0))
        made = None
        if seen.judgement.verdict is not Verdict.EMPTY:
            made = _back_up(connection, path, mode, seen, tools)
        report.enter(Phase.RESTORE)
        migrate.same_file(path, inode)
        adopt.write_into(file, connection, path, tools)
        report.enter(Phase.CONFIRM)
        after = inspect.look(connection)
        if after.identity.schema_hash != wanted.from_schema_hash:
            raise OperationFailed(f"{path} is not what was restored", code="not-proven")
        if wanted.journal_mode == "wal":
            with database.errors_typed(str(path)):
                connection.pragma("journal_mode", "WAL")
        rows = inspect.count_rows(connection)
        final = inspect.size_of(connection)
    if made is not None:
        made = backup.advance(made, Stage.DONE, Phase.CONFIRM)
    return Receipt(
        state=State.RESTORED,
        database=str(path),
        from_version=seen.judgement.version,
        to_version=after.judgement.version,
        from_schema_hash=seen.identity.schema_hash,
        to_schema_hash=after.identity.schema_hash,
        backup_directory=None if made is None else str(made.directory),
        backup_sha256=None if made is None else made.manifest.sha256,
        rows={
            table: RowCount(before.get(table), rows.get(table))
            for table in sorted(before.keys() | rows.keys())
        },
        bytes_before=size,
        bytes_after=final,
        restored_from=str(directory),
        notes=(REDELIVERED, *_older(after)),
        phases=report.finished(),
    )


def _older(after: inspect.Seen) -> tuple[str, ...]:
    """Say what the hub will say of what was restored."""
    verdict, version = after.judgement.verdict, after.judgement.version
    if verdict is Verdict.OLDER:
        wanted = f"this program's is {registry.CURRENT}: the hub starts on it after `tfx upgrade`"
        return (f"it has schema version {version}, {wanted}",)
    if verdict is Verdict.OTHER_FOLD:
        return ("it was folded by an older program: the hub starts on it after `tfx upgrade`",)
    return ()


def kept(directory: Path) -> tuple[Manifest, Path]:
    """Return the manifest and the file of a finished backup.

    Raises NotFound for what is no backup directory, InvalidRequest for one that was never
    verified.
    """
    found = manifest.read(directory)
    if found is None:
        raise NotFound(
            f"{directory} is not a backup: it has no readable {manifest.NAME}",
            code="no-backup",
            hint="tfx backup list",
        )
    if found.stage is Stage.PENDING or found.sha256 is None:
        raise InvalidRequest(
            f"{directory} was never finished, so it proves nothing",
            code="unverified-backup",
            hint="tfx backup list",
        )
    file = directory / found.file
    if not file.is_file() or file.is_symlink():
        raise NotFound(f"{file} is gone", code="no-backup", hint="tfx backup list")
    return found, file


def _back_up(
    connection: database.Connection, path: Path, mode: str, seen: inspect.Seen, tools: Tools
) -> backup.Backup:
    wanted = backup.Wanted(
        source=path,
        name=path.stem,
        seen=seen,
        reason=Reason.PRE_RESTORE,
        journal_mode=mode,
        to_version=None,
        to_hash=None,
        now_ms=tools.now_ms,
    )
    return backup.ensure(connection, tools, wanted)
