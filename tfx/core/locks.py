"""Lock files that name their holder: the only door to `flock`.

Knows nothing of what a lock protects.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tfx.core.files import PRIVATE_FILE, read_plain
from tfx.core.identity import boot_id, start_token

_PROBE_PAUSE_S = 0.002
_PROBES_END_S = 10.0  # who only asks holds the file for a moment, unless its process stands still
_MAX_HOLDER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote its name into a lock file; a fact only while the lock is held (H-10)."""

    purpose: str
    pid: int
    start_token: str
    boot_id: str
    since_ms: int

    @property
    def alive(self) -> bool:
        """True when the named process still runs on this boot: pid, start token and boot fit."""
        return self.boot_id == boot_id() and start_token(self.pid) == self.start_token


class Lock:
    """A lock that is held until `release`, the end of its `with` block or of the process.

    The file stays where it is: unlinking a lock file lets two holders lock two inodes (EV-S1).
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the lock go and blank the holder's name; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def try_lock(path: Path, purpose: str) -> Lock | None:
    """Take an exclusive lock and write our name into its file, or return None if it is held.

    `purpose` is one word for people, such as `hub` or `upgrade`. Waits for nobody who has the
    lock, but for an `is_held` of another process, which holds the file for a moment. Raises
    OSError when the file cannot be created or opened for writing; a symbolic link in its place is
    refused.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        if not _exclusive(descriptor):
            os.close(descriptor)
            return None
        os.fchmod(descriptor, PRIVATE_FILE)
        _write_name(descriptor, purpose)
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise
    return Lock(path, descriptor)


def is_held(path: Path) -> bool:
    """Say whether somebody holds the lock; never creates the file, never keeps others out.

    A missing or unreadable file counts as free: who may not read it could not hold it either.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> Holder | None:
    """Return whom the lock file names, or None for a free, new or unreadable one."""
    try:
        document = json.loads(read_plain(path, _MAX_HOLDER_BYTES))
        return Holder(
            str(document["purpose"]),
            int(document["pid"]),
            str(document["start_token"]),
            str(document["boot_id"]),
            int(document["since_ms"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_until_free(path: Path, timeout_s: float) -> bool:
    """Wait until nobody holds the lock; False when somebody still does at the time-out."""
    deadline = time.monotonic() + timeout_s
    pause_s = 0.002
    while is_held(path):
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)
    return True


def _exclusive(descriptor: int) -> bool:
    """Take the lock; False when somebody has it, and not only asks whether it is held."""
    deadline = time.monotonic() + _PROBES_END_S
    while not _taken(descriptor, fcntl.LOCK_EX):
        if not _taken(descriptor, fcntl.LOCK_SH):  # beside those who ask it can be shared
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PROBE_PAUSE_S)
    return True


def _taken(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_name(descriptor: int, purpose: str) -> None:
    name = {
        "purpose": purpose,
        "pid": os.getpid(),
        "start_token": start_token(os.getpid()) or "",
        "boot_id": boot_id(),
        "since_ms": time.time_ns() // 1_000_000,
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(name).encode() + b"\n", 0)
