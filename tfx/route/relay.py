"""Carry what an agent prints from its pipes into its two logs, whatever their cap.

Knows neither the agent nor its end; it is told when that has come.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tfx.core.process import spawn_detached
from tfx.route.logs import CappedLog

_CHUNK_BYTES: Final = 64 * 1024
_PIPE_BYTES: Final = 1024 * 1024  # the most that Linux lets an unprivileged pipe hold
_LEFT_BEHIND: Final = 'head -c "$1" >>"$2"; exec cat >/dev/null'


@dataclass(frozen=True, slots=True)
class Kept:
    """How a log ended: bytes that its cap pushed out, and why it ends early if it does."""

    left_out: int
    failure: str


class Relay:
    """Two pipes for one agent, and the thread that empties them into the logs."""

    def __init__(self, stdout: Path, stderr: Path, cap_bytes: int) -> None:
        """Open logs and pipes; raises OSError."""
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as ends:
            self._logs: dict[int, CappedLog] = {}
            self.stdout = self._carried(stdout, cap_bytes, stack, ends)
            self.stderr = self._carried(stderr, cap_bytes, stack, ends)
            self._told, self._tell = os.pipe()
            stack.callback(os.close, self._told)
            stack.callback(os.close, self._tell)
            self._open = set(self._logs)
            self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
            self._agents_ends = ends.pop_all()
            self._resources = stack.pop_all()

    def _carried(
        self, path: Path, cap_bytes: int, stack: contextlib.ExitStack, ends: contextlib.ExitStack
    ) -> int:
        """Open a log and a pipe to it; return the end for the agent."""
        log = CappedLog(path, cap_bytes)
        stack.callback(log.close)
        read_end, write_end = os.pipe()
        stack.callback(os.close, read_end)
        ends.callback(os.close, write_end)
        os.set_blocking(read_end, False)
        self._logs[read_end] = log
        return write_end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._agents_ends.close()
        self._end()
        self._resources.close()

    def begin(self) -> None:
        """Start, once the agent has its ends of the pipes."""
        self._agents_ends.close()
        self._thread.start()

    def finish(self, *, let_go: bool) -> tuple[Kept, Kept]:
        """Write what the agent had printed when it ended; say how both logs ended.

        What it left running still holds the pipes. With `let_go` that goes on: somebody stays to
        fill its log to the cap and to swallow the rest. Else it finds them closed.
        """
        self._end()
        if let_go:
            for read_end in self._open:
                self._leave_behind(read_end)
        out, err = (Kept(log.left_out, log.failure) for log in self._logs.values())
        return out, err

    def _end(self) -> None:
        if self._thread.is_alive():
            os.write(self._tell, b".")
            self._thread.join()

    def _leave_behind(self, read_end: int) -> None:
        log = self._logs[read_end]
        os.set_blocking(read_end, True)
        room = 0 if log.failure else log.cap_bytes - log.size
        with contextlib.suppress(OSError):  # no shell: its next word to us ends it
            spawn_detached(
                ("/bin/sh", "-c", _LEFT_BEHIND, "tfx-route-rest", str(room), str(log.path)),
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                stdin=read_end,
            )

    def _run(self) -> None:
        while self._open:
            ready, _, _ = select.select([*self._open, self._told], [], [])
            if self._told in ready:
                break
            for read_end in ready:
                self._carry(read_end, _CHUNK_BYTES)
        for read_end in tuple(self._open):  # no more than was there at its end
            self._carry(read_end, _PIPE_BYTES)

    def _carry(self, read_end: int, most_bytes: int) -> None:
        """Read until the pipe is empty, at its end, or so much was read."""
        while most_bytes > 0:
            try:
                data = os.read(read_end, min(most_bytes, _CHUNK_BYTES))
            except BlockingIOError:
                return
            if not data:
                self._open.discard(read_end)
                return
            self._logs[read_end].write(data)
            most_bytes -= len(data)
