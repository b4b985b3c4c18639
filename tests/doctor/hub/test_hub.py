"""`hub.*`: real hubs, running, stopped, killed, and what waits in them."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time

import apsw
import pytest

from tests.doctor.hub.bedside import at_work, one
from tests.doctor.world import Clinic, commands
from tests.hub.running import RunningHub
from tfx.core.identity import start_token
from tfx.doctor.examine import examine
from tfx.doctor.model import Question, Status
from tfx.doctor.options import Options
from tfx.doctor.report import DoctorData
from tfx.hub import state as state_file

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
        ran = clinic.doctor("hub", "--fix", "--yes", "--timeout", "10")
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
    assert f"process {hub.pid} is gone" in found.summary
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


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_d106_a_living_hub_without_its_lock_is_told_and_keeps_its_file(
    clinic: Clinic, hub: RunningHub, change: str
) -> None:
    clinic.env["TFX_HUB_PORT"] = str(hub.port)
    hub.files.lock.unlink()
    if change == "replaced":
        hub.files.lock.touch()
    before = hub.files.state.read_bytes()
    ran = clinic.doctor("hub.pid", "hub.health", "hub.port", "--fix", "--yes")
    told = {each["id"]: each for each in ran.data["rows"]}
    assert (ran.code, ran.data["fixes"]) == (1, [])
    assert (told["hub.pid"]["status"], told["hub.pid"]["fix"]) == ("fail", {"class": "M"})
    assert "runs without its lock" in told["hub.pid"]["summary"]
    assert "tfx hub stop" in json.dumps(told["hub.pid"]["remediation"])
    assert f"kill {hub.pid}" in json.dumps(told["hub.pid"]["remediation"])
    assert told["hub.health"]["details"]["reason"] == "lock-gone"
    assert told["hub.port"]["status"] == "ok"
    assert hub.files.state.read_bytes() == before
    assert hub.get("/status").status == 200
    status = clinic.tfx("hub", "status", "--json")
    assert (status.code, status.data["reason"], status.data["pid"]) == (4, "lock-gone", hub.pid)
    started = clinic.tfx("hub", "start", "--json")  # no second hub on one database
    assert (started.code, started.document["problems"][0]["code"]) == (5, "hub-unresponsive")
    stopped = clinic.tfx("hub", "stop", "--json")
    assert (stopped.code, stopped.data["stopped_by"]) == (0, "request")
    assert not hub.files.state.exists()
    assert one(clinic, "hub.pid").status is Status.OK


def test_d106_a_hub_that_lost_its_lock_while_the_question_was_open_keeps_its_file(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.kill()
    again: list[RunningHub] = []

    def ask(_: DoctorData, __: Question) -> bool:
        again.append(hub.again())
        again[0].files.lock.unlink()
        return True

    options = Options(checks=("hub.pid",), fix=True)
    data = examine(clinic.paths, options, say=lambda _: None, ask=ask).data
    assert [(each.outcome, each.reason) for each in data.fixes] == [("refused", "a hub is running")]
    assert state_file.read(hub.files.state) is not None
    assert clinic.tfx("hub", "stop").code == 0
    assert not hub.files.state.exists()


def test_d106_a_process_that_lives_and_is_no_hub_is_not_called_gone(
    clinic: Clinic, hub: RunningHub
) -> None:
    hub.kill()
    document = json.loads(hub.files.state.read_text())
    mine = {"pid": os.getpid(), "start_token": start_token(os.getpid())}
    hub.files.state.write_text(json.dumps(document | mine))
    found = one(clinic, "hub.pid")
    assert (found.status, found.fix) == (Status.UNKNOWN, None)
    assert clinic.doctor("hub.pid", "--fix", "--yes").data["fixes"] == []


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


def test_d108_a_hub_that_hangs_or_lost_a_file_is_no_stranger_on_its_port(
    clinic: Clinic, hub: RunningHub
) -> None:
    clinic.env["TFX_HUB_PORT"] = str(hub.port)
    kept, token = hub.files.state.read_bytes(), hub.files.token.read_bytes()
    hub.files.token.write_text("x" * 43)
    assert "hub's own" in one(clinic, "hub.port").summary
    hub.files.token.write_bytes(token)
    hub.files.state.unlink()
    assert "hub's own" in one(clinic, "hub.port").summary
    hub.files.state.write_bytes(kept)
    os.kill(hub.pid, signal.SIGSTOP)
    try:
        found = one(clinic, "hub.port")
    finally:
        os.kill(hub.pid, signal.SIGCONT)
    assert (found.status, "hub's own" in found.summary) == (Status.OK, True)
    assert clinic.doctor("hub.port").code == 0


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


def test_waiting_questions_are_told_running_and_stopped(clinic: Clinic, hub: RunningHub) -> None:
    assert one(clinic, "hub.queues").status is Status.OK
    at_work(hub)
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
    at_work(hub)
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
