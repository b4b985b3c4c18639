"""Listen to a program until it has said a given mark, and never longer than it deserves.

Knows nothing of what is said; it hands back bytes, and how the listening ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfx.core.process import Session

_POLL_S = 0.02  # how late an exit behind an open pipe, or a cancellation, is noticed
_CHUNK = 65536
_TAIL_BYTES = 1 << 16  # of the errors
_LAST_CHUNKS = 64  # what may still lie in a pipe when we stop
_LET_GO_S = 0.05  # how long somebody else's hold on a pipe is waited for
_DYING_S = 5.0  # and how long the dying of what was killed, which closes its ends


class End(StrEnum):
    """Why the listening stopped."""

    MARK = "mark"
    EXIT = "exit"
    FLOOD = "flood"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Heard:
    """What a program said. `code` is its exit status if it ended by itself (-N: signal N).

    `stderr` is the tail of the stream. `outlived` is true when something that left the
    program's process group still holds its output: it is not ours to end.
    """

    end: End
    code: int | None
    stdout: bytes
    stderr: bytes
    duration_ms: int
    outlived: bool


def listen(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    until: bytes | Callable[[bytes], bool],
    timeout_s: float,
    say: bytes | None = None,
    limit_bytes: int = 1 << 20,
    cancel: threading.Event | None = None,
) -> Heard:
    """Run a program in its own session until `until` is in its output, then kill its group.

    `until` may be a question put to all of the output so far. `say` is what the program hears on
    an input that stays open; at most what a pipe holds, 4096 bytes. Without it input is closed.
    Stops earlier when the leader has exited and nothing is left to read, at `timeout_s`, above
    `limit_bytes` of output, or when `cancel` is set (D-45, D-48, D-49). Raises OSError when the
    program cannot be started.
    """
    started = time.monotonic()
    with _said(say) as stdin:
        session = Session(argv, env=env, cwd=cwd, stdin=stdin)
        try:
            ear = _Ear(session, until, limit_bytes)
            end = ear.hear(started + timeout_s, cancel)
            took = time.monotonic() - started
            code = session.exit_code() if end is End.EXIT else None
            session.end()
            outlived = not ear.falls_silent()
        finally:
            session.close()
    return Heard(end, code, bytes(ear.out), bytes(ear.err), round(took * 1000), outlived)


@contextlib.contextmanager
def _said(text: bytes | None) -> Iterator[int | None]:
    """Give the descriptor of a pipe that holds the text and stays open, if there is a text."""
    if text is None:
        yield None
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, text)
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


class _Ear:
    """The two streams of one session, read side by side."""

    def __init__(
        self,
        session: Session,
        until: bytes | Callable[[bytes], bool],
        limit: int,
    ) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._session = session
        self._until = until
        self._limit = limit
        self._keeping = True
        self._open = {session.stdout, session.stderr}
        for stream in self._open:
            os.set_blocking(stream, False)

    def hear(self, deadline: float, cancel: threading.Event | None) -> End:
        with selectors.DefaultSelector() as selector:
            for stream in self._open:
                selector.register(stream, selectors.EVENT_READ)
            end = self._loop(selector, deadline, cancel)
        self._drain(self._session.stderr)  # complaints that were written before the mark
        return end

    def _loop(
        self, selector: selectors.BaseSelector, deadline: float, cancel: threading.Event | None
    ) -> End:
        is_late = False  # what was said in time is heard, also by one who stood still meanwhile
        while not is_late:
            if cancel is not None and cancel.is_set():
                return End.CANCELLED
            left = deadline - time.monotonic()
            is_late = left <= 0
            exited = self._session.exit_code() is not None
            ready = selector.select(0 if exited or is_late else min(_POLL_S, left))
            if exited and not ready:
                return End.EXIT
            for key, _ in ready:
                if self._read(key.fd) == b"":
                    selector.unregister(key.fd)
            if self._is_enough():
                return End.MARK
            if len(self.out) > self._limit:
                return End.FLOOD
        return End.DEADLINE

    def _is_enough(self) -> bool:
        if isinstance(self._until, bytes):
            return self._until in self.out
        return self._until(bytes(self.out))

    def _read(self, stream: int) -> bytes | None:
        """Take and keep one chunk: empty at the end of the stream, None when nothing lies there."""
        try:
            chunk = os.read(stream, _CHUNK)
        except BlockingIOError:
            return None
        if not chunk:
            self._open.discard(stream)
        elif not self._keeping:
            return chunk
        elif stream == self._session.stdout:
            self.out += chunk[: max(0, self._limit + _CHUNK - len(self.out))]
        else:
            self.err += chunk
            del self.err[:-_TAIL_BYTES]
        return chunk

    def _drain(self, stream: int) -> None:
        for _ in range(_LAST_CHUNKS):
            if stream not in self._open or not self._read(stream):
                return

    def falls_silent(self) -> bool:
        """Say whether both pipes close now that the session is killed."""
        self._keeping = False  # the last words of what we killed are no complaint of its own
        began = time.monotonic()
        while True:
            spent = time.monotonic() - began
            is_enough = spent >= _LET_GO_S and (spent >= _DYING_S or self._session.is_over())
            for stream in tuple(self._open):
                self._drain(stream)
            if not self._open:
                return True
            if is_enough:
                return False
            time.sleep(_POLL_S / 10)
