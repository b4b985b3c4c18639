"""Standard streams that are full, closed, or whose reader went away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import bare_env

TFX = f"{sys.executable} -m tfx"


def _shell(home: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        env=bare_env(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["list --json", "list", "hub status --json", "hub stop"])
def test_h_7_output_that_is_lost_is_said_and_fails(home: Path, command: str) -> None:
    done = _shell(home, f"{TFX} {command} >/dev/full")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_status(home: Path, closed: str) -> None:
    assert "Traceback" not in _shell(home, f"{TFX} hub stop {closed}").stderr
    assert _shell(home, f"{TFX} hub stop {closed}").returncode == 0
    assert _shell(home, f"{TFX} hub status {closed}").returncode == 4
    assert _shell(home, f"{TFX} hub start --port abc {closed}").returncode == 2


@pytest.mark.parametrize(
    ("command", "code"),
    [("hub status", 4), ("bogus", 2), ("", 2), ("hub stop", 0), ("list", 0), ("--version", 0)],
)
def test_h_7_a_full_standard_error_changes_no_exit_status(
    home: Path, command: str, code: int
) -> None:
    assert _shell(home, f"{TFX} {command} 2>/dev/full").returncode == code


@pytest.mark.parametrize("command", ["--version", "--help", "hub --help", "list", "bogus"])
def test_h_7_two_full_streams_are_a_failure_of_its_own_kind(home: Path, command: str) -> None:
    code = 2 if command == "bogus" else 1  # the former has nothing for standard output
    assert _shell(home, f"{TFX} {command} >/dev/full 2>&1").returncode == code


@pytest.mark.parametrize("command", ["--version", "--help", "hub --help", "list", "list --json"])
def test_a_reader_that_reads_nothing_is_no_error(home: Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*TFX.split(), *command.split()],
        env=bare_env(home),
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_went_away_is_no_error(home: Path) -> None:
    done = _shell(home, f"{TFX} list --json | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")
