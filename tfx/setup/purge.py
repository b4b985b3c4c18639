"""What `--remove --purge` deletes beyond setup's own work: the hub's files and tfx's logs.

Names every file before it goes; deletes files by name, never a tree, and directories only when
they are empty. Backups and journals of setup stay, so that `--undo` still works.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import is_file
from tfx.core.paths import Paths
from tfx.hub.daemon import service
from tfx.hub.daemon.stop import Step, stop
from tfx.hub.places import HubFiles
from tfx.setup.report import ActionRow

_WORK = ("route", "jobs")  # logs of runs


@dataclass(frozen=True, slots=True)
class Purge:
    """The files and directories that a purge would delete, in this order."""

    files: tuple[Path, ...]
    directories: tuple[Path, ...]

    def rows(self, status: str) -> tuple[ActionRow, ...]:
        """Return a row for each file that is still to go."""
        return tuple(
            ActionRow("purge", str(path), "", status, "the hub's messages and keys, or a log")
            for path in self.files
        )


def plan_purge(paths: Paths) -> Purge:
    """Return what is there to delete; writes nothing."""
    hub = HubFiles.of(paths)
    work = (*(paths.state_dir / name for name in _WORK), paths.cache_dir / "route")
    places = (hub.directory, paths.crash_dir, *work)
    files: list[Path] = []
    directories: list[Path] = []

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            files.append(Path(error.filename))  # its deletion fails, and the report says so

    for place in places:
        for folder, _, names in os.walk(place, topdown=False, onerror=unreadable):
            files += sorted(Path(folder) / name for name in names)
            directories.append(Path(folder))
    files += [paths.backup_stores] if is_file(paths.backup_stores) else []
    beside = [path for path in _database_files(hub) if hub.directory not in path.parents]
    return Purge((*files, *beside), tuple(directories))


def _database_files(hub: HubFiles) -> Iterator[Path]:
    for suffix in ("", "-wal", "-shm", ".lock"):
        path = hub.database.with_name(hub.database.name + suffix)
        if is_file(path):
            yield path


def end_hub(paths: Paths) -> tuple[ActionRow, ...]:
    """Stop the hub and remove its service; say what was running.

    Raises TfxError when the hub cannot be stopped or its lock is held by an upgrade or a backup.
    """
    ended = stop(paths)
    service.remove(paths, dry_run=False)
    if ended.step is Step.NOTHING:
        return ()
    return (ActionRow("stop", "hub", "", "changed", f"stopped by {ended.step.value}"),)


def purge(plan: Purge) -> tuple[ActionRow, ...]:
    """Delete the files of the plan and say for each how it went; the hub has ended before."""
    rows = tuple(_delete(path) for path in plan.files if os.path.lexists(path))
    for directory in plan.directories:
        with contextlib.suppress(OSError):  # something was put into it meanwhile: it stays
            directory.rmdir()
    return rows


def _delete(path: Path) -> ActionRow:
    try:
        path.unlink()
    except OSError as error:
        return ActionRow("purge", str(path), "", "failed", error.strerror or str(error))
    return ActionRow("purge", str(path), "", "changed", "deleted")
