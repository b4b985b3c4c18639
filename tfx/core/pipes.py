"""Feed and drain the pipes of a program, each in a thread of its own.

Knows nothing of the program; a pipe that breaks is an end, not an error.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import IO


class Drain:
    """Reads one pipe to its end and keeps the first bytes."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self.truncated = False
        self._pipe = pipe
        self._limit = limit
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        if self._pipe is None:
            return
        with contextlib.suppress(ValueError, OSError):
            while chunk := os.read(self._pipe.fileno(), 65536):
                room = self._limit - len(self._kept)
                self._kept += chunk[:room]
                self.truncated = self.truncated or len(chunk) > room

    def finish(self) -> bytes:
        """Return what was kept once the pipe has ended, or after two seconds."""
        self._thread.join(2)  # a grandchild that left the group may hold the pipe open
        return bytes(self._kept)


def feed(pipe: IO[bytes] | None, data: bytes | None) -> None:
    """Write all data and close the pipe."""
    if pipe is None:
        return
    with contextlib.suppress(OSError):
        if data:
            pipe.write(data)
        pipe.close()
