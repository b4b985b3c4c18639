"""`hub.*` and `db.*`: real hubs, running, stopped, killed and damaged."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.doctor.world import Clinic, commands, texts
from tests.hub.running import RunningHub, free_port, start
from tests.support import listing
from tfx.core import database as db
from tfx.doctor.checks import database as checks
from tfx.doctor.examine import examine
from tfx.doctor.model import Question, Status
from tfx.doctor.options import Options
from tfx.doctor.report import DoctorData
from tfx.hub import state as state_file
from tfx.hub.daemon import ground
from tfx.hub.places import HubFiles
from tfx.hub.schema import registry


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path)
    made.env["TFX_HUB_PORT"] = str(free_port())
    return made


@pytest.fixture
def hub(clinic: Clinic) -> Iterator[RunningHub]:
    running = start(clinic.home, clinic.env)
    try:
        yield running
    finally:
        running.end()


def one(clinic: Clinic, check: str, target: str | None = None, **options: Any) -> Any:  # noqa: ANN401
    rows = clinic.rows(check, **options)
    return rows[target] if target else next(iter(rows.values()))


def files(clinic: Clinic) -> HubFiles:
    return HubFiles.of(clinic.paths)


# process ----------------------------------------------------------------------------------


def test_d107_d163_a_running_hub(clinic: Clinic, hub: RunningHub) -> None:
    found = one(clinic, "hub.health")
    assert found.status is Status.OK
    assert str(hub.port) in found.summary
    ran = clinic.doctor("hub", "--deep")
    assert ran.code == 0, ran.out
    assert ran.data["counts"]["fail"] == ran.data["counts"]["unknown"] == 0


def test_d107_d163_a_stopped_hub_is_information_with_the_command(clinic: Clinic) -> None:
    found = one(clinic, "hub.health")
    assert (found.status, commands(found)) == (Status.INFO, ["tfx hub start"])
    assert clinic.doctor("hub").code == 0


def test_d107_another_version_is_a_warning(clinic: Clinic, hub: RunningHub) -> None:
    recorded = state_file.read(hub.files.state)
    assert recorded is not None
    document = json.loads(hub.files.state.read_text())
    hub.files.state.write_text(json.dumps(document | {"version": "0.0.1"}))
    found = one(clinic, "hub.health")
    assert found.status is Status.WARN
    assert "0.0.1" in found.summary
    assert commands(found) == ["tfx hub restart"]


def test_d107_a_hub_that_does_not_answer_fails_and_is_left_alone(
    clinic: Clinic, hub: RunningHub
) -> None:
    os.kill(hub.pid, signal.SIGSTOP)
    try:
        ran = clinic.doctor("hub", "--fix", "--yes")
    finally:
        os.kill(hub.pid, signal.SIGCONT)
    found = {row["id"]: row for row in ran.data["rows"]}["hub.health"]
    assert ran.code == 1
    assert (found["status"], "timeout" in found["details"]["reason"]) == ("fail", True)
    assert found["remediation"][0]["command"] == "tfx hub stop"
    assert hub.get("/status").status == 200


def test_d107_a_token_mismatch_names_the_restart(clinic: Clinic, hub: RunningHub) -> None:
    kept = hub.token
    hub.files.token.write_text("x" * 43)
    found = one(clinic, "hub.health")
    hub.files.token.write_text(kept)
    assert (found.status, commands(found)) == (Status.FAIL, ["tfx hub restart"])


def test_d106_a_crashed_hub_leaves_a_file_that_fix_removes(clinic: Clinic, hub: RunningHub) -> None:
    hub.kill()
    found = one(clinic, "hub.pid")
    assert (found.status, found.fix) == (Status.WARN, {"class": "A"})
    # a killed process that nobody has reaped yet still has its number
    assert f"process {hub.pid} is gone" in found.summary or "let go" in found.summary
    before = hub.files.state.read_bytes()
    ran = clinic.doctor("hub.pid", "--fix", "--yes")
    assert ran.code == 0
    assert [fix["outcome"] for fix in ran.data["fixes"]] == ["applied"]
    assert not hub.files.state.exists()
    undone = clinic.setup("--undo", ran.data["run"])
    assert undone.code == 0, undone.out
    assert hub.files.state.read_bytes() == before


def test_d106_d172_a_recycled_pid_is_a_stranger_and_lives_on(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.kill()
    document = json.loads(hub.files.state.read_text())
    hub.files.state.write_text(json.dumps(document | {"pid": os.getpid()}))
    found = one(clinic, "hub.pid")
    assert "another program now" in found.summary
    assert clinic.doctor("hub.pid", "--fix", "--yes").code == 0
    os.kill(os.getpid(), 0)


def test_d106_k22_a_hub_that_started_meanwhile_keeps_its_file(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.kill()
    again: list[RunningHub] = []

    def ask(_: DoctorData, __: Question) -> bool:
        again.append(hub.again())
        return True

    options = Options(checks=("hub.pid",), fix=True)
    data = examine(clinic.paths, options, say=lambda _: None, ask=ask).data
    assert [(each.outcome, each.reason) for each in data.fixes] == [("refused", "a hub is running")]
    assert state_file.read(hub.files.state) is not None
    again[0].end()


def test_d106_a_torn_state_file_is_told(clinic: Clinic) -> None:
    clinic.write(".local/state/tfx/hub/state.json", '{"format": 1, "pi')
    found = one(clinic, "hub.pid")
    assert (found.status, "cannot be read" in found.summary) == (Status.WARN, True)


def test_d106_the_file_of_a_running_hub_is_never_touched(clinic: Clinic, hub: RunningHub) -> None:
    before = hub.files.state.read_bytes()
    assert one(clinic, "hub.pid").status is Status.OK
    clinic.doctor("hub", "--fix", "--yes")
    assert hub.files.state.read_bytes() == before


def test_d108_a_stranger_on_the_asked_port_fails_and_lives_on(clinic: Clinic) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(clinic.env["TFX_HUB_PORT"])))
        other.listen()
        ran = clinic.doctor("hub.port", "--fix", "--yes")
        found = ran.data["rows"][0]
        assert (ran.code, found["status"]) == (1, "fail")
        assert found["details"]["pid"] == os.getpid()
        assert found["fix"] == {"class": "M"}
        assert other.fileno() > 0


def test_d108_k29_on_the_preferred_port_it_is_a_warning() -> None:
    from tfx.doctor.checks.hub_access import _taken  # noqa: PLC0415

    assert _taken(27888, None, strict=False).status is Status.WARN
    assert "another user" in _taken(27888, None, strict=True).summary


def test_d108_its_own_port_is_fine_and_a_substitute_is_told(
    clinic: Clinic, hub: RunningHub
) -> None:
    assert one(clinic, "hub.port").status is Status.INFO
    clinic.env["TFX_HUB_PORT"] = str(hub.port)
    assert one(clinic, "hub.port").status is Status.OK


# credentials ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["token", "operator"])
def test_must_show_a_0644_token_fails_is_closed_by_fix_and_reopened_by_undo(
    clinic: Clinic, hub: RunningHub, name: str
) -> None:
    hub.end()
    path = getattr(hub.files, name)
    path.chmod(0o644)
    secret, inode = path.read_text(), path.stat().st_ino
    found = one(clinic, "hub.tokens", f"~/.local/state/tfx/hub/{name}")
    assert (found.status, found.fix) == (Status.FAIL, {"class": "A"})
    assert commands(found)[0] == f"chmod 600 ~/.local/state/tfx/hub/{name}"
    assert "tfx hub token rotate" in commands(found)
    ran = clinic.doctor("hub.tokens", "--fix", "--yes")
    assert ran.code == 0, ran.out
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o600, secret)
    assert path.stat().st_ino == inode  # closed in place, not copied
    assert secret.strip() not in ran.out
    for kept in (clinic.home / ".local/state/tfx/setup").rglob("*"):
        assert not kept.is_file() or secret.strip().encode() not in kept.read_bytes()
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_h42_a_token_of_another_kind_is_never_read(clinic: Clinic) -> None:
    clinic.write("elsewhere", "canary")
    clinic.write(".local/state/tfx/hub/x", "")
    (clinic.home / ".local/state/tfx/hub/token").symlink_to(clinic.home / "elsewhere")
    found = one(clinic, "hub.tokens", "~/.local/state/tfx/hub/token")
    assert found.status is Status.FAIL
    assert found.fix == {"class": "M"}


# queues -----------------------------------------------------------------------------------


def _work(hub: RunningHub) -> None:
    hub.register("agent-1", "agent-2")
    hub.call(
        "request_human_input",
        requester_agent="agent-1",
        kind="approval",
        prompt="may I?",
        requested_schema={},
        deadline_ms=600_000,
        default_action="decline",
    )


def test_waiting_questions_are_told_running_and_stopped(clinic: Clinic, hub: RunningHub) -> None:
    assert one(clinic, "hub.queues").status is Status.OK
    _work(hub)
    found = one(clinic, "hub.queues", "pending human requests")
    assert (found.status, found.details["count"]) == (Status.WARN, 1)
    assert commands(found) == ["tfx hub human list"]
    hub.end()
    assert one(clinic, "hub.queues", "pending human requests").details["count"] == 1


def test_dead_letters_are_told_running_and_stopped(clinic: Clinic, hub: RunningHub) -> None:
    hub.register("agent-1", "agent-2")
    hub.call("publish", from_="agent-1", to="agent-2", topic="x", payload={})
    hub.call("agents_retire", operator=True, agent_id="agent-2")
    assert one(clinic, "hub.queues", "dead letters").details["count"] == 1
    hub.end()
    assert one(clinic, "hub.queues", "dead letters").details["count"] == 1


def test_what_was_said_to_a_topic_that_nobody_reads_is_no_warning(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.register("agent-1")
    hub.call("publish", from_="agent-1", to="topic:task.result", topic="task.result", payload={})
    assert one(clinic, "hub.queues").status is Status.OK
    hub.call("publish", from_="agent-1", to="nobody-1", topic="x", payload={}, deferred=True)
    hub.call("agents_retire", operator=True, agent_id="agent-1")
    assert one(clinic, "hub.queues").status is Status.OK
    hub.end()
    assert one(clinic, "hub.queues").status is Status.OK


def test_an_agent_whose_lease_lapsed_is_told_by_the_running_hub(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.register("agent-1", "agent-2")
    assert one(clinic, "hub.queues").status is Status.OK
    hub.end()
    connection = apsw.Connection(str(hub.files.database))
    # its last beat was a minute ago, its lease is over, and it is not yet offline (H-61)
    connection.execute(
        "UPDATE beats SET lease_expires_ms = ? WHERE agent = 'agent-1'",
        (time.time_ns() // 1_000_000 - 60_000,),
    )
    assert connection.changes() == 1
    connection.close()
    again = hub.again()
    try:
        found = one(clinic, "hub.queues", "stale agents")
        assert (found.status, found.details["count"]) == (Status.WARN, 1)
        assert commands(found) == ["tfx hub agents"]
        ran = clinic.tfx("hub", "agents", "--json")
        states = {each["agent_id"]: each["state"] for each in ran.data["agents"]}
        assert states == {"agent-1": "stale", "agent-2": "online"}
    finally:
        again.end()


def test_all_that_waits_is_told_at_once_and_answered_is_gone(
    clinic: Clinic, hub: RunningHub
) -> None:
    _work(hub)
    hub.call("publish", from_="agent-1", to="agent-2", topic="x", payload={"canary": "4711"})
    hub.call("agents_retire", operator=True, agent_id="agent-2")
    ran = clinic.doctor("hub.queues")
    assert (ran.code, ran.data["counts"]["warn"]) == (0, 2)
    assert "4711" not in ran.out
    assert "may I?" not in ran.out
    assert clinic.doctor("hub.queues", "--strict").code == 1
    [asked] = clinic.tfx("hub", "human", "list", "--json").data["requests"]
    given = {"request_id": asked["request_id"], "action": "decline"}
    hub.call("submit_human_input", operator=True, **given)
    dead = clinic.tfx("hub", "dead", "purge", "--all", "--json")
    assert dead.code == 0, dead.out
    assert one(clinic, "hub.queues", "queues").status is Status.OK


# database ---------------------------------------------------------------------------------


@pytest.fixture
def stopped(hub: RunningHub) -> HubFiles:
    """A database that was in use and is at rest."""
    _work(hub)
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


def test_d110_an_old_sqlite_fails() -> None:
    from tfx.hub.store.inspection import Inspection  # noqa: PLC0415

    seen = Inspection(
        registry.Judgement(registry.Verdict.CURRENT, 2), None, "wal", "3.40.0",
        sqlite_is_old=True, damage=(), orphans=(), last_event_at_ms=None, counts=None,
    )  # fmt: skip
    assert checks._library(seen).status is Status.FAIL


def test_d110_a_database_elsewhere_is_followed(clinic: Clinic) -> None:
    clinic.env["TFX_HUB_DB"] = str(clinic.home / "db/x.db")
    running = start(clinic.home, clinic.env)
    with contextlib.ExitStack() as stack:
        stack.callback(running.end)
        running.end()
        found = schema(clinic)
    assert found.status is Status.OK
