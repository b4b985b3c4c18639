"""Read, hash, write atomically and lock: the only door to file changes.

Knows nothing of what the bytes mean or who owns them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path

PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def is_file(path: Path) -> bool:
    """Say whether a path leads to a regular file; what may not be looked at does not."""
    return os.path.isfile(path)  # noqa: PTH113  (Path.is_file raises where a directory may not be entered)


def is_dir(path: Path) -> bool:
    """Say whether a path leads to a directory; what may not be looked at does not."""
    return os.path.isdir(path)  # noqa: PTH112  (Path.is_dir raises where a parent may not be entered)


def is_special(path: Path) -> bool:
    """Say whether something other than a regular file stands at a path, links followed."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def read_plain(path: Path, limit_bytes: int = -1) -> bytes:
    """Return the (first) bytes of a regular file, links followed, without waiting for a FIFO.

    Raises OSError, also for anything that is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit_bytes)
    finally:
        os.close(descriptor)


def permissions(path: Path) -> int:
    """Return the permission bits of what a path leads to."""
    return stat.S_IMODE(path.stat().st_mode)


def make_private_dir(path: Path) -> None:
    """Create a directory that only the user can enter, whatever the umask.

    Missing parents get the same mode, as the XDG base-directory specification asks.
    """
    if not path.parent.is_dir():
        make_private_dir(path.parent)
    path.mkdir(exist_ok=True, mode=PRIVATE_DIR)
    if permissions(path) != PRIVATE_DIR:
        path.chmod(PRIVATE_DIR)


def make_store(path: Path) -> None:
    """Create a directory for private things, and its missing parents.

    An existing one keeps its mode: what is put into it protects itself (K-41).
    """
    if not path.is_dir():
        make_private_dir(path)


def fsync_file(path: Path) -> None:
    """Make what was written to a file durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_dir(path: Path) -> None:
    """Make a rename in this directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Create a file that must not exist, with exactly this mode, and flush it to the disk.

    Raises FileExistsError, or any OSError of the file system; nothing is left behind then.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def replace_atomically(path: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """Write a file of our own: temp file beside it, fsync, rename, fsync of the directory.

    For tfx's own state only; files of users go through the plan engine (S-47 … S-52).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    write_new(temporary, data, mode)
    try:
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    fsync_dir(path.parent)
