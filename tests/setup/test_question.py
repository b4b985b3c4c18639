"""The one question of setup (K-5), asked on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Machine, listing


def on_terminal(machine: Machine, *arguments: str, answer: bytes = b"") -> tuple[int, str]:
    """Run tfx on a terminal of its own, type the answer once it asks, return status and output."""
    terminal, theirs = pty.openpty()
    argv = [sys.executable, "-m", "tfx", *arguments]
    with subprocess.Popen(
        [sys.executable, "-c", _IN_FOREGROUND, *argv],
        env=machine.env,
        cwd=machine.home,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(terminal, 65536)
            except OSError:  # the other side is gone
                break
            if not more:
                break
            shown += more
            if answer and b"[y/N]" in shown:
                os.write(terminal, answer)
                answer = b""
        code = child.wait()
    os.close(terminal)
    return code, shown.decode("utf-8", "replace")


# Makes the terminal that of its session and becomes the command. A fork of ours, as `pty.fork` is
# one, would hang on whatever else this process has run.
_IN_FOREGROUND = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, "claude")
    machine.write(".claude.json", '{"a": 1}')
    return machine


@pytest.mark.parametrize(
    ("answer", "code"), [(b"n\n", 1), (b"\n", 1), (b"\x04", 1), (b"\xff\n", 1), (b"\x03", 130)]
)
@pytest.mark.parametrize("option", ["--verbose", "--quiet"])
def test_k5_no_shows_the_plan_once_and_writes_nothing(
    machine: Machine, answer: bytes, code: int, option: str
) -> None:
    before = listing(machine.home)
    ran = on_terminal(machine, "setup", "--mcp-transport", "stdio", option, answer=answer)
    assert ran[0] == code
    assert listing(machine.home) == before
    assert ran[1].count("would create ~/.claude.json:mcpServers.tfx-hub") == 1, ran[1]
    assert ran[1].count("[y/N]") == 1


def test_k5_the_first_run_that_edits_a_shared_file_asks_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "claude", "gemini")
    shared = machine.write(".gemini/settings.json", '{"a": 1}')
    code, shown = on_terminal(machine, "setup", "--agent", "claude")  # makes files, edits none
    assert (code, "[y/N]" in shown) == (0, False)
    assert (machine.home / ".claude.json").is_file()
    code, shown = on_terminal(machine, "setup", answer=b"n\n")
    assert (code, "[y/N]" in shown) == (1, True)
    assert shared.read_text() == '{"a": 1}'
    code, shown = on_terminal(machine, "setup", answer=b"y\n")
    assert (code, "[y/N]" in shown) == (0, True)
    code, shown = on_terminal(machine, "setup", "--mcp-transport", "http")
    assert (code, "[y/N]" in shown) == (0, False)
    assert on_terminal(machine, "setup", "--remove")[0] == 0
    code, shown = on_terminal(machine, "setup")
    assert (code, "[y/N]" in shown) == (0, False)


def test_runs_count_what_the_run_itself_reported(machine: Machine) -> None:
    reported = []
    for arguments in (["--mcp-transport", "stdio"], ["--mcp-transport", "http"], ["--remove"]):
        data = machine.setup(*arguments).data
        reported.append((data["run"], data["counts"]["changed"]))
    listed = machine.setup("--runs").data["runs"]
    assert [(row["run"], row["changes"]) for row in reversed(listed)] == reported


def test_purge_takes_everything_so_it_goes_with_no_agent(machine: Machine) -> None:
    ran = machine.setup("--remove", "--purge", "--yes", "--agent", "claude")
    assert ran.code == 2
