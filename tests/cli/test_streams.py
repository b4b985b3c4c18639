"""Standard streams that are full, closed, or whose reader went away."""

from __future__ import annotations

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


def test_a_reader_that_went_away_is_no_error(home: Path) -> None:
    done = _shell(home, f"{TFX} list --json | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")
