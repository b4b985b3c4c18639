"""`db.*`: databases at rest, old, tampered, damaged, open to others."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.doctor.hub.bedside import at_work, files, one
from tests.doctor.world import Clinic, commands, texts
from tests.hub.running import RunningHub, start
from tests.support import listing
from tfx.core import database as db
from tfx.doctor.checks import database as checks
from tfx.doctor.checks import soundness
from tfx.doctor.checks.machine import clock
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options
from tfx.errors import OperationFailed
from tfx.hub.daemon import ground
from tfx.hub.places import HubFiles
from tfx.hub.schema import registry

# database ---------------------------------------------------------------------------------


@pytest.fixture
def stopped(hub: RunningHub) -> HubFiles:
    """A database that was in use and is at rest."""
    at_work(hub)
    hub.end()
    return hub.files


def schema(clinic: Clinic) -> Any:  # noqa: ANN401
    return one(clinic, "db.integrity", "schema")


def test_d110_a_sound_database_is_ok_and_unchanged(clinic: Clinic, stopped: HubFiles) -> None:
    before = listing(clinic.home)
    ran = clinic.doctor("hub", "--deep")
    assert ran.code == 0
    assert {row["status"] for row in ran.data["rows"] if row["id"].startswith("db.")} == {"ok"}
    assert listing(clinic.home) == before
    assert stopped.database.exists()


@pytest.mark.parametrize("version", range(1, registry.CURRENT))
def test_must_show_an_old_schema_names_upgrade(clinic: Clinic, version: int) -> None:
    path = files(clinic).database
    path.parent.mkdir(parents=True, mode=0o700)
    connection = db.open_writer(path, create=True)
    registry.create(connection, version)
    connection.close()
    found = schema(clinic)
    assert (found.status, commands(found)) == (Status.WARN, ["tfx upgrade"])


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ("CREATE TABLE intruder (x)", Status.FAIL, "intruder"),
        ("UPDATE stamp SET schema_version = 99", Status.FAIL, "newer"),
        ("UPDATE stamp SET fold_version = 99", Status.FAIL, "newer"),
        ("DROP INDEX messages_owed", Status.FAIL, "messages_owed"),
    ],
)
def test_must_show_a_tampered_or_newer_schema_fails(
    clinic: Clinic, stopped: HubFiles, change: str, status: Status, word: str
) -> None:
    connection = apsw.Connection(str(stopped.database))
    connection.execute(change)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    found = schema(clinic)
    assert (found.status, word in texts(found)) == (status, True)
    assert found.fix == {"class": "M"}


def test_must_show_a_corrupt_page_fails_and_says_copy_first(
    clinic: Clinic, stopped: HubFiles
) -> None:
    data = bytearray(stopped.database.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for page in range(3, len(data) // size):
        data[page * size : page * size + 200] = b"\xa5" * 200
    stopped.database.write_bytes(data)
    ran = clinic.doctor("db.integrity", "--fix", "--yes")
    assert ran.code == 1
    bad = [row for row in ran.data["rows"] if row["status"] == "fail"]
    assert bad
    told = json.dumps(bad)
    assert "cp -a" in told
    assert "tfx backup list" in told
    assert stopped.database.read_bytes() == bytes(data)


def test_d110_another_journal_mode_is_told(clinic: Clinic, stopped: HubFiles) -> None:
    with contextlib.closing(apsw.Connection(str(stopped.database))) as connection:
        connection.pragma("journal_mode", "DELETE")
    found = one(clinic, "db.integrity", "journal")
    assert (found.status, "journal mode is delete" in found.summary) == (Status.INFO, True)
    assert [each.status for each in soundness.judge_journal("delete", running=True)] == [
        Status.WARN
    ]
    assert list(soundness.judge_journal("wal", running=True)) == []


def test_d111_one_time_is_read_without_the_check_of_the_whole_database(
    clinic: Clinic, stopped: HubFiles
) -> None:
    facts = Facts(clinic.paths, Options())

    def never() -> None:
        raise OperationFailed("the whole database was checked")

    with pytest.raises(OperationFailed):
        facts.shared("inspection", never)
    assert stopped.database.exists()
    assert [each.status for each in clock(facts)] == [Status.OK, Status.OK]


def test_d110_what_is_no_database_fails(clinic: Clinic) -> None:
    clinic.write(".local/state/tfx/hub/hub.db", b"this is no database at all" * 100, 0o600)
    found = one(clinic, "db.integrity")
    assert (found.status, found.details["reason"]) == (Status.FAIL, "not-a-database")


def test_d110_an_orphaned_row_of_a_folded_table_is_found_by_deep(
    clinic: Clinic, stopped: HubFiles
) -> None:
    connection = apsw.Connection(str(stopped.database))
    connection.execute("UPDATE agents SET client = 'forged'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    found = one(clinic, "db.log")
    assert (found.status, commands(found)) == (Status.FAIL, ["tfx hub rebuild"])
    assert "agents" in found.summary
    assert "forged" not in texts(found)


def test_must_show_a_200_mb_write_ahead_log_is_told_with_its_holders(
    clinic: Clinic, stopped: HubFiles
) -> None:
    wal = Path(f"{stopped.database}-wal")
    with wal.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
        target = "~/.local/state/tfx/hub/hub.db-wal"
        ran = clinic.doctor("db.file")
    found = {row["target"]: row for row in ran.data["rows"]}[target]
    assert found["status"] == "warn"
    assert "200 MiB" in found["summary"]
    assert found["details"]["holders"] == [os.getpid()]
    assert "never delete it" in found["remediation"][0]["text"]
    assert wal.stat().st_size == 200 * 1024 * 1024


def test_d109_a_wal_without_its_database_fails(clinic: Clinic) -> None:
    clinic.write(".local/state/tfx/hub/hub.db-wal", b"x")
    (clinic.home / ".local/state/tfx/hub").chmod(0o700)
    rows = clinic.rows("db.file")
    assert rows["~/.local/state/tfx/hub/hub.db-wal"].status is Status.FAIL


def test_d109_an_open_directory_is_closed_by_fix_and_reopened_by_undo(
    clinic: Clinic, stopped: HubFiles
) -> None:
    stopped.directory.chmod(0o755)
    found = one(clinic, "db.file", "~/.local/state/tfx/hub")
    assert (found.status, found.fix) == (Status.WARN, {"class": "A"})
    ran = clinic.doctor("db.file", "--fix", "--yes")
    assert ran.code == 0
    assert stat.S_IMODE(stopped.directory.stat().st_mode) == 0o700
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert stat.S_IMODE(stopped.directory.stat().st_mode) == 0o755


def test_d109_an_open_database_gets_the_command_only(clinic: Clinic, stopped: HubFiles) -> None:
    stopped.database.chmod(0o644)
    found = one(clinic, "db.file", "~/.local/state/tfx/hub/hub.db")
    assert (found.status, found.fix) == (Status.WARN, {"class": "M"})
    assert commands(found) == ["chmod 600 ~/.local/state/tfx/hub/hub.db"]


def test_d109_file_systems_and_free_space(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 0:1 / / rw - ext4 /dev/x rw\n"
        f"2 1 0:2 / {tmp_path}/far rw - nfs4 server:/x rw\n"
        f"3 1 0:3 / {tmp_path}/win rw - 9p drive rw\n"
        f"4 1 0:4 / {tmp_path}/share rw - virtiofs share rw\n"
    )

    def kind(name: str) -> Status:
        place = tmp_path / name
        return checks.judge_file_system(place, ground.file_system(place, mounts)).status

    assert [kind(name) for name in ("near", "far", "win", "share")] == [
        Status.OK,
        Status.FAIL,
        Status.FAIL,
        Status.WARN,
    ]
    assert checks.judge_file_system(tmp_path, "zfs").status is Status.INFO
    gib = 1024**3
    assert checks.judge_space(tmp_path, 50 * gib, 100 * gib).status is Status.OK
    assert checks.judge_space(tmp_path, gib // 4, 100 * gib).status is Status.WARN
    assert checks.judge_space(tmp_path, gib, 100 * gib).status is Status.WARN
    assert checks.judge_space(tmp_path, 40 * gib, 1000 * gib).status is Status.WARN


def test_d110_an_old_sqlite_fails() -> None:
    from tfx.hub.store.inspection import Inspection  # noqa: PLC0415

    seen = Inspection(
        registry.Judgement(registry.Verdict.CURRENT, 2), None, "wal", "3.40.0",
        sqlite_is_old=True, damage=(), orphans=(), last_event_at_ms=None, counts=None,
    )  # fmt: skip
    assert soundness._library(seen).status is Status.FAIL


def test_d110_a_database_elsewhere_is_followed(clinic: Clinic) -> None:
    clinic.env["TFX_HUB_DB"] = str(clinic.home / "db/x.db")
    running = start(clinic.home, clinic.env)
    with contextlib.ExitStack() as stack:
        stack.callback(running.end)
        running.end()
        found = schema(clinic)
    assert found.status is Status.OK
