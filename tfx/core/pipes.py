"""Feed and drain the pipes of a program, each in a thread of its own.

Knows nothing of the program; a pipe that breaks is an end, not an error.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import IO, Final

_LET_GO_S: Final = 2.0  # how long a pipe that says nothing is waited for
_LONGEST_S: Final = 30.0  # and one that goes on talking
_STEP_S: Final = 0.1


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
        """Return what was kept once the pipe has ended, or nothing was in it for two seconds.

        A grandchild that left the group may hold it open, but a reader that stood still has not
        yet taken what lies there.
        """
        began = quiet_since = time.monotonic()
        while self._thread.is_alive():
            self._thread.join(_STEP_S)
            now = time.monotonic()
            if self._has_news() and now - began < _LONGEST_S:
                quiet_since = now
            elif now - quiet_since > _LET_GO_S:
                break
        return bytes(self._kept)

    def _has_news(self) -> bool:
        with contextlib.suppress(ValueError, OSError):
            return self._pipe is not None and bool(select.select([self._pipe], [], [], 0)[0])
        return False


def feed(pipe: IO[bytes] | None, data: bytes | None) -> None:
    """Write all data and close the pipe."""
    if pipe is None:
        return
    with contextlib.suppress(OSError):
        if data:
            pipe.write(data)
        pipe.close()
