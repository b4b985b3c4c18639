"""Say what a run is doing, at least twice a second, whatever the main thread waits for.

Knows no database; a reader that is gone stops nothing (U-89).
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tfx.upgrade.model import Line, Phase, PhaseTime, Progress

BEAT_S = 0.25
_KIB = 1024


class Reporter:
    """The phase, its counts, and the directory of a verified backup once there is one."""

    def __init__(self, write: Callable[[bytes], None] | None = None) -> None:
        self.phase = Phase.OPTIONS
        self.backup_directory: str | None = None
        self.phases: list[PhaseTime] = []
        self.on_phase: Callable[[Phase], None] | None = None
        self._write = write
        self._progress = Progress(Phase.OPTIONS)
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._beat: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start beating when there is somebody to tell."""
        if self._write is not None:
            self._beat = threading.Thread(target=self._beating, daemon=True)
            self._beat.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop beating."""
        self._stop.set()
        if self._beat is not None:
            self._beat.join()

    def enter(self, phase: Phase) -> None:
        """Start a phase; the one before it has ended."""
        self._close_phase()
        self.phase = phase
        self._progress = Progress(phase)
        self._say()
        if self.on_phase is not None:
            self.on_phase(phase)

    def table(self, name: str, done: int, total: int) -> None:
        """Tell how many rows of a table are done."""
        self._progress = Progress(self.phase, name, done, total)

    def bytes(self, done: int, total: int) -> None:
        """Tell how many bytes are done."""
        self._progress = Progress(self.phase, bytes_done=done, bytes_total=total)

    def relay(self, progress: Progress) -> None:
        """Tell what a child does, as if we did it."""
        self._progress = Progress(
            self.phase,
            progress.table,
            progress.rows_done,
            progress.rows_total,
            progress.bytes_done,
            progress.bytes_total,
        )

    def finished(self) -> tuple[PhaseTime, ...]:
        """Return the time of each phase, the running one included."""
        self._close_phase()
        return tuple(self.phases)

    def send(self, line: Line) -> None:
        """Write one line; nobody reading it any more is not an error."""
        if self._write is None:
            return
        data = msgspec.json.encode(line) + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._write(data)

    def _close_phase(self) -> None:
        now = time.monotonic()
        self.phases.append(PhaseTime(self.phase, round(now - self._began, 3), peak_bytes()))
        self._began = now

    def _beating(self) -> None:
        while not self._stop.wait(BEAT_S):
            self._say()

    def _say(self) -> None:
        self.send(Line(progress=self._progress, backup_directory=self.backup_directory))


def peak_bytes() -> int:
    """Return the most resident memory this process ever had, in bytes.

    The kernel's own mark: `ru_maxrss` would count the parent that we were forked from.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    marks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(marks[0]) * _KIB if marks else 0


def to_stdout(data: bytes) -> None:
    """Write a whole line to standard output."""
    while data:
        data = data[os.write(1, data) :]
