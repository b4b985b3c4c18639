"""Look at what stands at a path, every link resolved, without ever blocking or following a trick.

Changes nothing; knows no manifest and no decision.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import digest, is_dir
from tfx.plan.actions import Reason, State


class Obstacle(Exception):
    """What stands at a path can be neither read nor replaced as a file."""

    def __init__(self, reason: Reason, detail: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Found:
    """What lies at a path: `target` is fully resolved, `state` and `data` None when absent."""

    target: Path
    state: State | None
    data: bytes | None
    linked: bool


def look(path: Path, limit_bytes: int | None = None) -> Found:
    """Read what a path leads to, every hop resolved (S-47), without ever blocking on a FIFO.

    Raises Obstacle for a directory, FIFO, device, link loop, unreadable or too large file, and
    for a dangling link into a directory that is not there.
    """
    linked = False
    try:
        linked = path.is_symlink()
        info = path.stat()
    except FileNotFoundError:
        return _absent(path, linked)
    except OSError as error:
        raise _obstacle(path, error) from error
    if not stat.S_ISREG(info.st_mode):
        raise Obstacle(Reason.NOT_A_FILE, f"{path} is {_kind(info.st_mode)}, not a regular file")
    if limit_bytes is not None and info.st_size > limit_bytes:
        raise Obstacle(
            Reason.BEYOND_LIMITS, f"{path} has {info.st_size} bytes, more than {limit_bytes}"
        )
    target = Path(os.path.realpath(path))
    try:
        data, mode = read_regular(target)
    except FileNotFoundError:
        return _absent(path, linked)
    except OSError as error:
        raise _obstacle(path, error) from error
    return Found(target, State(digest(data), mode), data, linked)


def _absent(path: Path, linked: bool) -> Found:  # noqa: FBT001  (a field of the result)
    target = Path(os.path.realpath(path))
    if linked and not is_dir(target.parent):
        raise Obstacle(
            Reason.NO_DIRECTORY, f"{path} links to {target}, whose directory does not exist"
        )
    return Found(target, None, None, linked)


def _obstacle(path: Path, error: OSError) -> Obstacle:
    match error.errno:
        case errno.ELOOP:
            return Obstacle(Reason.LOOP, f"{path} is a loop of symbolic links")
        case errno.ENOTDIR:
            return Obstacle(Reason.NOT_A_FILE, f"a parent of {path} is not a directory")
        case _:
            return Obstacle(Reason.UNREADABLE, f"cannot read {path}: {error.strerror}")


def _kind(mode: int) -> str:
    names = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return names.get(stat.S_IFMT(mode), "a device")


def read_regular(path: Path) -> tuple[bytes, int]:
    """Return content and permission bits of a regular file. Raises OSError for anything else."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file any more", str(path))
        return file.read(), stat.S_IMODE(info.st_mode)


def state_of(target: Path) -> State | None:
    """Return the state of a resolved target, None when absent. Raises OSError."""
    try:
        data, mode = read_regular(target)
    except FileNotFoundError:
        return None
    return State(digest(data), mode)


def mode_of(path: Path) -> int | None:
    """Return the permission bits of a file or directory, None for a link or nothing."""
    try:
        if stat.S_ISLNK(path.lstat().st_mode):
            return None
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
