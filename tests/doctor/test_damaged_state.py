"""State of setup that cannot be read: said as the failure it is, and in nobody's way (D-125)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, commands, row

STATE = ".local/state/tfx/setup"
CREDENTIAL = ".local/state/tfx/hub/token"


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path, "claude").everywhere()
    assert made.setup("--yes").code == 0
    token = made.write(CREDENTIAL, "x" * 43)
    token.chmod(0o644)
    return made


def damage(clinic: Clinic, what: str) -> tuple[str, str]:
    """Damage the manifest or a journal; return the check and target that tell of it."""
    if what == "manifest":
        clinic.write(f"{STATE}/manifest.json", "{")
        return "assets.manifest", "manifest"
    run = "000009-20260101T000000Z"
    clinic.write(f"{STATE}/journal/{run}.jsonl", "garbage\n")
    return "setup.journal", run


@pytest.mark.parametrize("what", ["manifest", "journal"])
def test_d125_k9_damaged_state_fails_as_setup_does_and_its_remedy_works(
    clinic: Clinic, what: str
) -> None:
    check, target = damage(clinic, what)
    assert clinic.setup("--yes").code == 5
    ran = clinic.doctor("setup")
    told = row(ran, check, target)
    assert (ran.code, told["status"]) == (1, "fail")
    assert "cannot" in told["summary"]
    assert "next writing run finishes" not in ran.out
    [line] = commands(clinic.rows(check)[target])
    subprocess.run(["sh", "-c", line], env={"HOME": str(clinic.home)}, check=True)
    assert clinic.setup("--yes").code == 0
    assert clinic.doctor("setup").code == 0


@pytest.mark.parametrize("what", ["manifest", "journal"])
def test_d125_k9_a_repair_that_needs_neither_manifest_nor_journal_is_made_all_the_same(
    clinic: Clinic, what: str
) -> None:
    damage(clinic, what)
    state = clinic.write(".local/state/tfx/hub/state.json", '{"format": 1, "pi')
    (clinic.home / ".claude/hud/tfx-hud.py").chmod(0o644)
    kept = (clinic.home / STATE / "manifest.json").read_bytes()
    ran = clinic.doctor("setup", "hub", "--fix", "--yes")
    told = {(each["id"], each["outcome"]) for each in ran.data["fixes"]}
    assert {("hub.tokens", "applied"), ("hub.pid", "applied")} <= told
    assert (clinic.home / CREDENTIAL).stat().st_mode & 0o777 == 0o600
    assert not state.exists()
    assert (clinic.home / STATE / "manifest.json").read_bytes() == kept
    damaged = clinic.rows("setup.journal" if what == "journal" else "assets.manifest")
    for line in (line for found in damaged.values() for line in commands(found)):
        subprocess.run(["sh", "-c", line], env={"HOME": str(clinic.home)}, check=True)
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert (clinic.home / CREDENTIAL).stat().st_mode & 0o777 == 0o644
    assert state.exists()


def test_d125_a_repair_that_needs_the_damaged_part_is_refused_with_the_reason(
    clinic: Clinic,
) -> None:
    run = max((clinic.home / STATE / "journal").iterdir())
    run.write_bytes(run.read_bytes().rpartition(b"\n{")[0] + b"\n")  # interrupted, and readable
    damage(clinic, "journal")
    ran = clinic.doctor("setup.journal", "hub.tokens", "--fix", "--yes")
    told = {each["id"]: each for each in ran.data["fixes"]}
    assert told["setup.journal"]["outcome"] == "refused"
    assert "cannot be read" in told["setup.journal"]["reason"]
    assert told["hub.tokens"]["outcome"] == "applied"


@pytest.mark.parametrize("place", ["backup", "journal", "base", "staged"])
def test_a_stray_file_among_tfxs_own_breaks_no_check_and_no_setup(
    clinic: Clinic, place: str
) -> None:
    stray = clinic.write(f"{STATE}/{place}/.DS_Store", "x")
    ran = clinic.doctor("setup")
    assert "this check broke" not in ran.out
    assert row(ran, "setup.backups", "backups")["status"] == "ok"
    for words in ((), ("--remove",), ("--runs",)):
        done = clinic.setup("--yes", *words) if words != ("--runs",) else clinic.setup(*words)
        assert done.code == 0, done.out
    assert place == "staged" or stray.exists()
