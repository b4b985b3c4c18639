"""`hub.work`: real hubs, running and stopped, holders that live and are gone."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

import apsw
import pytest

from tests.doctor.work.scene import Scene, me, wait
from tests.doctor.world import Clinic, commands, row
from tests.hub.running import start
from tests.support import listing
from tfx.core.identity import identify
from tfx.doctor.model import Status


def test_d1_a_healthy_board_is_ok_and_looking_changes_nothing(scene: Scene) -> None:
    assert scene.work()["work"].summary == "no task is held; nothing stands still"
    scene.held("ann", me(), ttl_ms=600_000)
    scene.held("bob", me())
    scene.task()
    ran = scene.clinic.doctor("hub.work", "hub.busy", "--strict")
    assert ran.code == 0, ran.out
    assert row(ran, "hub.work", "work")["details"] == {"held": 2}
    scene.stop()
    before = listing(scene.clinic.home)
    ran = scene.clinic.doctor("hub.work", "hub.busy", "--strict")
    assert (ran.code, ran.data["counts"]["ok"]) == (0, 2)
    assert listing(scene.clinic.home) == before


def test_wk_l24_a_lease_that_outlived_its_holder_waits_for_the_hub(scene: Scene) -> None:
    process = subprocess.Popen(["sleep", "600"])
    holder = identify(process.pid)
    lease = scene.held("ann", holder)
    scene.stop()
    process.kill()
    process.wait()
    found = scene.work()[f"task 1 of {scene.place}"]
    assert (found.status, found.summary) == (Status.INFO, "ann, who holds it, is gone")
    assert (found.details["lease"], found.details["process"]) == (lease["lease_id"], "dead")
    assert commands(found) == ["tfx hub start"]
    assert scene.clinic.doctor("hub.work").code == 0
    scene.again()
    assert wait(lambda: "work" in scene.work())  # the hub ended the lease by itself


def test_wk_d3_a_lease_that_ran_out_while_no_hub_ran_is_told(scene: Scene) -> None:
    scene.held("ann", me(), ttl_ms=60_000)
    scene.stop()
    connection = apsw.Connection(str(scene.hub.files.database))
    connection.execute("UPDATE work_leases SET expires_at_ms = expires_at_ms - 7_200_000")
    connection.close()
    found = scene.work()[f"task 1 of {scene.place}"]
    assert found.status is Status.INFO
    assert found.summary == "the lease of ann ran out 1 h ago"
    assert commands(found) == ["tfx hub start"]


@pytest.mark.parametrize(
    ("life", "hours", "status"),
    [
        ("alive", 3, None),
        ("alive", 5, Status.WARN),
        ("unknown", 0.5, None),
        ("unknown", 2, Status.WARN),
    ],
)
def test_wk_d5_a_holder_that_was_silent_for_long_is_told_and_can_be_freed(
    scene: Scene, life: str, hours: float, status: Status | None
) -> None:
    lease = scene.held("ann", me() if life == "alive" else None)
    scene.silent(hours)
    rows = scene.work()
    if status is None:
        assert list(rows) == ["work"]
        return
    found = rows[f"task 1 of {scene.place}"]
    assert found.status is status
    assert f"ann holds it, silent for {round(hours)} h" in found.summary
    assert scene.clinic.doctor("hub.work").code == 0
    freed = scene.follow(found)
    assert freed["released"]["lease_id"] == lease["lease_id"]
    assert freed["task"]["status"] == "accepted"
    assert list(scene.work()) == ["work"]


def test_a_stopped_hub_hears_nobody_and_silence_says_nothing(scene: Scene) -> None:
    scene.held("ann", me())
    scene.held("bob", None)
    scene.stop()
    scene.later(40)
    assert list(scene.work()) == ["work"]
    scene.again()  # it has only just begun to listen
    assert list(scene.work()) == ["work"]


def test_wk_d2_a_call_of_the_holder_ends_its_silence_before_the_next_sync(scene: Scene) -> None:
    scene.held("ann", me())
    scene.silent(5)
    assert scene.work()[f"task 1 of {scene.place}"].status is Status.WARN
    scene.hub.call("heartbeat", agent_id="ann")
    assert list(scene.work()) == ["work"]


def test_wk_k2_a_task_of_a_retired_agent_is_told_with_the_command_that_frees_it(
    scene: Scene,
) -> None:
    lease = scene.held("ann", me())
    scene.hub.call("agents_retire", operator=True, agent_id="ann")
    found = scene.work()[f"task {lease['task']} of {scene.place}"]
    assert found.status is Status.WARN
    assert found.summary == "assigned and held by nobody; only ann may claim it, who is retired"
    assert "--no-lease" in commands(found)[0]
    assert shlex.quote(scene.place)[1:-1].partition("/")[2] in commands(found)[0]
    assert scene.follow(found)["task"]["assignee"] is None
    assert list(scene.work()) == ["work"]


@pytest.mark.parametrize(("hours", "status"), [(0.5, None), (2, Status.INFO), (50, Status.WARN)])
def test_wk_l24_a_task_whose_agent_is_gone_waits_for_it_and_is_told_in_time(
    scene: Scene, hours: float, status: Status | None
) -> None:
    process = subprocess.Popen(["sleep", "600"])
    scene.held("ann", identify(process.pid))
    process.kill()  # only now: the hub sees at any moment that a holder is gone
    process.wait()
    assert wait(lambda: leases(scene) == [])  # swept: the assignee stays
    for running in (True, False):
        scene.stop()
        if running:
            scene.later(hours)
            scene.again(hours)
        found = scene.work().get(f"task 1 of {scene.place}")
        assert (None if found is None else found.status) is status, found
        if found is not None:
            assert "only ann may claim it, gone for" in found.summary
    scene.again()
    scene.agent("ann", me())
    assert list(scene.work()) == ["work"]


def leases(scene: Scene) -> list[Any]:
    found: list[Any] = scene.hub.call("work_status", room=scene.room)["leases"]
    return found


@pytest.mark.parametrize("by", ["assignee", "label"])
def test_a_task_given_to_a_name_that_nobody_has_is_told_after_an_hour(
    scene: Scene, by: str
) -> None:
    number = scene.task()
    given = {"room": scene.room, "task": number, "status": "assigned", by: "zoe"}
    scene.hub.call("work_update", operator=True, **given)
    assert list(scene.work()) == ["work"]
    scene.silent(2)
    found = scene.work()[f"task {number} of {scene.place}"]
    assert (found.status, "whom the hub does not know" in found.summary) == (Status.WARN, True)
    assert scene.follow(found)["task"]["status"] == "accepted"


def test_wk_k1_a_lock_that_stands_for_a_day_is_told_and_can_be_lifted(scene: Scene) -> None:
    number = scene.task()
    closed = scene.task()
    for fields in ({"task": number}, {"task": closed}, {}):
        given = {"room": scene.room, "reason": "manager_pause", **fields}
        scene.hub.call("work_lock", operator=True, **given)
    scene.hub.call("work_update", operator=True, room=scene.room, task=closed, status="cancelled")
    assert list(scene.work()) == ["work"]
    scene.silent(26)
    rows = scene.work()
    assert list(rows) == [f"lock of task {number} of {scene.place}", f"lock of room {scene.place}"]
    for found in rows.values():
        assert found.status is Status.INFO
        assert found.summary == "locked for 26 h by operator: manager_pause"
        scene.follow(found)
    assert list(scene.work()) == ["work"]


def test_wk_k8_what_the_policy_stopped_is_told_whatever_its_note_says_by_now(scene: Scene) -> None:
    session = scene.agent("ann", me())
    task = scene.claimed("ann", session)["task"]
    wish = {"room": scene.room, "agent_id": "ann", "session": session, "task": task}
    for status in [*["in_review", "in_progress"] * 5, "in_review"]:
        assert "work" in scene.work()
        scene.hub.post("/v1/work_update", {**wish, "status": status})
    scene.hub.post("/v1/work_update", {**wish, "note": "nothing to see here"})
    found = scene.work()[f"task {task} of {scene.place}"]
    assert found.status is Status.WARN
    assert found.summary.startswith("blocked by the policy for ")
    assert scene.follow(found)["task"]["status"] == "in_progress"
    assert list(scene.work()) == ["work"]


def test_many_of_one_kind_are_cut_to_a_number(scene: Scene) -> None:
    session = scene.agent("ann", None)
    for _ in range(11):
        scene.claimed("ann", session)
    scene.silent(2)
    rows = scene.work()
    assert len(rows) == 9
    assert (rows["more leases"].status, rows["more leases"].details["count"]) == (Status.WARN, 3)


def test_without_a_database_or_with_another_schema_nothing_is_claimed(clinic: Clinic) -> None:
    for check in ("hub.work", "hub.busy"):
        assert clinic.rows(check)["database"].status is Status.SKIP
    running = start(clinic.home, clinic.env)
    running.end()
    connection = apsw.Connection(str(running.files.database))
    connection.execute("CREATE TABLE foreign_one (x)")
    connection.close()
    for check in ("hub.work", "hub.busy"):
        assert clinic.rows(check)["database"].status is Status.UNKNOWN
