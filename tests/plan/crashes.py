"""Runs that end before their end, and what must be there afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plan.machine import Machine, write
from tests.support import bare_env

OWN_SETTINGS = '{\n  "own": [1, 2]\n}\n'


OWN_CODEX = "# mine\nmodel = 'x'\n"


OWN_SKILL = "my own skill"


def users_home(machine: Machine) -> None:
    write(machine.settings, OWN_SETTINGS, 0o600)
    write(machine.codex, OWN_CODEX)
    write(machine.skills / "own" / "SKILL.md", OWN_SKILL)


def crash(machine: Machine, operation: str, version: str, after_lines: int) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "tests.plan.crashing", str(machine.top), operation, version,
         str(after_lines)],
        cwd=Path(__file__).parents[2],
        env=bare_env(machine.home),
        capture_output=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode in {0, 9}, done.stderr.decode()
    return done.returncode


def wanted_state(machine: Machine, version: str) -> None:
    """The next setup ends in the wanted state, and what is the user's is there."""
    machine.apply(machine.desired(version))
    assert machine.plan(machine.desired(version)).actions == ()
    assert f"tfx-{version}" in machine.settings.read_text()
    assert f"tfx-{version}" in machine.codex.read_text()
    assert machine.skill.read_text() == f"skill version {version}\n"
    no_spares(machine)


def no_spares(machine: Machine) -> None:
    assert list(machine.home.rglob(".tfx-*")) == []
