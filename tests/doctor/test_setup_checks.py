"""`self`, `config`, `assets.manifest`, `setup.*`, `perm`, `cache`, and the machine's checks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, commands, texts
from tests.support import bare_env
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.doctor.checks import itself, machine
from tfx.doctor.checks.assets import lock_finding
from tfx.doctor.model import Status

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


# perm, cache ------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_d114_d173_files_of_another_user_get_a_chown_line(clinic: Clinic) -> None:
    os.chown(clinic.home / ".local/state/tfx/setup/manifest.json", 12345, 12345)
    found = clinic.rows("perm")["~/.local/state/tfx"]
    assert found.status in {Status.WARN, Status.FAIL}
    assert commands(found) == ['sudo chown -R "$(id -u):$(id -g)" ~/.local/state/tfx']
    assert (clinic.home / ".local/state/tfx/setup/manifest.json").stat().st_uid == 12345


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


# machine ----------------------------------------------------------------------------------


def test_d111_clock_skew_and_a_log_from_the_future() -> None:
    assert machine.judge_skew(0.1).status is Status.OK
    assert machine.judge_skew(-3600).status is Status.WARN
    assert machine.judge_log(None, 1000).status is Status.OK
    assert machine.judge_log(1_000_000, 1000).status is Status.WARN


def test_d112_a_full_or_noexec_temporary_folder() -> None:
    assert machine.judge_temporary("/tmp", 10**10, noexec=False).status is Status.OK  # noqa: S108
    assert machine.judge_temporary("/tmp", 10**10, noexec=True).status is Status.WARN  # noqa: S108
    assert machine.judge_temporary("/tmp", 1024, noexec=False).status is Status.WARN  # noqa: S108


def test_d112_what_is_there_is_named(clinic: Clinic) -> None:
    rows = clinic.rows("runtime")
    assert rows["python"].status is Status.OK
    assert {"node", "git", "tmux", "ulimit -n", "TMPDIR"} <= set(rows)


def test_d112_few_open_files_are_a_warning(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    ran = subprocess.run(
        ["bash", "-c", 'ulimit -n 256; exec "$@"', "_", os.sys.executable, "-m", "tfx", "doctor",  # type: ignore[attr-defined]
         "runtime", "--json"],
        env=clinic.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = {row["target"]: row for row in json.loads(ran.stdout)["data"]["rows"]}
    assert rows["ulimit -n"]["status"] == "warn"


def test_d113_a_c_locale_is_told(home: Path) -> None:
    from tfx.doctor.checks.machine import locale  # noqa: PLC0415
    from tfx.doctor.facts import Facts  # noqa: PLC0415
    from tfx.doctor.options import Options  # noqa: PLC0415

    def status(**env: str) -> Status:
        return next(locale(Facts(Paths.resolve(bare_env(home, **env)), Options()))).status

    assert status(LANG="C") in {Status.INFO, Status.WARN}
    assert status(LANG="C.UTF-8") is Status.OK
    assert status(LC_ALL="de_DE.utf8") is Status.OK


def test_d116_the_network_is_asked_on_request_and_never_worse_than_a_warning(
    tmp_path: Path,
) -> None:
    clinic = Clinic(tmp_path)
    assert clinic.doctor("machine", "--skip", "runtime").code == 0
    ran = clinic.doctor("network")
    assert ran.code == 0
    assert {row["status"] for row in ran.data["rows"]} <= {"ok", "info", "warn"}
