"""The one thing of a run that tests fake: how late it is, told by what has happened so far.

A time-out that is meant to pass does so once the program under test has come to where the test
wants it, and not before, however slow the machine is.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tfx.core import listen, streaming

JUMP_S = 1_000.0
ASLEEP = 'until read -r name </proc/$!/comm && [ "$name" = sleep ]; do :; done'
"""Shell: wait until the `sleep` just begun is one; the copy of the shell may lose a TERM."""

# Put into a HOME of its own as `sitecustomize.py` on PYTHONPATH: the clock of a whole command.
# It stands still until the file exists, then it is late by a jump; with GOES_ON it goes on from
# there at the usual speed.
OF_A_COMMAND = f"""
import os, time
_real = time.monotonic
_seen = []
def monotonic():
    if not _seen and not os.path.exists(os.environ["CLOCK_IS_LATE"]):
        return 1.0
    if not _seen:
        _seen.append(_real())
    return 1.0 + {JUMP_S} + (_real() - _seen[0]) * float(os.environ["CLOCK_GOES_ON"])
time.monotonic = monotonic
"""


def of_a_command(place: Path, late: Path, *, goes_on: bool) -> dict[str, str]:
    """Return the variables that give a Python command a clock which is late once `late` exists."""
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(OF_A_COMMAND)
    return {
        "PYTHONPATH": str(place),
        "CLOCK_IS_LATE": str(late),
        "CLOCK_GOES_ON": "1" if goes_on else "0",
    }


def late_at_each_line(monkeypatch: pytest.MonkeyPatch, note: Path) -> None:
    """Let the time of every program that runs be up whenever a line is added to a file.

    It holds for `listen` and `stream`, as they are called in this process.
    """

    def monotonic() -> float:
        lines = note.read_bytes().count(b"\n") if note.exists() else 0
        return time.monotonic() + JUMP_S * lines

    for module in (listen, streaming):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))


def late_once_there(monkeypatch: pytest.MonkeyPatch, note: Path) -> None:
    """Let the time of the one `process.run` of a test be up once a file has a line.

    What is left is looked at, not when it began: the program may be quicker than our next line.
    """

    def left(_: object, endtime: float | None) -> float | None:
        if endtime is None:
            return None
        is_late = note.exists() and b"\n" in note.read_bytes()
        return -1.0 if is_late else endtime - time.monotonic()

    monkeypatch.setattr(subprocess.Popen, "_remaining_time", left)
