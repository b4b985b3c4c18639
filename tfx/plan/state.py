"""The STATE directory: where manifest, base bytes, backups, staged versions and journals lie.

Knows names, modes and retention; not what the bytes are. Removes only single files that it made
and empty directories (S-34).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfx.core.clock import Clock, iso
from tfx.core.files import PRIVATE_FILE, digest, fsync_dir, make_private_dir, read_plain, write_new
from tfx.core.locks import Lock, holder, try_lock
from tfx.errors import LockHeld, NotFound, OperationFailed, StateConflict
from tfx.plan.actions import State

KEPT_RUNS = 10
LOCK_TIMEOUT_S = 30.0
"""So long a run waits for another run to end."""
_NAME_BYTES = 60
_NUMBER = re.compile("[0-9]+")
_RUN = re.compile("[0-9]+-")
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StateDir:
    """The directories and files of STATE (0700 and 0600); nothing is made before it is needed."""

    path: Path

    @property
    def manifest(self) -> Path:
        """The manifest file."""
        return self.path / "manifest.json"

    def journal(self, run: str) -> Path:
        """Return the journal file of a run."""
        return self.path / "journal" / f"{run}.jsonl"

    def journals(self) -> tuple[str, ...]:
        """Return the runs that have a journal, oldest first."""
        names = _list(self.path / "journal")
        return tuple(sorted(item.stem for item in names if item.suffix == ".jsonl"))

    def run_named(self, given: str) -> str:
        """Return the run of an id, or of its number alone (`12` is `000012-…`).

        Raises NotFound for a run that has no journal.
        """
        for run in self.journals():
            number = run.split("-", 1)[0]
            if given == run or (_NUMBER.fullmatch(given) and given.zfill(len(number)) == number):
                return run
        raise NotFound(
            f"there is no run {given} that can be taken back",
            hint="tfx setup --runs",
            details={"run": given},
        )

    def next_run(self, clock: Clock, last: str) -> str:
        """Return the id of a new run: a number that only rises, and the time for people."""
        seen = [*self.journals(), *self._runs_in("backup"), *self._runs_in("staged"), last]
        numbers = [int(run.split("-", 1)[0]) for run in seen if run.split("-", 1)[0].isdigit()]
        stamp = iso(clock.now_ms())[:19].replace("-", "").replace(":", "")
        return f"{max(numbers, default=0) + 1:06d}-{stamp}Z"

    def _runs_in(self, folder: str) -> list[str]:
        return [item.name for item in _list(self.path / folder)]

    # Backups

    def keep(self, run: str, number: int, target: Path, data: bytes) -> str:
        """Put bytes into the backup of a run, durably, and return their name there."""
        folder = self.path / "backup" / run
        make_private_dir(self.path)
        make_private_dir(folder.parent)
        make_private_dir(folder)
        plain = "".join(
            c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in target.name
        )
        name = f"{number:04d}-{plain[-_NAME_BYTES:]}"
        write_new(folder / name, data, PRIVATE_FILE)
        fsync_dir(folder)
        return name

    def backup(self, pointer: str) -> Path:
        """Return the file that `<run>/<name>` points to."""
        return self.path / "backup" / pointer

    def kept(self, pointer: str, expected: str | None = None) -> bytes:
        """Return backed-up bytes. Raises OperationFailed when they are gone or changed."""
        path = self.backup(pointer)
        try:
            data = read_plain(path)
        except OSError as error:
            raise OperationFailed(f"the backup {path} cannot be read: {error.strerror}") from error
        if expected is not None and digest(data) != expected:
            raise OperationFailed(f"the backup {path} is not what was put there")
        return data

    # Base bytes

    def keep_base(self, data: bytes) -> None:
        """Store the pristine bytes of a file of ours under their hash."""
        folder = self.path / "base"
        make_private_dir(self.path)
        make_private_dir(folder)
        with contextlib.suppress(FileExistsError):
            write_new(folder / digest(data), data, PRIVATE_FILE)

    def base(self, sha256: str) -> bytes | None:
        """Return pristine bytes, None when they are not there or damaged."""
        try:
            data = read_plain(self.path / "base" / sha256)
        except OSError:
            return None
        return data if digest(data) == sha256 else None

    # Staged versions

    def stage(self, run: str, place: str, data: bytes) -> Path:
        """Lay a new version that was not applied aside (S-36) and return where."""
        path = self.path / "staged" / run / place
        make_private_dir(self.path)
        make_private_dir(self.path / "staged")
        for parent in reversed(path.relative_to(self.path / "staged").parents[:-1]):
            make_private_dir(self.path / "staged" / parent)
        write_new(path, data, PRIVATE_FILE)
        return path

    def staged(self, place: str, state: State) -> Path | None:
        """Return where exactly this version was laid aside by an earlier run, if it was."""
        for run in reversed(self._runs_in("staged")):
            path = self.path / "staged" / run / place
            with contextlib.suppress(OSError):
                if digest(read_plain(path)) == state.sha256:
                    return path
        return None

    def all_staged(self) -> Iterator[tuple[Path, str]]:
        """Yield every staged file with the hash of its content."""
        for path in _files(self.path / "staged"):
            with contextlib.suppress(OSError):
                yield path, digest(read_plain(path))

    def place_of(self, path: Path) -> str:
        """Return the place of a staged file, the same in every run."""
        return "/".join(path.relative_to(self.path / "staged").parts[1:])

    # Retention

    def discard(self, run: str) -> None:
        """Forget a run in which nothing was changed."""
        _unlink(self.journal(run))
        _remove_flat(self.path / "backup" / run)

    def prune(self, pinned: frozenset[str], bases: frozenset[str], staged: frozenset[Path]) -> None:
        """Remove what is older than the last runs and nobody refers to (S-45)."""
        runs = self.journals()
        old = set(runs[:-KEPT_RUNS]) - pinned
        for run in sorted(old):
            _unlink(self.journal(run))
        alive = set(self.journals()) | pinned
        for folder in _list(self.path / "backup"):
            if folder.name not in alive and _is_of_ours(folder):
                _remove_flat(folder)
        for item in _list(self.path / "base"):
            if item.name not in bases and _DIGEST.fullmatch(item.name):
                _unlink(item)
        for path in list(_files(self.path / "staged")):
            if path not in staged:
                _unlink(path)
                prune_upwards(path.parent, self.path / "staged")

    def lock(self, timeout_s: float, sleep: Callable[[float], None]) -> Lock:
        """Take the one lock of setup (S-46). Raises LockHeld after the time-out."""
        make_private_dir(self.path)
        path = self.path / "lock"
        deadline = time.monotonic() + timeout_s
        while (lock := try_lock(path, "setup")) is None:
            if time.monotonic() >= deadline:
                who = holder(path)
                by = f" by process {who.pid}" if who else ""
                raise LockHeld(
                    f"another setup is running{by}: {path} has been locked for {timeout_s:g} s",
                    hint="wait until it has ended and run the command again",
                    details={"path": str(path), "pid": who.pid if who else None},
                )
            sleep(0.02)
        return lock


def _list(folder: Path) -> list[Path]:
    """Return what lies in a directory of ours, nothing when it is not there.

    Raises StateConflict when it cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateConflict(
            f"cannot read the state of setup, {folder}: {error.strerror or error}",
            code="state-unreadable",
            hint=f"make {folder} a directory that you may read and run the command again",
            details={"path": str(folder)},
        ) from error


def _is_of_ours(folder: Path) -> bool:
    """Say whether it is the backup of a run; what a file manager leaves beside them is not."""
    return _RUN.match(folder.name) is not None and folder.is_dir() and not folder.is_symlink()


def _files(folder: Path) -> Iterator[Path]:
    for item in _list(folder):
        if item.is_dir() and not item.is_symlink():
            yield from _files(item)
        else:
            yield item


def prune_upwards(folder: Path, stop: Path) -> None:
    """Remove a directory and its parents below `stop` as far as they are empty."""
    while folder != stop and folder.is_relative_to(stop):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _remove_flat(folder: Path) -> None:
    for item in _list(folder):
        _unlink(item)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
