"""Walk a PATH the way a shell does, and say what is wrong with it and with what it leads to.

One logic for all shells (D-81): it takes the text of PATH and the working directory, and trusts
no shell's `which`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfx.shells import shims
from tfx.shells.binaries import Problem, inspect, real_path, runnable, unreachable
from tfx.shells.managers import Place, place_of

_LINKS = 40


class EntryFault(StrEnum):
    """What is wrong with one entry of PATH (D-82)."""

    EMPTY = "empty"
    TILDE = "literal-tilde"
    RELATIVE = "relative"
    MISSING = "missing"
    NOT_A_DIRECTORY = "not-a-directory"
    UNREADABLE = "unreadable"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of PATH: as it is written, and the directory it really is.

    An empty or relative entry is taken from the working directory, as a shell does.
    """

    text: str
    real: Path
    faults: tuple[EntryFault, ...] = ()
    place: Place | None = None

    @property
    def usable(self) -> bool:
        """Whether a shell finds something there."""
        return not set(self.faults) & {
            EntryFault.MISSING,
            EntryFault.NOT_A_DIRECTORY,
            EntryFault.UNREADABLE,
        }


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that a name leads to by one entry of PATH.

    `path` is the file as the shell finds it, `links` what each symlink on the way says, `real`
    the file at their end. A shell stops at the first `runnable` copy, even if `problem` then
    keeps it from starting.
    """

    path: Path
    real: Path
    links: tuple[str, ...]
    runnable: bool
    problem: Problem | None
    place: Place | None


def split(text: str, cwd: Path, roots: Mapping[str, tuple[Path, ...]]) -> tuple[Entry, ...]:
    """Return the entries of a PATH, each judged; `roots` are the version managers'."""
    entries: list[Entry] = []
    seen: set[Path] = set()
    for part in text.split(":"):
        directory = cwd / part
        real = real_path(directory)
        faults = list(_faults(part, directory))
        if real in seen:
            faults.append(EntryFault.REPEATED)
        seen.add(real)
        entries.append(Entry(part, real, tuple(faults), place_of(directory, roots)))
    return tuple(entries)


def _faults(part: str, directory: Path) -> Sequence[EntryFault]:
    faults: list[EntryFault] = []
    if not part:
        faults.append(EntryFault.EMPTY)
    elif part.startswith("~"):
        faults.append(EntryFault.TILDE)
    elif not part.startswith("/"):
        faults.append(EntryFault.RELATIVE)
    try:
        is_directory = stat.S_ISDIR(directory.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        faults.append(EntryFault.MISSING)
    except OSError:
        faults.append(EntryFault.UNREADABLE)
    else:
        if not is_directory:
            faults.append(EntryFault.NOT_A_DIRECTORY)
        elif not os.access(directory, os.X_OK):
            faults.append(EntryFault.UNREADABLE)
    return faults


def walk(name: str, entries: Sequence[Entry], cwd: Path, *, host: str) -> tuple[Copy, ...]:
    """Return every file of that name on a PATH, in its order, broken ones too.

    `host` is a `uname -m` value. Entries that lead to one directory give one copy.
    """
    search = _search(entries, cwd)
    copies: list[Copy] = []
    for entry in entries:
        if entry.usable and EntryFault.REPEATED not in entry.faults:
            copy = _copy(cwd / entry.text / name, entry.place, search, host)
            if copy is not None:
                copies.append(copy)
    return tuple(copies)


def examine(path: Path, entries: Sequence[Entry], cwd: Path, *, host: str) -> Copy | None:
    """Return the copy at an absolute path, its interpreter looked up on that PATH, or None."""
    return _copy(path, None, _search(entries, cwd), host)


def links(path: Path) -> tuple[str, ...]:
    """Return what each symlink says on the way from a path to its file."""
    found: list[str] = []
    while path.is_symlink() and len(found) < _LINKS:
        target = path.readlink()
        found.append(str(target))
        path = path.parent / target
    return tuple(found)


def _copy(
    path: Path, place: Place | None, search: Callable[[str], Path | None], host: str
) -> Copy | None:
    if not os.path.lexists(path):
        return None
    real = real_path(path)
    problem = unreachable(path)
    can_run = problem is None
    if can_run:
        problem = inspect(path, search=search, host=host) or shims.broken(path, real)
    return Copy(path, real, links(path), can_run, problem, place)


def _search(entries: Sequence[Entry], cwd: Path) -> Callable[[str], Path | None]:
    def search(program: str) -> Path | None:
        candidates = (cwd / entry.text / program for entry in entries if entry.usable)
        return next((path for path in candidates if runnable(path)), None)

    return search
