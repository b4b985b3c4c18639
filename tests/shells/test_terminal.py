"""The terminal of tfx while hostile shells are asked: a real pty, with tfx in its foreground."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.shells.world import EVERY_SHELL, World, settled, the_shell

# Runs as the session leader of the pty, in its foreground: asks, then reads what the user typed.
ASKS = """
import json, os, sys, termios
from pathlib import Path
from tfx.core.paths import Paths
from tfx.shells.flavours import MODES, flavour_of
from tfx.shells.matrix import probe_matrix
from tfx.shells.selection import Shell

home, program, real, note = sys.argv[1:]
state = lambda: (os.tcgetpgrp(0) == os.getpgrp(), repr(termios.tcgetattr(0)))
before = state()
shell = Shell("it", Path(program), flavour_of(program, real), MODES, login=True, installed=True)
paths = Paths.resolve({"HOME": home, "PATH": "/usr/bin:/bin"})
matrix = probe_matrix(paths, ["tool"], timeout_s=1.5, shells=[shell])
after = state()
line = sys.stdin.readline()  # a shell that kept the terminal would stop us here
Path(note).write_text(json.dumps({
    "before": before, "after": after, "line": line,
    "reasons": [cell.reason for cell in matrix.cells],
}))
"""

# What an unguarded probe trips over: the terminal's name, its settings, its input, its groups.
GRABS = {
    "reads the terminal": "read answer </dev/tty || :",
    "reads stdin": "cat || :",
    "sets the terminal": "stty -echo raw; stty -echo raw </dev/tty || :",
    "hangs": "sleep 1000",
    "hangs in a job": "set -m; sleep 1000; sleep 1000",
    "writes to the terminal": "echo LOUD >/dev/tty; echo LOUD >&2; echo LOUD",
}
FISH = {"hangs in a job": "sleep 1000", "reads the terminal": "read answer </dev/tty"}


@pytest.mark.parametrize("shell", EVERY_SHELL)
@pytest.mark.parametrize("grab", GRABS)
def test_d45_the_terminal_of_tfx_is_not_touched(
    world: World, shell: str, grab: str, tmp_path: Path
) -> None:
    text = (FISH if shell == "fish" else {}).get(grab, GRABS[grab])
    world.startup(shell, f"{text}\n")
    program = the_shell(shell).program
    note = tmp_path / "note"
    arguments = [str(world.home), str(program), str(program.resolve()), str(note)]
    argv = [sys.executable, "-c", ASKS, *arguments]
    controller, terminal = pty.openpty()
    settings = termios.tcgetattr(terminal)
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _IN_FOREGROUND, json.dumps(argv)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        ) as child:
            os.write(controller, b"typed by the user\n")
            code = child.wait(60)
        screen = _shown(controller)
        assert termios.tcgetattr(terminal) == settings
    finally:
        os.close(controller)
        os.close(terminal)
    assert code == 0, screen
    told = json.loads(note.read_text())
    assert told["before"][0] is True
    assert told["after"] == told["before"]
    assert told["line"] == "typed by the user\n"
    assert screen == "typed by the user\r\n"  # the terminal's own echo
    settled(world)


_IN_FOREGROUND = """
import fcntl, json, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.tcsetpgrp(0, os.getpgrp())
argv = json.loads(sys.argv[1])
os.execv(argv[0], argv)
"""


def _shown(controller: int) -> str:
    os.set_blocking(controller, False)
    shown = b""
    for _ in range(10):
        try:
            shown += os.read(controller, 65536)
        except BlockingIOError:
            break
        time.sleep(0.01)
    return shown.decode()
