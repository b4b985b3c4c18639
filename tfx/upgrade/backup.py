"""Make a verified, durable, immutable backup of a database, each in a directory of its own.

Never overwrites or reuses a directory; a backup counts only once its bytes are proven (U-2, U-4).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx import __version__
from tfx.core import copies, database, files
from tfx.core.identity import identify
from tfx.errors import OperationFailed
from tfx.upgrade import check, inspect, manifest
from tfx.upgrade.ground import os_errors
from tfx.upgrade.manifest import Manifest, Reason, Stage
from tfx.upgrade.model import Phase

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.upgrade.check import Checked
    from tfx.upgrade.inspect import Seen
    from tfx.upgrade.reporter import Reporter

KEPT_MODE: Final = 0o400
_NAMES: Final = 1_000
Examine = Callable[[Path], "Checked"]


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified backup."""

    directory: Path
    manifest: Manifest
    reused: bool = False

    @property
    def file(self) -> Path:
        """The database in it."""
        return self.directory / self.manifest.file


@dataclass(frozen=True, slots=True)
class Tools:
    """What every run is given: where backups go, who checks them, the time, the file layer."""

    store: Path
    report: Reporter
    examine: Examine
    now_ms: int
    vfs: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be backed up, and why."""

    source: Path
    name: str
    seen: Seen
    reason: Reason
    journal_mode: str
    to_version: int | None
    to_hash: str | None
    now_ms: int


def ensure(
    live: Connection,
    tools: Tools,
    wanted: Wanted,
) -> Backup:
    """Return a verified backup of a locked database: one that matches, or a new one (U-79)."""
    report = tools.report
    clean(tools.store)
    report.enter(Phase.BACKUP)
    found = None
    if wanted.reason in {Reason.UPGRADE, Reason.ADOPT}:
        found = _matching(live, tools.store, wanted, report)
    if found is not None:
        report.enter(Phase.VERIFY_BACKUP)
        _prove(tools.examine(found.file), found.manifest)
        report.backup_directory = str(found.directory)
        return found
    made = make(live, tools, wanted)
    report.backup_directory = str(made.directory)
    return made


def make(
    live: Connection,
    tools: Tools,
    wanted: Wanted,
) -> Backup:
    """Copy, verify and publish a new backup; raises what the file system and SQLite report."""
    store = tools.store
    with os_errors(store):
        files.make_store(store)
    schema_hash = wanted.seen.identity.schema_hash
    directory = new_directory(store, wanted.name, schema_hash, wanted.now_ms)
    try:
        return _filled(live, directory, tools, wanted)
    except BaseException:
        discard(directory)
        raise


def _filled(live: Connection, directory: Path, tools: Tools, wanted: Wanted) -> Backup:
    report = tools.report
    pending = _pending(live, wanted, directory.name)
    partial = directory / f".{pending.file}.partial"
    with os_errors(directory):
        manifest.write(directory, pending)
        files.write_new(partial, b"", files.PRIVATE_FILE)
    size = inspect.size_of(live)
    page = pending.page_size

    def told(done: int, total: int) -> None:
        report.bytes(done * page, total * page)

    with database.errors_typed(str(partial)):
        copies.copy_into(live, partial, told, tools.vfs)
    report.enter(Phase.VERIFY_BACKUP)
    with os_errors(partial):
        files.fsync_file(partial)
    checked, same = check.examine_beside(live, partial, tools.examine)
    if not same:
        raise OperationFailed(
            f"{partial} does not equal the database it was copied from", code="backup-differs"
        )
    _prove(checked, replace(pending, sha256=checked.sha256, size=size))
    done = replace(pending, stage=Stage.BACKED_UP, sha256=checked.sha256, size=checked.size)
    publish(directory, partial, done)
    return Backup(directory, done)


def publish(directory: Path, partial: Path, done: Manifest) -> None:
    """Give a proven partial file its name, for good; the manifest says so last."""
    final = directory / done.file
    with os_errors(directory):
        partial.chmod(KEPT_MODE)
        os.link(partial, final, follow_symlinks=False)
        partial.unlink()
        files.fsync_dir(directory)
        files.fsync_dir(directory.parent)
        manifest.write(directory, done)


def clean(store: Path) -> list[Path]:
    """Delete what dead runs left: partial files, and directories that hold nothing else (U-79)."""
    removed: list[Path] = []
    for directory in directories(store):
        found = manifest.read(directory)
        if found is None or found.stage is not Stage.PENDING or found.maker_lives:
            continue
        if (directory / found.file).exists():
            continue
        discard(directory)
        removed.append(directory)
    return removed


def discard(directory: Path) -> None:
    """Delete a directory whose backup was never published; a published one stays."""
    found = manifest.read(directory)
    if found is not None and (directory / found.file).exists():
        return
    with contextlib.suppress(OSError):
        for each in directory.iterdir():
            if each.name == manifest.NAME or each.name.startswith("."):
                each.unlink()
        directory.rmdir()


def thin(store: Path, keep: int, source: Path) -> list[Path]:
    """Delete old finished backups of one database; return their directories (U-78).

    Kept are the newest `keep` that were verified, the first of each schema, and every one whose
    run is not done; nothing goes by its age.
    """
    removed = thinnable(store, keep, source)
    for directory in removed:
        remove(directory)
    return removed


def thinnable(store: Path, keep: int, source: Path) -> list[Path]:
    """Return what `thin` would delete."""
    kept_schemas: set[str] = set()
    finished: list[Path] = []
    for directory in directories(store):
        found = manifest.read(directory)
        if found is None or found.source != str(source) or found.stage is not Stage.DONE:
            continue
        first = found.from_schema_hash not in kept_schemas
        kept_schemas.add(found.from_schema_hash)
        if not first:
            finished.append(directory)
    return finished[: max(0, len(finished) - max(1, keep))]


def remove(directory: Path) -> None:
    """Delete one backup directory: the manifest last, so that a torn delete shows as damaged."""
    with os_errors(directory):
        for each in sorted(directory.iterdir(), key=lambda path: path.name == manifest.NAME):
            each.unlink()
        directory.rmdir()


def directories(store: Path) -> list[Path]:
    """Return the backup directories of a store, oldest name first."""
    try:
        found = [each for each in store.iterdir() if each.is_dir() and not each.is_symlink()]
    except OSError:
        return []
    return sorted(found)


def advance(backup: Backup, stage: Stage, phase: Phase) -> Backup:
    """Write down how far the run came."""
    moved = replace(backup.manifest, stage=stage, last_phase=phase.value)
    with os_errors(backup.directory):
        manifest.write(backup.directory, moved)
    return replace(backup, manifest=moved)


def unfinished(store: Path, source: Path, target_hash: str) -> Backup | None:
    """Return the backup of a run that committed and then died before it was done (U-109)."""
    for directory in reversed(directories(store)):
        found = manifest.read(directory)
        if (
            found is not None
            and found.stage is Stage.BACKED_UP
            and found.source == str(source)
            and found.to_schema_hash == target_hash
            and found.reason is Reason.UPGRADE
        ):
            return Backup(directory, found)
    return None


def _matching(live: Connection, store: Path, wanted: Wanted, report: Reporter) -> Backup | None:
    for directory in reversed(directories(store)):
        found = manifest.read(directory)
        if (
            found is not None
            and found.stage is Stage.BACKED_UP
            and found.reason is wanted.reason
            and found.source == str(wanted.source)
            and found.from_schema_hash == wanted.seen.identity.schema_hash
            and found.to_schema_hash == wanted.to_hash
            and (directory / found.file).is_file()
            and check.same_content(live, directory / found.file, report.bytes)
        ):
            return Backup(directory, found, reused=True)
    return None


def _prove(checked: Checked, wanted: Manifest) -> None:
    if (checked.sha256, checked.schema_hash, checked.rows) != (
        wanted.sha256,
        wanted.from_schema_hash,
        wanted.rows,
    ):
        raise OperationFailed(
            f"the backup {wanted.file} does not hold what the database holds", code="backup-differs"
        )


def new_directory(store: Path, name: str, schema_hash: str, now_ms: int) -> Path:
    """Make a directory that was not there: `<name>-<utc>-<hash8>`, private (U-4, U-74)."""
    moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    stem = f"{name}-{moment:%Y%m%dT%H%M%SZ}-{schema_hash[:8]}"
    for number in range(1, _NAMES):
        directory = store / (stem if number == 1 else f"{stem}-{number}")
        with os_errors(store):
            try:
                directory.mkdir(mode=files.PRIVATE_DIR)
            except FileExistsError:
                continue
            directory.chmod(files.PRIVATE_DIR)
        return directory
    raise OperationFailed(f"{store} holds {_NAMES} backups of this second", code="backup-names")


def _pending(live: Connection, wanted: Wanted, name: str) -> Manifest:
    identity = wanted.seen.identity
    me = identify()
    with database.errors_typed():
        rows = inspect.count_rows(live)
        page_size, pages = live.pragma("page_size"), live.pragma("page_count")
    return Manifest(
        stage=Stage.PENDING,
        reason=wanted.reason,
        made_at_ms=wanted.now_ms,
        pid=os.getpid(),
        start_token=me.start_token if me else "",
        boot_id=me.boot_id if me else "",
        tfx=__version__,
        sqlite=database.sqlite_version(),
        source=str(wanted.source),
        file=f"{name}.db",
        from_version=wanted.seen.judgement.version,
        to_version=wanted.to_version,
        from_schema_hash=identity.schema_hash,
        to_schema_hash=wanted.to_hash,
        fold_version=wanted.seen.fold,
        journal_mode=wanted.journal_mode,
        page_size=int(str(page_size)),
        pages=int(str(pages)),
        encoding=identity.encoding,
        application_id=identity.application_id,
        user_version=identity.user_version,
        rows=rows,
    )
