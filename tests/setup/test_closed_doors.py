"""Directories closed to the user, and FIFOs where a file should be: told, never a crash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import TFX, Machine, Ran, tfx

UID = 65534
COMMANDS = [
    ("setup", "--mcp-transport", "stdio"),
    ("list",),
    ("version",),
    ("setup", "--remove", "--purge", "--yes"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "m", "claude", "codex", "opencode")


def as_somebody(machine: Machine, *arguments: str) -> Ran:
    """Run tfx as a user for whom modes bind: as root they would not."""
    command = list(TFX)
    if os.geteuid() == 0:
        for path in (machine.root, *machine.root.parents):
            if path.is_relative_to("/tmp") and path != Path("/tmp"):  # noqa: S108
                path.chmod(path.stat().st_mode | 0o055)
        for path in (machine.root, *machine.root.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)
        become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        probe = subprocess.run(
            [*become, *TFX, "--version"], env=machine.env, capture_output=True, check=False
        )
        if probe.returncode:
            pytest.skip("setpriv is missing or another uid may not read this checkout")
        command = [*become, *command]
    return tfx(machine.home, *arguments, "--json", env=machine.env, command=command)


CLOSED = [
    ".claude",
    ".claude/skills",
    ".claude/skills/own",
    ".claude/skills/tfx-setup",
    ".agents",
    ".codex",
    ".config",
    ".config/opencode",
    ".local/state/tfx",
    ".local/state/tfx/hub",
    ".local/state/tfx/setup/journal",
]


@pytest.mark.parametrize("path", CLOSED)
def test_directory_that_may_not_be_entered_is_told(machine: Machine, path: str) -> None:
    closed = machine.home / path
    closed.mkdir(parents=True)
    (closed / "own.txt").write_bytes(b"mine")
    closed.chmod(0)
    for command in COMMANDS:
        ran = as_somebody(machine, *command)
        assert ran.code in {0, 1, 2, 5}, (command, ran.out, ran.err)
        assert "Traceback" not in ran.err
        for problem in ran.document["problems"]:
            assert str(machine.home) in problem["message"] or "~/" in problem["message"]
    looked = as_somebody(machine, "doctor", "--timeout", "60")
    rows = looked.document["data"]["rows"]
    assert [row for row in rows if row["details"].get("reason") == "check-broke"] == []
    closed.chmod(0o700)
    assert (closed / "own.txt").read_bytes() == b"mine"


def test_skill_that_may_not_be_read_is_listed_as_such(machine: Machine) -> None:
    closed = machine.home / ".claude/skills/tfx-setup"
    closed.mkdir(parents=True)
    closed.chmod(0)
    ran = as_somebody(machine, "setup")
    assert (ran.code, ran.document["status"]) == (5, "refused")
    skills = {
        row["name"]: row["state"] for row in as_somebody(machine, "list").data["roots"][0]["skills"]
    }
    assert skills.pop("tfx-setup") == "unreadable"
    assert set(skills.values()) == {"installed"}


def test_home_that_may_not_be_entered_is_an_unsafe_environment(machine: Machine) -> None:
    machine.home.chmod(0)
    ran = as_somebody(machine, "setup")
    assert (ran.code, ran.document["status"]) == (5, "refused")
    assert str(machine.home) in ran.document["problems"][0]["message"]


def test_path_may_name_a_directory_that_is_closed_to_the_user(machine: Machine) -> None:
    closed = machine.root / "sbin"
    closed.mkdir()
    closed.chmod(0)
    machine.env["PATH"] = f"{closed}:{machine.env['PATH']}"
    ran = as_somebody(machine, "setup")
    assert ran.code == 0, ran.out


@pytest.mark.parametrize(
    "path",
    [
        ".local/state/tfx/setup/manifest.json",
        ".local/state/tfx/setup/journal/000001-x.jsonl",
        ".config/opencode/opencode.json",
        ".config/opencode/opencode.jsonc",
        ".config/tfx/config.toml",
        ".codex/auth.json",
        ".agents",
        ".local/state/tfx",
    ],
)
def test_fifo_in_place_of_a_file_never_blocks(machine: Machine, path: str) -> None:
    fifo = machine.home / path
    fifo.parent.mkdir(parents=True, exist_ok=True)
    if path.endswith(".json") and "opencode" in path:
        os.mkfifo(fifo.with_suffix(".jsonc"))
    os.mkfifo(fifo)
    for command in COMMANDS:
        ran = tfx(machine.home, *command, "--json", env=machine.env, timeout_s=60)
        assert ran.code in {0, 1, 2, 4, 5}, (command, ran.out, ran.err)
    assert fifo.is_fifo()
