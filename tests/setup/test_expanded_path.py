"""tfx installed where a client would change a part of the path: a conflict of that entry (S-21)."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support import Machine, Ran, listing, tfx

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"${USER}": {"claude", "gemini"}, "{env:USER}": {"opencode"}, "plain": set[str]()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "m", "claude", "codex", "gemini", "opencode")


def installed(place: Path) -> Path:
    """An environment of its own that finds tfx and what it needs in ours."""
    made = place.parents[1] / "made"  # venv itself refuses a colon
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True, timeout=60)
    place.parent.mkdir()
    made.rename(place)
    (packages,) = place.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"{ROOT}\n{ours}\n")
    return place / "bin" / "python3"


def setup(machine: Machine, python: Path, *options: str) -> Ran:
    command = (str(python), "-I", "-m", "tfx")
    env = machine.env | {"USER": "somebody"}
    return tfx(machine.home, "setup", "--json", *options, env=env, command=command)


def conflicts(ran: Ran) -> dict[str, tuple[str, str]]:
    return {
        row["agent"]: (row["reason"], row["hint"])
        for row in ran.data["actions"]
        if row["status"] == "conflict"
    }


@pytest.mark.parametrize("name", PLACES)
def test_s21_an_entry_its_client_would_change_is_a_conflict_and_the_rest_is_done(
    machine: Machine, tmp_path: Path, name: str
) -> None:
    python = installed(tmp_path / name / "venv")
    before = listing(machine.home)
    for option in ("--dry-run", "--check"):
        ran = setup(machine, python, option)
        assert set(conflicts(ran)) == PLACES[name]
        assert ran.code == (1 if PLACES[name] or option == "--check" else 0)
    assert listing(machine.home) == before
    ran = setup(machine, python)
    assert (ran.code, ran.document["status"]) == ((1, "conflict") if PLACES[name] else (0, "ok"))
    assert ran.data["counts"]["conflicts"] == len(ran.document["problems"]) == len(PLACES[name])
    for agent, (reason, hint) in conflicts(ran).items():
        assert f"would replace '{name}' in '{tmp_path}/{name}/venv/bin/python3'" in reason
        assert f"tfx setup --agent {agent} --mcp-transport http" in hint
    entries = {
        row["agent"] for row in ran.data["actions"]
        if row["target"].endswith("tfx-hub") and row["status"] == "changed"
    }  # fmt: skip
    assert entries == {"claude", "codex", "gemini", "opencode"} - PLACES[name]
    assert (machine.home / ".claude/skills/tfx-setup/SKILL.md").is_file()
    again = setup(machine, python)
    assert (again.code, again.data["counts"]["changed"]) == (ran.code, 0)


def test_s21_what_the_message_says_helps(machine: Machine, tmp_path: Path) -> None:
    python = installed(tmp_path / "${USER}" / "venv")
    assert setup(machine, python).code == 1
    for agent in PLACES["${USER}"]:
        assert setup(machine, python, "--agent", agent, "--mcp-transport", "http").code == 0
    assert setup(machine, python).code == 0


def test_s21_an_entry_that_stands_already_is_left_as_it_is(
    machine: Machine, tmp_path: Path
) -> None:
    assert machine.setup().code == 0
    before = (machine.home / ".claude.json").read_bytes()
    ran = setup(machine, installed(tmp_path / "${USER}" / "venv"))
    assert ran.code == 1
    assert set(conflicts(ran)) == PLACES["${USER}"]
    assert (machine.home / ".claude.json").read_bytes() == before
    assert os.fsencode(sys.prefix) in before
