"""Step 0 and 1: paths that are ours and safe, and the one lock of the database (U-43, U-44).

Creates nothing but the lock file; opens no database.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tfx.core import locks
from tfx.errors import (
    AccessDenied,
    InvalidRequest,
    LockHeld,
    NotFound,
    OperationFailed,
    StateConflict,
    TfxError,
)
from tfx.hub.daemon.ground import file_system, is_network

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP})
_OTHERS_MAY_WRITE = 0o022
COMPANIONS = ("-wal", "-shm", "-journal")


def absolute(text: str, what: str) -> Path:
    """Return a path; raises InvalidRequest for one that is not absolute (U-22)."""
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        raise InvalidRequest(f"{what} is not an absolute path: {text!r}", code="bad-path")
    return path


def check_database(path: Path) -> None:
    """Refuse what is not a plain file of ours on a local disk (U-92 … U-95).

    Raises NotFound, InvalidRequest for another kind of file, AccessDenied for a file or directory
    that others own or can change, a symbolic or a hard link.
    """
    check_owned_path(path)
    try:
        status = path.lstat()
    except FileNotFoundError as error:
        raise NotFound(
            f"there is no hub database at {path}",
            code="no-database",
            hint="tfx hub start",
            details={"path": str(path)},
        ) from error
    if stat.S_ISLNK(status.st_mode):
        raise _denied(path, "is a symbolic link", "symlink")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidRequest(f"{path} is not a file", code="not-a-file")
    if status.st_nlink > 1:
        raise _denied(path, f"has {status.st_nlink} names (hard links)", "hard-link")
    if status.st_uid != os.geteuid():
        raise _denied(path, f"belongs to uid {status.st_uid}", "wrong-owner")
    for end in COMPANIONS:
        beside = path.with_name(path.name + end)
        if beside.is_symlink():
            raise _denied(beside, "is a symbolic link", "symlink")


def check_directory(path: Path) -> None:
    """Refuse a directory that others own or may write to, or that is not local."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotFound(f"there is no directory {path}", details={"path": str(path)}) from error
    sticky = bool(status.st_mode & stat.S_ISVTX)
    if status.st_uid != os.geteuid() and not sticky:
        raise _denied(path, f"belongs to uid {status.st_uid}", "wrong-owner")
    if status.st_mode & _OTHERS_MAY_WRITE and not sticky:
        raise _denied(path, "can be written by others", "writable-by-others")
    kind = file_system(path)
    if is_network(kind):
        raise InvalidRequest(
            f"{path} lies on a network file system ({kind}), where SQLite's locks do not hold",
            code="network-file-system",
            details={"path": str(path), "file_system": kind},
        )


def check_owned_path(path: Path) -> None:
    """Raise AccessDenied when a link on the way belongs to somebody else (K-41)."""
    for each in (path, *path.parents):
        try:
            status = each.lstat()
        except OSError:
            continue
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in {os.geteuid(), 0}:
            raise _denied(each, "is a symbolic link of another user", "foreign-symlink")


def check_apart(store: Path, root: Path, home_of: Path) -> None:
    """Refuse a backup store inside, equal to or around the hub's own directory (U-43, U-91).

    Compares real paths by component, and device and inode for aliases. Only inside is allowed
    where the root holds the whole home directory: no other place would be left.
    """
    real_store, real_root = Path(os.path.realpath(store)), Path(os.path.realpath(root))
    holds_home = Path(os.path.realpath(home_of)).is_relative_to(real_root)
    inside = real_store.is_relative_to(real_root) or _among(real_root, real_store)
    around = real_root.is_relative_to(real_store) or _among(real_store, real_root)
    same = real_store == real_root or _same(real_store, real_root)
    if same or around or (inside and not holds_home):
        raise InvalidRequest(
            f"the backup directory {store} and the hub's directory {root} lie in each other",
            code="backup-inside",
            hint="name another one with --backup-dir",
            details={"store": str(store), "root": str(root)},
        )


def check_store(store: Path) -> None:
    """Refuse a backup store that is no directory of ours; one that is not there yet is fine."""
    check_owned_path(store)
    if store.exists() and not store.is_dir():
        raise InvalidRequest(f"the backup directory is a file: {store}", code="not-a-directory")
    nearest = store
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InvalidRequest(f"{nearest} is a file", code="not-a-directory")
    if nearest == store and store.stat().st_uid != os.geteuid():
        raise _denied(store, f"belongs to uid {store.stat().st_uid}", "wrong-owner")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise _denied(nearest, "cannot be written", "no-permission")


@contextlib.contextmanager
def locked(database: Path, purpose: str) -> Iterator[None]:
    """Hold the lock of a database; raises LockHeld, or StateConflict while its hub runs (K-22)."""
    path = database.with_name(f"{database.name}.lock")
    with os_errors(path):
        lock = locks.try_lock(path, purpose)
    if lock is None:
        raise held(path, database)
    with lock:
        yield


def held(path: Path, database: Path) -> TfxError:
    """Return the error of a lock that somebody else has."""
    who = locks.holder(path)
    details = {"lock": str(path), "pid": who.pid if who else None}
    if who is not None and who.purpose == "hub":
        return StateConflict(
            f"the hub (pid {who.pid}) is running on {database}",
            code="hub-running",
            hint="tfx hub stop, or run this again with --stop-hub",
            details={**details},
        )
    what = f"tfx {who.purpose} (pid {who.pid})" if who else "another process"
    return LockHeld(
        f"{database} is being worked on by {what}",
        hint="wait until it has ended, then run the command again",
        details={**details},
    )


@contextlib.contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Turn what the file system raises into AccessDenied, `disk-full` or `io`."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else str(path)
        details = {"path": where}
        if error.errno in _DENIED:
            raise AccessDenied(
                f"{where} cannot be used: {error.strerror}",
                code="no-permission",
                details={**details},
            ) from error
        code = "disk-full" if error.errno in _FULL else "io"
        raise OperationFailed(
            f"{where} cannot be used: {error.strerror or error}", code=code, details={**details}
        ) from error


def _among(around: Path, inside: Path) -> bool:
    """Return True when some parent of `inside` is `around` under another name."""
    return any(_same(around, each) for each in inside.parents)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _denied(path: Path, what: str, code: str) -> AccessDenied:
    return AccessDenied(
        f"{path} {what}", code=code, hint=f"ls -ld {path}", details={"path": str(path)}
    )
