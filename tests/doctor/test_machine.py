"""`runtime`, `locale`, `time`, the temporary folder, limits, the network."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, commands
from tests.support import bare_env
from tfx.core.paths import Paths
from tfx.doctor.checks import machine, runtime
from tfx.doctor.model import Status


def test_d111_clock_skew_and_a_log_from_the_future() -> None:
    assert machine.judge_skew(0.1).status is Status.OK
    assert machine.judge_skew(-3600).status is Status.WARN
    assert machine.judge_log(None, 1000).status is Status.OK
    assert machine.judge_log(1_000_000, 1000).status is Status.WARN


def test_d112_a_full_or_noexec_temporary_folder() -> None:
    assert runtime.judge_temporary("/tmp", 10**10, noexec=False).status is Status.OK  # noqa: S108
    assert runtime.judge_temporary("/tmp", 10**10, noexec=True).status is Status.WARN  # noqa: S108
    assert runtime.judge_temporary("/tmp", 1024, noexec=False).status is Status.WARN  # noqa: S108


def test_d112_tmpdir_itself_is_looked_at(tmp_path: Path) -> None:
    def status(place: Path | str) -> Status:
        return runtime.temporary_folder({"TMPDIR": str(place)}, tmp_path).status

    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "gone", tmp_path / "file", tmp_path / "pipe", "tests", "gone"):
        assert status(place) is Status.FAIL
    assert status(tmp_path) is Status.OK
    assert runtime.temporary_folder({}, tmp_path).status is Status.OK


def test_d112_a_missing_tmpdir_is_a_row_of_the_command(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.env["TMPDIR"] = str(clinic.home / "no such")
    row = clinic.rows("runtime")["TMPDIR"]
    assert (row.status, commands(row)) == (Status.FAIL, ["mkdir -p ~/'no such'"])


@pytest.mark.parametrize(
    ("name", "says", "status", "word"),
    [
        ("git", "git version 2.4.12", Status.WARN, "needs 2.5"),
        ("git", "git version 2.39.2 (Apple Git-143)", Status.OK, "git 2.39.2"),
        ("node", "v20.11.0", Status.WARN, "asks for 22.0.0"),
        ("node", "v22.2.0", None, "node 22.2.0"),
    ],
)
def test_d90_d112_what_is_too_old_is_a_warning(
    clinic: Clinic, name: str, says: str, status: Status | None, word: str
) -> None:
    program = clinic.bin / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    row = clinic.rows("runtime")[name]
    assert row.status is status or (status is None and row.status is not Status.WARN)
    assert status is None or word in row.summary


def test_d93_d112_the_tools_are_asked_at_the_same_time(clinic: Clinic) -> None:
    meet = clinic.root / "meet"
    meet.mkdir()
    for name, version in (
        ("git", "git version 2.39.2"),
        ("node", "v22.2.0"),
        ("tmux", "tmux 3.3a"),
    ):
        program = clinic.bin / name
        program.write_text(
            f"#!/bin/sh\n: >{meet}/{name}\n"
            f"until [ -e {meet}/git ] && [ -e {meet}/node ] && [ -e {meet}/tmux ]\n"
            "do sleep 0.02; done\n"
            f"echo '{version}'\n"
        )
        program.chmod(0o755)
    rows = clinic.rows("runtime")
    assert (rows["git"].status, rows["tmux"].status) == (Status.OK, Status.OK)
    assert "22.2.0" in rows["node"].summary


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


def test_d116_certificates_that_are_not_there_are_told(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.env |= {"SSL_CERT_FILE": "/nonexist.pem", "NODE_EXTRA_CA_CERTS": "/etc/passwd"}
    rows = clinic.rows("network")
    assert (rows["SSL_CERT_FILE"].status, "NODE_EXTRA_CA_CERTS" in rows) == (Status.WARN, False)


def test_d116_the_network_is_asked_on_request_and_never_worse_than_a_warning(
    tmp_path: Path,
) -> None:
    clinic = Clinic(tmp_path)
    assert clinic.doctor("machine", "--skip", "runtime").code == 0
    ran = clinic.doctor("network")
    assert ran.code == 0
    assert {row["status"] for row in ran.data["rows"]} <= {"ok", "info", "warn"}
