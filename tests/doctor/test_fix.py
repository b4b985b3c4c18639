"""`--fix`: plans by class, one run in setup's journal, the state after decides (D-118 … D-132)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.doctor.test_setup_checks import interrupt, make_orphan, make_stale
from tests.doctor.world import Clinic, on_terminal, row
from tests.support import Ran, listing
from tfx.core import locks
from tfx.core.files import digest
from tfx.doctor.examine import examine
from tfx.doctor.model import FixClass, Question
from tfx.doctor.options import Options
from tfx.doctor.report import DoctorData

SCRIPT = ".claude/scripts/tfx-route.sh"
SKILL = ".claude/skills/tfx-setup/SKILL.md"
HUD = ".claude/hud/tfx-hud.py"
SETTINGS = ".claude/settings.json"


def fix(clinic: Clinic, *words: str) -> Ran:
    return clinic.doctor("setup", "agents", "hub", "--fix", "--yes", *words)


def outcomes(ran: Ran) -> dict[str, str]:
    return {each["target"]: each["outcome"] for each in ran.data["fixes"]}


def test_d118_d126_a_stale_asset_is_updated_and_undone(clinic: Clinic) -> None:
    old = make_stale(clinic, SCRIPT)
    ran = fix(clinic)
    assert ran.code == 0, ran.out
    assert outcomes(ran) == {f"~/{SCRIPT}": "applied"}
    assert row(ran, "assets.manifest", "assets")["status"] == "ok"
    assert (clinic.home / SCRIPT).read_bytes() != old
    runs = clinic.setup("--runs").data["runs"]
    assert (runs[0]["run"], runs[0]["operation"]) == (ran.data["run"], "doctor --fix")
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert (clinic.home / SCRIPT).read_bytes() == old


def test_a_lost_exec_bit_is_set_again_and_undone(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).chmod(0o644)
    before = (clinic.home / SCRIPT).read_bytes()
    assert clinic.doctor("assets.manifest").code == 1
    ran = fix(clinic)
    assert (ran.code, outcomes(ran)) == (0, {f"~/{SCRIPT}": "applied"})
    assert (clinic.home / SCRIPT).stat().st_mode & 0o777 == 0o755
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert (clinic.home / SCRIPT).stat().st_mode & 0o777 == 0o644
    assert (clinic.home / SCRIPT).read_bytes() == before


def test_an_orphan_of_class_c_goes_after_a_yes_and_comes_back(clinic: Clinic) -> None:
    orphan = make_orphan(clinic)
    ran = fix(clinic)
    assert (ran.code, not orphan.exists()) == (0, True)
    assert ran.data["fixes"][0]["fix_class"] == "C"
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert orphan.read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("change", ["edit", "delete"])
def test_d129_k12_an_edit_is_not_overwritten_nor_a_deletion_recreated(
    clinic: Clinic, change: str
) -> None:
    target = clinic.home / SKILL
    if change == "edit":
        target.write_text("mine\n")
    else:
        target.unlink()
    before = listing(clinic.home)
    ran = fix(clinic)
    assert (ran.code, ran.data["fixes"], ran.data["run"]) == (0, [], None)
    told = row(ran, "assets.manifest", f"~/{SKILL}")
    option = "--take-new" if change == "edit" else "--restore"
    assert option in json.dumps(told["remediation"])
    assert listing(clinic.home) == before


def test_must_show_d123_a_hook_of_others_twice_or_to_nothing_is_explained_only(
    clinic: Clinic,
) -> None:
    settings = json.loads((clinic.home / SETTINGS).read_text())
    element = {"hooks": [{"type": "command", "command": "/no/such/file"}]}
    settings["hooks"] = {"Stop": [element, element]}
    clinic.write(SETTINGS, json.dumps(settings))
    before = listing(clinic.home)
    ran = fix(clinic)
    assert ran.code == 1
    told = [each["target"] for each in ran.data["rows"] if each["id"] == "settings.json"]
    assert f"~/{SETTINGS}:hooks.Stop[1]" in told
    assert f"~/{SETTINGS}:hooks.Stop[0].hooks[0]" in told
    assert listing(clinic.home) == before


def test_d124_an_unparsable_file_is_preserved_and_said(clinic: Clinic) -> None:
    clinic.write(SETTINGS, "{broken")
    ran = fix(clinic)
    assert ran.code == 1
    assert (clinic.home / SETTINGS).read_text() == "{broken"
    assert row(ran, "settings.json", f"~/{SETTINGS}")["status"] == "fail"


def test_d125_one_refusal_does_not_block_the_others(clinic: Clinic) -> None:
    clinic.write(SETTINGS, "{broken")
    (clinic.home / HUD).chmod(0o644)
    make_stale(clinic, SCRIPT)
    ran = fix(clinic)
    assert ran.code == 1
    assert outcomes(ran) == {f"~/{SCRIPT}": "applied", f"~/{HUD}": "applied"}


@pytest.mark.skipif(not Path("/usr/bin/chattr").exists(), reason="no chattr")
def test_d125_one_failure_does_not_block_the_others(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    (clinic.home / HUD).chmod(0o644)
    stuck = clinic.home / SCRIPT
    if subprocess.run(["chattr", "+i", stuck], capture_output=True, check=False).returncode:
        pytest.skip("the file system has no immutable flag")
    try:
        ran = fix(clinic)
    finally:
        subprocess.run(["chattr", "-i", stuck], check=True)
    assert outcomes(ran)[f"~/{HUD}"] == "applied"
    assert outcomes(ran)[f"~/{SCRIPT}"] in {"failed", "refused"}


def test_an_interrupted_setup_is_finished(clinic: Clinic) -> None:
    run = interrupt(clinic)
    ran = fix(clinic)
    assert (ran.code, outcomes(ran)) == (0, {run: "applied"})
    assert row(ran, "setup.journal", "runs")["status"] == "ok"


def test_d132_a_second_fix_plans_nothing(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    make_orphan(clinic)
    (clinic.home / HUD).chmod(0o644)
    assert len(fix(clinic).data["fixes"]) == 3
    before = listing(clinic.home)
    again = fix(clinic)
    assert (again.data["fixes"], again.data["run"]) == ([], None)
    assert listing(clinic.home) == before


def test_d5_d177_a_dry_run_lists_hashes_diff_and_reversibility_and_writes_nothing(
    clinic: Clinic,
) -> None:
    make_stale(clinic, SCRIPT)
    before = listing(clinic.home)
    ran = clinic.doctor("assets.manifest", "--fix", "--dry-run")
    assert listing(clinic.home) == before
    assert outcomes(ran) == {f"~/{SCRIPT}": "pending"}
    [action] = row(ran, "assets.manifest", f"~/{SCRIPT}")["fix"]["plan"]["actions"]
    assert list(action) == [
        *("kind", "reason", "target", "before", "after", "diff", "reversible"),
    ]
    assert action["before"]["sha256"] != action["after"]["sha256"]
    assert action["after"]["mode"] == "0755"
    assert "-# an older version" in action["diff"]
    assert action["reversible"] is True


def test_d6_k48_without_a_terminal_and_without_yes_it_is_a_dry_run(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    before = listing(clinic.home)
    ran = clinic.tfx("doctor", "assets.manifest", "--fix")
    assert ran.code == 0
    assert "pending: assets.manifest" in ran.out
    assert "to do this: tfx doctor --fix --yes" in ran.out
    assert listing(clinic.home) == before


def test_d5_the_plain_view_of_a_dry_run_shows_hashes_modes_and_the_diff(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    said = clinic.tfx("doctor", "assets.manifest", "--fix", "--dry-run").out
    assert re.search(rf"  update ~/{SCRIPT}: sha256 [0-9a-f]{{12}}, mode 0755 -> sha256", said)
    assert "    -# an older version" in said
    assert "to do this: tfx doctor --fix --yes" in said


@pytest.mark.parametrize("kind", ["drawn", "plain"])
def test_d4_d119_k48_on_a_terminal_the_plan_stands_above_the_question(
    clinic: Clinic, kind: str
) -> None:
    make_stale(clinic, SCRIPT)
    (clinic.home / HUD).chmod(0o644)
    words = ("--ascii",) if kind == "plain" else ()
    said = on_terminal(clinic, "assets.manifest", "--fix", *words, answer=b"n\n")
    above, _, below = said.partition("[y/N]")
    assert "Nothing here is for --fix to repair" not in said
    assert "Nothing was written; to do this" not in above
    assert re.search(rf"update ~/{SCRIPT}: sha256 [0-9a-f]{{12}}, mode 0755 -> sha256", above)
    assert "-# an older version" in above
    assert re.search(r"mode 0644 -> sha256 [0-9a-f]{12}, mode 0755", above)
    assert "declined" in below


def test_d118_d177_an_interrupted_run_shows_its_journal_and_how_each_change_will_end(
    clinic: Clinic,
) -> None:
    run = interrupt(clinic)
    ran = clinic.doctor("setup.journal", "--fix", "--dry-run")
    [action] = row(ran, "setup.journal", run)["fix"]["plan"]["actions"]
    journal = clinic.home / ".local/state/tfx/setup/journal" / f"{run}.jsonl"
    assert action["before"] == {"sha256": digest(journal.read_bytes()), "mode": "0600"}


def test_d6_nothing_to_repair_is_said(clinic: Clinic) -> None:
    said = clinic.tfx("doctor", "assets.manifest", "--fix", "--yes").out
    assert "Nothing here is for --fix to repair." in said
    assert "to repair" not in clinic.tfx("doctor", "assets.manifest").out


def asked(clinic: Clinic, answers: Mapping[FixClass, bool]) -> tuple[list[Question], DoctorData]:
    heard: list[Question] = []

    def ask(_: DoctorData, question: Question) -> bool:
        heard.append(question)
        return answers[question.fix_class]

    options = Options(checks=("assets.manifest",), fix=True)
    result = examine(clinic.paths, options, say=lambda _: None, ask=ask)
    return heard, result.data


def test_d4_d119_k48_class_a_is_asked_once_and_each_c_alone(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    (clinic.home / HUD).chmod(0o644)
    orphan = make_orphan(clinic)
    heard, data = asked(clinic, {FixClass.AUTO: True, FixClass.CONSENT: False})
    assert [(q.fix_class, len(q.lines)) for q in heard] == [
        (FixClass.AUTO, 2),
        (FixClass.CONSENT, 1),
    ]
    told = {each.target: each.outcome for each in data.fixes}
    assert told == {
        f"~/{SCRIPT}": "applied",
        f"~/{HUD}": "applied",
        "~/.claude/scripts/old.sh": "declined",
    }
    assert orphan.exists()


def test_d15_a_declined_fix_leaves_its_finding(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).chmod(0o644)
    _, data = asked(clinic, {FixClass.AUTO: False, FixClass.CONSENT: False})
    assert [each.outcome for each in data.fixes] == ["declined"]
    assert data.counts["fail"] == 1


def test_d120_d167_an_edit_while_the_question_is_open_is_kept(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    (clinic.home / HUD).chmod(0o644)

    def ask(_: DoctorData, __: Question) -> bool:
        (clinic.home / SCRIPT).write_text("mine, just now\n")
        return True

    options = Options(checks=("assets.manifest",), fix=True)
    data = examine(clinic.paths, options, say=lambda _: None, ask=ask).data
    assert (clinic.home / SCRIPT).read_text() == "mine, just now\n"
    told = {each.target: each.outcome for each in data.fixes}
    assert told == {f"~/{SCRIPT}": "refused", f"~/{HUD}": "applied"}


def test_d121_the_backup_is_in_the_state_never_beside_the_file(clinic: Clinic) -> None:
    old = make_stale(clinic, SCRIPT)
    beside = {path.name for path in (clinic.home / SCRIPT).parent.iterdir()}
    ran = fix(clinic)
    assert {path.name for path in (clinic.home / SCRIPT).parent.iterdir()} == beside
    kept = clinic.home / ".local/state/tfx/setup/backup" / ran.data["run"]
    assert [path.read_bytes() for path in kept.iterdir()] == [old]


def test_d122_links_stay_links(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    real = clinic.home / ".claude/scripts/real.sh"
    (clinic.home / SCRIPT).rename(real)
    (clinic.home / SCRIPT).symlink_to(real)
    ran = fix(clinic)
    assert (clinic.home / SCRIPT).is_symlink()
    assert ran.code == 0


def test_d117_d130_nothing_is_fixed_where_a_newer_tfx_wrote(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    manifest = clinic.home / ".local/state/tfx/setup/manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"tfx": "99.0"}))
    before = listing(clinic.home)
    ran = fix(clinic)
    assert ran.code == 1
    assert set(outcomes(ran).values()) == {"refused"}
    assert "99.0" in ran.data["fixes"][0]["reason"]
    assert listing(clinic.home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play sudo")
def test_d127_s103_under_sudo_with_a_foreign_home_every_fix_is_refused(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    before = listing(clinic.home)
    ran = clinic.doctor("assets.manifest", "--fix", "--yes", SUDO_USER="somebody")
    assert set(outcomes(ran).values()) == {"refused"}
    assert "sudo" in ran.data["fixes"][0]["reason"]
    assert row(ran, "assets.manifest", f"~/{SCRIPT}")["details"]["state"] == "stale"
    assert listing(clinic.home) == before
    assert clinic.doctor("--reset", SUDO_USER="somebody").code == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory away")
def test_d127_root_in_the_home_of_another_repairs_and_clears_nothing(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    cached = clinic.write(".cache/tfx/x", "x")
    os.chown(clinic.home, 1000, 1000)
    before = listing(clinic.home)
    ran = clinic.doctor("assets.manifest", "--fix", "--yes")
    assert set(outcomes(ran).values()) == {"refused"}
    assert "belongs to uid 1000" in ran.data["fixes"][0]["reason"]
    assert row(ran, "assets.manifest", f"~/{SCRIPT}")["details"]["state"] == "stale"
    assert clinic.doctor("--reset").code == 1
    assert cached.exists()
    assert listing(clinic.home) == before


def test_d128_rc_files_are_never_written(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude")
    clinic.write(".bashrc", f'export PATH="{clinic.bin}:$PATH"\n')
    clinic.setup()
    before = listing(clinic.home)
    ran = clinic.doctor("--fix", "--yes")
    assert row(ran, "cli.matrix", "claude")["fix"] == {"class": "M"}
    assert listing(clinic.home) == before


def test_d105_d123_our_stale_entry_is_written_anew_and_undone(clinic: Clinic) -> None:
    clinic.write(".config/tfx/config.toml", "[hub]\nport = 28001\n")
    assert clinic.setup("--mcp-transport", "http").code == 0
    before = {name: (clinic.home / name).read_bytes() for name in (".claude.json",)}
    clinic.write(".config/tfx/config.toml", "[hub]\nport = 28002\n")
    told = row(clinic.doctor("mcp.registration"), "mcp.registration", "claude")
    assert told["fix"] == {"class": "A"}
    ran = clinic.doctor("mcp.registration", "--fix", "--yes")
    assert outcomes(ran) == {"claude": "applied", "codex": "applied"}, ran.out
    assert b"28002" in (clinic.home / ".claude.json").read_bytes()
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    for name, data in before.items():
        assert (clinic.home / name).read_bytes() == data


def test_s22_no_token_in_a_plan(clinic: Clinic) -> None:
    clinic.setup("--mcp-transport", "http")
    token = (clinic.home / ".local/state/tfx/hub/token").read_text().strip()
    clinic.write(".config/tfx/config.toml", "[hub]\nport = 28002\n")
    ran = clinic.doctor("mcp.registration", "--fix", "--dry-run")
    assert outcomes(ran)
    assert token not in ran.out


def test_d103_an_asset_of_an_agent_that_came_later_is_installed(clinic: Clinic) -> None:
    from tests.support import stand_in  # noqa: PLC0415

    stand_in(clinic.root / "agents", "copilot")
    clinic.env["COPILOT_HOME"] = str(clinic.home / "copilot")
    ran = fix(clinic)
    assert ran.code == 0
    assert (clinic.home / "copilot/skills/tfx-setup/SKILL.md").is_file()


def test_d131_an_interrupt_between_two_fixes_keeps_the_first_journaled(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    (clinic.home / HUD).chmod(0o644)
    repaired: list[str] = []

    def say(text: str) -> None:
        if text.startswith("repairing"):
            repaired.append(text.rpartition("/")[2])
        if len(repaired) == 2:
            raise KeyboardInterrupt

    options = Options(checks=("assets.manifest",), fix=True, yes=True)
    with pytest.raises(KeyboardInterrupt):
        examine(clinic.paths, options, say=say)
    assert not list(clinic.home.rglob(".tfx-*"))
    assert not locks.is_held(clinic.home / ".local/state/tfx/setup/lock")
    assert clinic.doctor("setup.*").data["verdict"] == "ok"
    [run] = [r for r in clinic.setup("--runs").data["runs"] if "doctor" in r["operation"]]
    assert [Path(target).name for target in run["targets"]] == repaired[:1]
    assert clinic.setup("--undo", run["run"]).code == 0


def test_k48_on_a_terminal_it_asks_and_takes_no_for_an_answer(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    before = listing(clinic.home)
    assert "declined" in on_terminal(clinic, "assets.manifest", "--fix", answer=b"n\n")
    assert listing(clinic.home) == before
    assert "applied" in on_terminal(clinic, "assets.manifest", "--fix", answer=b"y\n")
    assert listing(clinic.home) != before
