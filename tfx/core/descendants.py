"""Every process below one: the only door to the process tree.

Knows nothing of why they are wanted; it signals only what it has identified by its start time.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from tfx.core.identity import start_token
from tfx.core.process import signal_exactly

_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_ENDED = (b"Z", b"X")
_STATE_FIELD = 0  # of /proc/<pid>/stat, counted behind the command name
_PARENT_FIELD = 1
_START_FIELD = 19


@dataclass(frozen=True, slots=True)
class Descendant:
    """A process told apart from a later one with the same pid."""

    pid: int
    start_token: str

    @property
    def alive(self) -> bool:
        """True while this very process runs; one that ended and waits for its parent does not."""
        return start_token(self.pid) == self.start_token

    def signal(self, signum: int) -> None:
        """Send it a signal; one that is gone is fine."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal_exactly(self.pid, self.start_token, signum)


@dataclass(frozen=True, slots=True)
class _Stat:
    ended: bool
    parent: int
    start_token: str


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own, where the system can (Linux).

    A daemon that forked away from its group is then still found below us.
    """
    import ctypes  # noqa: PLC0415  (some milliseconds that only a run pays)

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(pid: int) -> frozenset[Descendant]:
    """Return the running processes below one, not itself; empty where /proc is absent."""
    children: dict[int, list[tuple[int, _Stat]]] = {}
    for child in _pids():
        seen = _stat(child)
        if seen is not None:
            children.setdefault(seen.parent, []).append((child, seen))
    kin: set[Descendant] = set()
    waiting = [pid]
    while waiting:
        for child, seen in children.get(waiting.pop(), ()):
            waiting.append(child)
            if not seen.ended:
                kin.add(Descendant(child, seen.start_token))
    return frozenset(kin)


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  (names are enough, and many)
    except FileNotFoundError:
        return []


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  (hundreds of them at a time)
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return _Stat(
        fields[_STATE_FIELD] in _ENDED, int(fields[_PARENT_FIELD]), fields[_START_FIELD].decode()
    )
