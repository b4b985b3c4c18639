"""Everything that `--fix` may find, in one HOME: each fixed or explained, and all of it undone."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.doctor.test_fix import HUD, SCRIPT, SETTINGS, SKILL
from tests.doctor.test_setup_checks import interrupt, make_orphan, make_stale
from tests.doctor.world import Clinic, by_target, row
from tests.hub.running import free_port, start
from tests.support import listing

EDITED = ".claude/skills/tfx-doctor/SKILL.md"
TOKEN = ".local/state/tfx/hub/token"  # noqa: S105  (a path)
LOCK = ".local/state/tfx/setup/lock"
STATE = ".local/state/tfx/hub/state.json"


@pytest.fixture
def broken(clinic: Clinic) -> Clinic:
    """A machine with a fault of each kind; its hub was killed."""
    clinic.env["TFX_HUB_PORT"] = str(free_port())
    clinic.write(".config/tfx/config.toml", f"[hub]\nport = {clinic.env['TFX_HUB_PORT']}\n")
    assert clinic.setup("--mcp-transport", "http").code == 0
    hub = start(clinic.home, clinic.env)
    hub.kill()
    hub.files.token.chmod(0o644)
    make_stale(clinic, SCRIPT)
    make_orphan(clinic)
    (clinic.home / HUD).chmod(0o644)
    with (clinic.home / EDITED).open("a") as file:
        file.write("mine\n")
    (clinic.home / SKILL).unlink()
    settings = json.loads((clinic.home / SETTINGS).read_text())
    settings["hooks"]["SessionStart"] *= 2
    settings["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "/no/such/file"}]}]
    clinic.write(SETTINGS, json.dumps(settings))
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    name = {"purpose": "setup", "pid": dead.pid, "start_token": "1", "boot_id": "x", "since_ms": 1}
    clinic.write(LOCK, json.dumps(name))
    return clinic


def test_must_show_each_fault_is_fixed_or_explained_and_undo_brings_the_bytes_back(
    broken: Clinic,
) -> None:
    files, before = broken.users_files(), listing(broken.home)
    ran = broken.doctor("setup", "agents", "hub", "--fix", "--yes")
    assert {each["target"]: each["outcome"] for each in ran.data["fixes"]} == dict.fromkeys(
        (
            f"~/{SETTINGS}:hooks.SessionStart[1]",
            f"~/{SCRIPT}",
            "~/.claude/scripts/old.sh",
            f"~/{HUD}",
            f"~/{TOKEN}",
            f"~/{STATE}",
        ),
        "applied",
    )
    # the exit is that of the state after: the hook to nothing is not ours to change
    assert (ran.code, ran.data["counts"]["fail"]) == (1, 1)
    assert row(ran, "settings.json", f"~/{SETTINGS}:hooks.Stop[0].hooks[0]")["status"] == "fail"
    explained = by_target(ran, "assets.manifest")
    assert explained[f"~/{EDITED}"]["details"]["state"] == "edited"
    assert explained[f"~/{SKILL}"]["details"]["state"] == "deleted"
    dead = row(ran, "mcp.registration", "claude")
    assert (dead["status"], "nothing listens" in dead["summary"]) == ("warn", True)
    assert row(ran, "setup.lock", "setup")["status"] == "ok"

    undone = broken.setup("--undo", ran.data["run"])
    assert undone.code == 0, undone.out
    assert broken.users_files() == files
    after = listing(broken.home)
    for path in (TOKEN, STATE):
        (mode, _, data), (old_mode, _, old_data) = after[path], before[path]
        assert (mode, data) == (old_mode, old_data)


def test_d132_a_second_fix_of_it_all_plans_nothing(broken: Clinic) -> None:
    broken.doctor("setup", "agents", "hub", "--fix", "--yes")
    files = broken.users_files()
    again = broken.doctor("setup", "agents", "hub", "--fix", "--yes")
    assert (again.data["fixes"], again.data["run"]) == ([], None)
    assert broken.users_files() == files


def test_must_show_an_interrupted_run_among_it_is_finished_first(broken: Clinic) -> None:
    run = interrupt(broken)
    ran = broken.doctor("setup", "agents", "hub", "--fix", "--yes")
    told = {each["target"]: each["outcome"] for each in ran.data["fixes"]}
    assert told.pop(run) == "applied"
    assert set(told.values()) == {"applied"}
    assert row(ran, "setup.journal", "runs")["status"] == "ok"
