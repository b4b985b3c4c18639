"""What `--remove --purge` deletes beyond setup's own work: the hub's files and tfx's logs.

Names every file before it goes; deletes files by name, never a tree, and directories only when
they are empty. Backups and journals of setup stay, so that `--undo` still works.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import is_dir, is_file
from tfx.core.locks import holder, is_held
from tfx.core.paths import Paths
from tfx.errors import StateConflict
from tfx.hub.places import HubFiles
from tfx.setup.report import ActionRow


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
    places = (hub.directory, paths.crash_dir)
    beside = [path for path in _database_files(hub) if path.parent != hub.directory]
    files = [path for place in places for path in _files_in(place)]
    return Purge((*files, *beside), tuple(place for place in places if is_dir(place)))


def _files_in(place: Path) -> Iterator[Path]:
    if is_dir(place) and not place.is_symlink():
        try:
            inside = sorted(place.iterdir())
        except PermissionError:
            yield place  # deleting it will fail, and the report then says so
            return
        yield from (path for path in inside if path.is_symlink() or is_file(path))


def _database_files(hub: HubFiles) -> Iterator[Path]:
    for suffix in ("", "-wal", "-shm", ".lock"):
        path = hub.database.with_name(hub.database.name + suffix)
        if is_file(path):
            yield path


def purge(paths: Paths, plan: Purge) -> tuple[ActionRow, ...]:
    """Delete the files of the plan and say for each how it went.

    Raises StateConflict, before anything is deleted, while a hub holds the database.
    """
    hub = HubFiles.of(paths)
    if is_held(hub.lock):
        who = holder(hub.lock)
        raise StateConflict(
            f"a hub is running on {hub.database}" + (f" (pid {who.pid})" if who else ""),
            code="hub-running",
            hint="tfx hub stop",
        )
    rows = tuple(_delete(path) for path in plan.files)
    for directory in plan.directories:
        with contextlib.suppress(OSError):  # what else lies in it is not ours to delete
            directory.rmdir()
    return rows


def _delete(path: Path) -> ActionRow:
    try:
        path.unlink()
    except OSError as error:
        return ActionRow("purge", str(path), "", "failed", error.strerror or str(error))
    return ActionRow("purge", str(path), "", "changed", "deleted")
