"""`self`, `config`, `assets.manifest`, `setup.*`, `perm` and `cache`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, commands, texts
from tfx.core import locks
from tfx.doctor.checks import itself
from tfx.doctor.checks.assets import lock_finding
from tfx.doctor.model import Status
from tfx.doctor.modes import writers
from tfx.plan import journal
from tfx.plan.disk import Spare
from tfx.plan.state import StateDir

SCRIPT = ".claude/scripts/tfx-route.sh"
SKILL = ".claude/skills/tfx-setup/SKILL.md"


def state(clinic: Clinic, path: str) -> tuple[str, Status, str]:
    found = clinic.rows("assets.manifest")[f"~/{path}"]
    fix = found.fix or {}
    return str(found.details["state"]), found.status, str(fix.get("class"))


def test_d179_pristine(clinic: Clinic) -> None:
    rows = clinic.rows("assets.manifest")
    assert {row.status for row in rows.values()} == {Status.OK}


def test_d103_d179_edited_is_left_with_diff_and_command(clinic: Clinic) -> None:
    with (clinic.home / SCRIPT).open("a") as file:
        file.write("# mine\n")
    assert state(clinic, SCRIPT) == ("edited", Status.WARN, "M")
    found = clinic.rows("assets.manifest")[f"~/{SCRIPT}"]
    assert "-(a line of yours)" in str(found.details["diff"])
    assert "# mine" not in str(found.details["diff"])
    yours = clinic.rows("assets.manifest", shows_yours=True)[f"~/{SCRIPT}"]
    assert "-# mine" in str(yours.details["diff"])
    assert commands(found) == ["tfx setup --take-new", "tfx setup --keep-mine"]


def test_d103_crlf_in_a_script_is_named(clinic: Clinic) -> None:
    script = clinic.home / SCRIPT
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    found = clinic.rows("assets.manifest")[f"~/{SCRIPT}"]
    assert "CRLF" in found.summary
    assert found.fix == {"class": "M"}


def test_d103_crlf_where_python_is_named_stops_nothing(clinic: Clinic) -> None:
    hud = clinic.home / ".claude/hud/tfx-hud.py"
    hud.write_bytes(hud.read_bytes().replace(b"\n", b"\r\n"))
    assert "cannot run" not in clinic.rows("assets.manifest")["~/.claude/hud/tfx-hud.py"].summary


def test_d103_d179_deleted_is_left_with_restore(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).unlink()
    assert state(clinic, SCRIPT) == ("deleted", Status.WARN, "M")
    assert "tfx setup --restore" in commands(clinic.rows("assets.manifest")[f"~/{SCRIPT}"])


def test_d103_d179_a_lost_exec_bit_is_pristine_and_class_a(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).chmod(0o644)
    assert state(clinic, SCRIPT) == ("pristine", Status.FAIL, "A")


def make_stale(clinic: Clinic, path: str) -> bytes:
    """Make a file what an older tfx would have written, recorded as such; return its bytes."""
    old = b"#!/bin/sh\n# an older version\n"
    target = clinic.home / path
    target.write_bytes(old)
    from tfx.core.files import digest  # noqa: PLC0415

    manifest = clinic.home / ".local/state/tfx/setup/manifest.json"
    document = json.loads(manifest.read_text())
    for record in document["files"]:
        if path.endswith(record["path"]):
            record["sha256"] = digest(old)
    manifest.write_text(json.dumps(document))
    return old


def test_d103_d179_stale_is_class_a(clinic: Clinic) -> None:
    make_stale(clinic, SCRIPT)
    assert state(clinic, SCRIPT) == ("stale", Status.WARN, "A")


def make_orphan(clinic: Clinic) -> Path:
    """A file that an older tfx installed and this one no longer has."""
    from tfx.core.files import digest  # noqa: PLC0415

    orphan = clinic.write(".claude/scripts/old.sh", "#!/bin/sh\n", 0o755)
    manifest = clinic.home / ".local/state/tfx/setup/manifest.json"
    document = json.loads(manifest.read_text())
    record = dict(next(r for r in document["files"] if r["path"] == "tfx-route.sh"))
    record |= {"path": "old.sh", "asset": "scripts/old.sh", "sha256": digest(b"#!/bin/sh\n")}
    document["files"].append(record)
    manifest.write_text(json.dumps(document))
    return orphan


def test_d103_an_orphan_of_an_old_version_is_class_c(clinic: Clinic) -> None:
    make_orphan(clinic)
    assert state(clinic, ".claude/scripts/old.sh") == ("stale", Status.WARN, "C")


def test_d103_d179_foreign_is_left_and_triflux_is_named(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    clinic.write(SCRIPT, "#!/bin/sh\n# triflux\n", 0o755)
    clinic.setup()
    assert state(clinic, SCRIPT) == ("foreign", Status.WARN, "M")
    assert "triflux" in clinic.rows("assets.manifest")[f"~/{SCRIPT}"].summary


def test_d103_kept_by_keep_mine_is_information(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).write_text("mine")
    clinic.setup("--keep-mine")
    assert clinic.rows("assets.manifest")[f"~/{SCRIPT}"].status is Status.INFO


def test_a_machine_without_setup_says_so(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    found = clinic.rows("assets.manifest")["assets"]
    assert (found.status, commands(found)) == (Status.INFO, ["tfx setup"])


def test_k9_an_unreadable_manifest_fails_with_the_way_out(clinic: Clinic) -> None:
    clinic.write(".local/state/tfx/setup/manifest.json", "{broken")
    found = clinic.rows("assets.manifest")["manifest"]
    assert found.status is Status.FAIL
    assert "put" in texts(found)


# journal, lock, backups -------------------------------------------------------------------


def interrupt(clinic: Clinic) -> str:
    """Take the last line off the newest journal: what a kill at the end leaves."""
    journal = max((clinic.home / ".local/state/tfx/setup/journal").iterdir())
    data = journal.read_bytes()
    journal.write_bytes(data[: data.rstrip().rfind(b"\n") + 1])
    return journal.stem


def test_s43_an_interrupted_run_is_a_warning_of_class_a(clinic: Clinic) -> None:
    run = interrupt(clinic)
    found = clinic.rows("setup.journal")[run]
    assert found.status is Status.WARN
    assert found.fix == {"class": "A"}


def test_s46_a_held_lock_names_its_holder(clinic: Clinic) -> None:
    path = clinic.home / ".local/state/tfx/setup/lock"
    lock = locks.try_lock(path, "setup")
    assert lock is not None
    with lock:
        found = clinic.rows("setup.lock")["setup"]
    assert found.status is Status.WARN
    assert str(os.getpid()) in found.summary


def test_h10_a_stale_lock_holds_nothing_and_is_explained(clinic: Clinic) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    name = {"purpose": "setup", "pid": dead.pid, "start_token": "1", "boot_id": "x", "since_ms": 1}
    clinic.write(".local/state/tfx/setup/lock", json.dumps(name))
    found = clinic.rows("setup.lock")["setup"]
    assert found.status is Status.OK
    assert "left its name" in found.summary


def test_a_lock_that_was_never_taken_is_free() -> None:
    assert lock_finding(None, held=False, there=False).status is Status.OK


def test_a_backup_that_is_gone_is_told(clinic: Clinic) -> None:
    (clinic.home / SCRIPT).write_text("mine")
    run = clinic.setup("--take-new").data["run"]
    for path in (clinic.home / ".local/state/tfx/setup/backup" / run).iterdir():
        path.unlink()
    statuses = {row.status for row in clinic.rows("setup.backups").values()}
    assert statuses == {Status.WARN}


# self, config -----------------------------------------------------------------------------


def test_d117_state_of_a_newer_tfx_fails(clinic: Clinic) -> None:
    manifest = clinic.home / ".local/state/tfx/setup/manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(document | {"tfx": "99.0"}))
    found = clinic.rows("self")["state"]
    assert (found.status, commands(found)) == (Status.FAIL, ["tfx update"])
    manifest.write_text(json.dumps(document | {"schema": 99}))
    assert clinic.rows("self")["state"].status is Status.FAIL


def test_d117_another_tfx_first_on_path_is_a_warning_that_names_its_owner(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path).everywhere()
    package = clinic.root / "agents/lib/node_modules/triflux"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "triflux", "version": "1"}')
    (package / "bin/tfx.mjs").write_text("#!/usr/bin/env node\n")
    (package / "bin/tfx.mjs").chmod(0o755)
    (clinic.bin / "tfx").symlink_to(package / "bin/tfx.mjs")
    rows = clinic.rows("self")
    found = next(row for target, row in rows.items() if target.endswith("/bin/tfx"))
    assert found.status is Status.WARN
    assert "triflux" in found.summary


def test_d117_tensorflow_extended_on_path_is_named(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path).everywhere()
    clinic.bin.joinpath("tfx").write_text("#!/bin/sh\n# from tfx.tools.cli.cli_main import x\n")
    clinic.bin.joinpath("tfx").chmod(0o755)
    assert "TensorFlow Extended" in " ".join(r.summary for r in clinic.rows("self").values())


def test_d117_tensorflow_extended_in_the_same_environment_fails() -> None:
    clean = itself.judge_environment(["tfx_cli-0.1.0.dist-info"])
    shared = itself.judge_environment(["tfx-1.15.0.dist-info", "tfx_cli-0.1.0.dist-info"])
    assert (clean.status, shared.status) == (Status.OK, Status.FAIL)


def test_k19_a_wrong_setting_fails_with_its_line(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".config/tfx/config.toml", "[hub]\n\nprot = 1\n")
    found = clinic.rows("config")["~/.config/tfx/config.toml:hub.prot"]
    assert found.status is Status.FAIL
    assert (found.details["line"], "did you mean hub.port?" in texts(found)) == (3, True)


def test_d14_wrong_settings_are_rows_of_every_check_that_needs_them(clinic: Clinic) -> None:
    clinic.write(".config/tfx/config.toml", "broken\n")
    ran = clinic.doctor()
    assert ran.code == 1
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("name", "mode", "was", "who"),
    [
        (".claude/scripts/tfx-route.sh", 0o777, "0755", "everybody can change what agents run"),
        (".claude/hud/tfx-hud.py", 0o757, "0755", "everybody can change what agents run"),
        (".claude/skills/tfx-setup/SKILL.md", 0o666, "0644", "everybody can change what agents"),
        (".claude/skills/tfx-setup/SKILL.md", 0o600, "0644", "you changed its mode to 0600"),
    ],
)
def test_d103_a_mode_that_alone_differs_is_named(
    clinic: Clinic, name: str, mode: int, was: str, who: str
) -> None:
    (clinic.home / name).chmod(mode)
    row = clinic.rows("assets.manifest")[f"~/{name}"]
    assert row.summary.startswith(who)
    told = row.details.get("message", row.summary)
    assert f"you changed its mode to {mode:04o}; it was {was}" in told
    closing = [f"chmod {was[1:]} ~/{name}"] if who.startswith("every") else []
    assert commands(row)[: len(closing)] == closing
    assert row.fix == {"class": "M"}
    assert "mode" in clinic.setup("--check").out


def test_d103_settings_that_others_may_write_are_a_warning(clinic: Clinic) -> None:
    (clinic.home / ".claude/settings.json").chmod(0o666)
    (clinic.home / ".claude").chmod(0o777)
    script = clinic.write("hook.sh", "#!/bin/sh\n", 0o777)
    clinic.write(".claude.json", json.dumps({"mcpServers": {}}), 0o600)
    settings = json.loads((clinic.home / ".claude/settings.json").read_text())
    settings["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": str(script)}]}]
    (clinic.home / ".claude/settings.json").write_text(json.dumps(settings))
    found = clinic.rows("settings.json")
    for target, closing in (
        ("~/.claude/settings.json (mode)", "chmod go-w ~/.claude/settings.json"),
        ("~/.claude (mode)", "chmod go-w ~/.claude"),
        ("~/.claude/settings.json:hooks.Stop[0].hooks[0] (mode)", "chmod go-w ~/hook.sh"),
    ):
        row = found[target]
        assert (row.status, commands(row)) == (Status.WARN, [closing])


def test_d103_d171_the_private_group_of_a_user_is_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.touch()
    file.chmod(0o664)
    assert writers(file.stat()) == ""
    values = list(file.stat())
    values[5] = 54321  # a group without a name
    assert writers(os.stat_result(values)) == "its group"


def test_s108_a_home_that_was_moved_after_setup_is_told(clinic: Clinic) -> None:
    assert "home" not in clinic.rows("assets.manifest")
    old = clinic.home
    new = old.with_name("new-home")
    old.rename(new)
    clinic.home, clinic.env["HOME"] = new, str(new)
    clinic.everywhere()
    row = clinic.rows("assets.manifest")["home"]
    assert (row.status, commands(row)) == (Status.WARN, ["tfx setup"])
    assert str(old) in row.details.get("message", row.summary)


# perm, cache ------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_d114_d173_files_of_another_user_get_a_chown_line(clinic: Clinic) -> None:
    os.chown(clinic.home / ".local/state/tfx/setup/manifest.json", 12345, 12345)
    found = clinic.rows("perm")["~/.local/state/tfx"]
    assert found.status in {Status.WARN, Status.FAIL}
    assert commands(found) == ['sudo chown -R "$(id -u):$(id -g)" ~/.local/state/tfx']
    assert (clinic.home / ".local/state/tfx/setup/manifest.json").stat().st_uid == 12345


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".claude.json", ".claude/settings.json", ".codex", ".claude"])
def test_d114_d173_the_agents_files_that_tfx_writes_count_too(clinic: Clinic, name: str) -> None:
    assert clinic.setup("--mcp-transport", "stdio").code == 0
    os.chown(clinic.home / name, 12345, 12345)
    found = clinic.rows("perm")
    assert set(found) == {f"~/{name}"}
    option = "-R " if (clinic.home / name).is_dir() else ""
    assert commands(found[f"~/{name}"]) == [f'sudo chown {option}"$(id -u):$(id -g)" ~/{name}']


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_d114_a_file_behind_a_link_counts_and_one_outside_the_home_alone(clinic: Clinic) -> None:
    outside = clinic.root / "dotfiles/settings.json"
    outside.parent.mkdir()
    (clinic.home / ".claude/settings.json").rename(outside)
    (clinic.home / ".claude/settings.json").symlink_to(outside)
    os.chown(outside.parent, 12345, 12345)
    assert {row.status for row in clinic.rows("perm").values()} == {Status.OK}
    os.chown(outside, 12345, 12345)
    assert set(clinic.rows("perm")) == {"~/.claude/settings.json"}


def test_d114_own_files_are_fine(clinic: Clinic) -> None:
    assert {row.status for row in clinic.rows("perm").values()} == {Status.OK}


def test_d114_a_place_where_nothing_can_be_written_fails(clinic: Clinic) -> None:
    clinic.write("disk", "a file where a directory belongs")
    clinic.env["XDG_CACHE_HOME"] = str(clinic.home / "disk/cache")
    found = clinic.rows("perm")["~/disk"]
    assert found.status is Status.FAIL
    assert found.details["places"] == ["~/disk/cache/tfx"]
    assert commands(found) == ["ls -ld ~/disk"]


def test_d115_only_what_the_journal_names_is_a_leftover(clinic: Clinic) -> None:
    clinic.write(".claude/.tfx-mine.new", "mine")
    assert {row.status for row in clinic.rows("cache").values()} == {Status.OK}


def test_d115_a_log_over_the_limit_is_told(clinic: Clinic) -> None:
    log = clinic.write(".local/state/tfx/hub/hub.log", b"", 0o600)
    with log.open("r+b") as file:
        file.truncate(600 * 1024 * 1024)
    row = clinic.rows("cache")["~/.local/state/tfx/hub/hub.log"]
    assert (row.status, "600 MiB" in row.summary) == (Status.WARN, True)
    assert log.stat().st_size == 600 * 1024 * 1024


def test_d115_what_a_cut_off_write_left_is_named_by_the_journal(clinic: Clinic) -> None:
    run = interrupt(clinic)
    intent = journal.read(StateDir(clinic.paths.setup_dir).journal(run)).intents[-1]
    spare = Spare.beside(intent.target, run, intent.number).fresh
    spare.write_bytes(b"half")
    row = clinic.rows("cache")[clinic.paths.display(spare)]
    assert (row.status, commands(row)) == (Status.WARN, ["tfx doctor setup.journal --fix"])
    assert spare.read_bytes() == b"half"


def test_d115_many_crash_logs_are_information(clinic: Clinic) -> None:
    for number in range(21):
        clinic.write(f".local/state/tfx/crash/{number}.log", "x", 0o600)
    row = clinic.rows("cache")["crash logs"]
    assert (row.status, row.details["count"]) == (Status.INFO, 21)
    assert commands(row) == ["ls ~/.local/state/tfx/crash"]


def test_d103_what_is_right_but_not_recorded_says_so(clinic: Clinic) -> None:
    place = clinic.paths.state_dir / "setup/manifest.json"
    document = json.loads(place.read_bytes())
    lost = document["files"].pop()
    place.write_text(json.dumps(document))
    [found] = (
        each for each in clinic.rows("assets.manifest").values() if lost["path"] in each.target
    )
    assert found.status is Status.INFO
    assert "not recorded" in found.summary
    assert found.remediation[0].text == "record it"
