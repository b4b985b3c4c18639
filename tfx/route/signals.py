"""Hear INT, TERM and HUP during a run instead of dying of them.

Knows nothing of what is then done; signals that were ignored before stay ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While its block runs, the first of the signals is noted and wakes who waits on `fd`."""

    def __init__(self) -> None:
        self.signum: int | None = None
        self.fd, self._write_end = os.pipe()
        self._before: dict[int, Handler] = {}
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        for end in (self.fd, self._write_end):
            os.set_blocking(end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for signum in _HEARD:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                self._before[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.fd)
        os.close(self._write_end)

    def drain(self) -> None:
        """Forget the wake-ups so far; `signum` stays."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        self.signum = self.signum or signum
