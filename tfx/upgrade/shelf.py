"""The backup store as the commands see it: list, verify, prune, create, restore.

Opens no database; the worker does, and a running hub makes its own snapshots (K-22).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.errors import InvalidRequest, NotFound, OperationFailed, TfxError
from tfx.result import Problem, Result, Status
from tfx.upgrade import backup, ground, manifest, restore, run
from tfx.upgrade.manifest import Manifest, Stage
from tfx.upgrade.model import Phase, Receipt, Task
from tfx.upgrade.orders import Places, Told, phased, with_hub_stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfx.core.paths import Paths


class Health(StrEnum):
    """What a look at a backup directory shows; only `verify` reads the bytes."""

    SOUND = "sound"
    UNVERIFIED = "unverified"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Row:
    """One backup directory; `name` is what `verify` and `restore` take."""

    name: str
    directory: str
    health: Health
    reason: str | None
    made_at_ms: int | None
    version: int | None
    schema_hash: str | None
    bytes: int | None
    sha256: str | None
    source: str | None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Shelf:
    """The backups of a store, newest first; `elsewhere` are other stores that hold some."""

    store: str
    backups: tuple[Row, ...]
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found for each backup it was asked about."""

    store: str
    backups: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Which directories went, or would go, and how many stay."""

    store: str
    removed: tuple[str, ...]
    kept: int
    dry_run: bool


def listed(store: Path, others: Sequence[Path] = ()) -> Result[Shelf]:
    """List every backup; a damaged one is a warning (U-76). Of `others` only names are told."""
    rows = tuple(_row(each) for each in reversed(backup.directories(store)))
    rows = tuple(sorted(rows, key=lambda row: row.made_at_ms or 0, reverse=True))
    problems = tuple(_damaged(row) for row in rows if row.health is Health.DAMAGED)
    elsewhere = tuple(
        str(each) for each in others if any(map(manifest.read, backup.directories(each)))
    )
    status = Status.WARNING if problems else Status.OK
    return Result(Shelf(str(store), rows, elsewhere), status, problems)


def verify(paths: Paths, store: Path, names: list[str], told: Told) -> Result[Verified]:
    """Read backups from their digest to their last index; all of the store by default (U-77).

    Exit status 1 when one of them is not what its manifest says.
    """
    with phased():
        wanted = [find(store, name) for name in names] or backup.directories(store)
    places = Places.of(paths, None, store)
    rows, problems = [], []
    for directory in wanted:
        row = _row(directory)
        try:
            row = _verified(paths, places, directory, told)
        except TfxError as error:
            rows.append(_as_damaged(row, error.message))
            problems.append(Problem.of(error))
        else:
            rows.append(row)
    status = Status.FAILED if problems else Status.OK
    return Result(Verified(str(store), tuple(rows)), status, tuple(problems))


def prune(store: Path, source: Path, keep: int, *, dry_run: bool) -> Result[Pruned]:
    """Delete old finished backups of a database, and what dead runs left (U-78, U-79)."""
    with phased():
        if keep < 1:
            raise InvalidRequest("--keep must be at least 1", code="options")
        if dry_run:
            gone = backup.thinnable(store, keep, source)
        else:
            gone = [*backup.clean(store), *backup.thin(store, keep, source)]
    total = len(backup.directories(store))
    kept = total - len(gone) if dry_run else total
    return Result(Pruned(str(store), tuple(map(str, gone)), kept, dry_run))


def restored(
    paths: Paths, places: Places, name: str, told: Told, *, stop_hub: bool
) -> Result[Receipt]:
    """Have the worker restore a backup into the live file (U-82)."""
    with phased():
        directory = find(places.store, name)
        order = places.request(Task.RESTORE, directory)
        return with_hub_stopped(paths, places, lambda: run.run(paths, order, told), wanted=stop_hub)


def find(store: Path, name: str) -> Path:
    """Return a backup directory by its path or by its name in the store; raises NotFound."""
    given = Path(name)
    directory = given if given.is_absolute() else store / name
    if directory.is_file():
        directory = directory.parent
    if not directory.is_dir() or directory.is_symlink():
        raise NotFound(
            f"there is no backup {name!r} in {store}", code="no-backup", hint="tfx backup list"
        )
    ground.check_owned_path(directory)
    return directory


def _verified(paths: Paths, places: Places, directory: Path, told: Told) -> Row:
    wanted, file = restore.kept(directory)
    order = places.request(Task.VERIFY, file)
    checked = run.examine(paths, order, file, told, wanted.sha256)
    if (checked.schema_hash, checked.rows) != (wanted.from_schema_hash, wanted.rows):
        raise OperationFailed(
            f"{file} does not hold what its manifest says",
            code="backup-changed",
            details={"path": str(file), "phase": Phase.VERIFY_BACKUP.value},
        )
    return _row(directory)


def _row(directory: Path) -> Row:
    found = manifest.read(directory)
    if found is None:
        why = f"it has no readable {manifest.NAME}"
        return Row(directory.name, str(directory), Health.DAMAGED, *(None,) * 7, why=why)
    health, what = _health(directory, found)
    return Row(
        name=directory.name,
        directory=str(directory),
        health=health,
        reason=found.reason.value,
        made_at_ms=found.made_at_ms,
        version=found.from_version,
        schema_hash=found.from_schema_hash,
        bytes=found.size,
        sha256=found.sha256,
        source=found.source,
        why=what,
    )


def _health(directory: Path, found: Manifest) -> tuple[Health, str | None]:
    file = directory / found.file
    if found.stage is Stage.PENDING:
        return Health.UNVERIFIED, "it was never finished"
    try:
        size = file.lstat().st_size
    except OSError:
        return Health.DAMAGED, "its database is gone"
    if size != found.size:
        return Health.DAMAGED, f"its database has {size} bytes instead of {found.size}"
    return Health.SOUND, None


def _as_damaged(row: Row, why: str) -> Row:
    return replace(row, health=Health.DAMAGED, why=why)


def _damaged(row: Row) -> Problem:
    error = OperationFailed(
        f"the backup {row.directory} is damaged: {row.why}",
        code="backup-damaged",
        hint=f"move {row.directory} away",
        details={"path": row.directory},
    )
    return Problem.of(error)
