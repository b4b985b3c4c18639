"""Let SIGTERM and SIGHUP end the program as Ctrl-C does, and then by that signal.

Knows nothing of what is to be ended; whoever is interrupted cleans up as at a Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Final

_HEARD: Final = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A signal asks the program to end; not Ctrl-C, but the same is to be done."""


class _Ending:
    """The first signal that was heard; the exit of the interpreter ends in it."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def note(self, signum: int, _frame: FrameType | None) -> None:
        if self.signum is None:  # a second one must not cut the cleaning short
            self.signum = signum
            raise Ended

    def follow(self) -> None:
        if self.signum is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        signal.signal(self.signum, signal.SIG_DFL)
        os.kill(os.getpid(), self.signum)
        os._exit(128 + self.signum)  # process 1 of a container does not die of it


def as_interrupts() -> None:
    """Raise `Ended`, a KeyboardInterrupt, at the first SIGTERM or SIGHUP; die of it at the exit.

    To be called once, from the main thread, before anything is registered for the exit. A signal
    that is ignored stays so (`nohup`).
    """
    ending = _Ending()
    atexit.register(ending.follow)  # the first to be registered is the last to run
    for signum in _HEARD:
        if signal.getsignal(signum) == signal.SIG_DFL:
            signal.signal(signum, ending.note)
