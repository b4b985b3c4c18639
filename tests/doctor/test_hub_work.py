"""`hub.work` and `hub.busy`: real hubs, running and stopped, holders that live and are gone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.doctor.world import Clinic, commands, row
from tests.hub.running import RunningHub, free_port, start
from tests.support import listing
from tfx.core.identity import ProcessIdentity, identify
from tfx.doctor.checks import hub_busy
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options
from tfx.hub.ancestry import facts_of

HOUR_MS = 3_600_000


@dataclass(slots=True)
class Scene:
    """A hub with one board, and what happens on it."""

    clinic: Clinic
    hub: RunningHub

    @property
    def room(self) -> str:
        return str(self.clinic.home / "a b")

    @property
    def place(self) -> str:
        return "~/a b"

    def agent(self, name: str, process: ProcessIdentity | None) -> str:
        """Register an agent of the board; return its session."""
        if process is not None:
            facts = facts_of(process)
            given = {"agent_id": name, "cli": "x", "workspace": self.room, "process": facts}
            return str(self.hub.post("/v1/attach", given).data["lease_id"])
        return str(
            self.hub.call(
                "register",
                agent_id=name,
                cli="x",
                capabilities=["code"],
                topics=[],
                heartbeat_ttl_ms=7_200_000,
                workspace=self.room,
            )["lease_id"]
        )

    def task(self) -> int:
        made = self.hub.call("work_add", room=self.room, title="x", accept=True)
        return int(made["task"]["task"])

    def claimed(self, name: str, session: str, **more: object) -> dict[str, Any]:
        """Let an agent claim a new task; return the lease."""
        who = {"room": self.room, "agent_id": name, "session": session, "task": self.task()}
        lease = self.hub.post("/v1/work_claim", {**who, **more}).data["lease"]
        assert isinstance(lease, dict)
        return lease

    def held(self, name: str, process: ProcessIdentity | None, **more: object) -> dict[str, Any]:
        return self.claimed(name, self.agent(name, process), **more)

    def stop(self) -> None:
        self.hub.end()

    def later(self, hours: float) -> None:
        """Let everything on a stopped hub have happened so long ago."""
        ago = round(hours * HOUR_MS)
        connection = apsw.Connection(str(self.hub.files.database))
        for table, columns in (
            ("beats", ("seen_at_ms",)),
            ("pulses", ("received_at_ms",)),
            ("agents", ("registered_at_ms", "ended_at_ms")),
            ("tasks", ("changed_at_ms",)),
            ("work_leases", ("created_at_ms", "updated_at_ms")),
            ("review_leases", ("created_at_ms", "ended_at_ms")),
            ("locks", ("set_at_ms",)),
        ):
            for column in columns:
                connection.execute(f"UPDATE {table} SET {column} = {column} - ?", (ago,))
        connection.close()

    def again(self, hours: float = 0) -> None:
        """Start the hub again; it says that it has run for so long."""
        self.hub = self.hub.again()
        self.ran_for(hours)

    def silent(self, hours: float) -> None:
        """Let nobody have said a word for so long, though the hub ran."""
        self.stop()
        self.later(hours)
        self.again(hours)

    def ran_for(self, hours: float) -> None:
        """Let the running hub say so."""
        file = self.hub.files.state
        document = json.loads(file.read_text())
        document["started_at_ms"] -= round(hours * HOUR_MS)
        file.write_text(json.dumps(document))

    def work(self) -> dict[str, Any]:
        return self.clinic.rows("hub.work")

    def busy(self) -> dict[str, Any]:
        return self.clinic.rows("hub.busy")

    def follow(self, found: Any, number: int = 0) -> Any:  # noqa: ANN401  (a row; JSON)
        """Do what a row says, as a shell would."""
        line = commands(found)[number]
        done = subprocess.run(
            ["/bin/sh", "-c", line.replace("tfx ", f"{sys.executable} -m tfx ", 1) + " --json"],
            env=self.clinic.env,
            cwd=self.clinic.home,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return json.loads(done.stdout)["data"]


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path)
    made.env["TFX_HUB_PORT"] = str(free_port())
    return made


@pytest.fixture
def scene(clinic: Clinic) -> Iterator[Scene]:
    made = Scene(clinic, start(clinic.home, clinic.env))
    try:
        yield made
    finally:
        made.hub.end()


def me() -> ProcessIdentity:
    own = identify()
    assert own is not None
    return own


def gone() -> ProcessIdentity:
    """A process that has lived."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = identify(child.pid)
        assert found is not None
        child.communicate(b"\n")
    return found


# work -------------------------------------------------------------------------------------


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


def in_review(scene: Scene, name: str, process: ProcessIdentity | None) -> int:
    """Let an agent claim a task and ask for a review of it."""
    session = scene.agent(name, process)
    lease = scene.claimed(name, session)
    who = {"room": scene.room, "agent_id": name, "session": session}
    moved = {"task": lease["task"], "status": "in_review"}
    scene.hub.post("/v1/work_update", {**who, **moved})
    return int(lease["task"])


def review(scene: Scene, task: int, name: str, process: ProcessIdentity | None) -> str:
    who = {"room": scene.room, "agent_id": name, "session": scene.agent(name, process)}
    made = scene.hub.post("/v1/work_review_claim", {**who, "task": task}).data
    return str(made["review"]["review_id"])


def test_wk_d8_a_review_whose_reviewer_is_silent_is_told_with_the_command_that_ends_it(
    scene: Scene,
) -> None:
    task = in_review(scene, "ann", me())
    made = review(scene, task, "bob", None)
    target = f"review of task {task} of {scene.place}"
    scene.silent(3)
    assert target not in scene.work()
    scene.silent(5)
    found = scene.work()[target]
    assert found.status is Status.WARN
    assert found.summary.startswith("bob reviews it, silent for ")
    assert found.details["review"] == made
    assert scene.follow(found)["review"]["state"] == "revoked"
    assert target not in scene.work()


def test_wk_d8_a_review_that_outlived_its_reviewer_waits_for_the_hub(scene: Scene) -> None:
    process = subprocess.Popen(["sleep", "600"])
    task = in_review(scene, "ann", me())
    review(scene, task, "bob", identify(process.pid))
    scene.stop()
    process.kill()
    process.wait()
    found = scene.work()[f"review of task {task} of {scene.place}"]
    assert (found.status, found.summary) == (Status.INFO, "bob, who reviews it, is gone")
    assert commands(found) == ["tfx hub start"]
    scene.again()
    assert wait(lambda: "work" in scene.work())  # the hub ended the review by itself


@pytest.mark.parametrize("assignee", ["alive", "gone"])
def test_wk_r1_a_task_that_waits_for_a_reviewer_for_a_day_is_told(
    scene: Scene, assignee: str
) -> None:
    task = in_review(scene, "ann", me())
    if assignee == "gone":
        scene.hub.call("deregister", agent_id="ann")
    target = f"review of task {task} of {scene.place}"
    scene.silent(23)
    assert target not in scene.work()
    scene.silent(2)
    found = scene.work()[target]
    assert found.status is Status.WARN
    assert "in review for 25 h, and nobody reviews it" in found.summary
    assert ("; ann, whose work it is, is gone" in found.summary) == (assignee == "gone")
    claim, *rest = commands(found)
    assert claim.startswith(f"tfx lease review claim {task} --room ")
    assert len(rest) == (assignee == "gone")
    if rest:
        assert scene.follow(found, 1)["task"]["status"] == "accepted"
    else:
        review(scene, task, "bob", me())
    assert target not in scene.work()


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


# busy -------------------------------------------------------------------------------------


def hold(scene: Scene, name: str, process: ProcessIdentity) -> None:
    scene.hub.register(name)
    scene.hub.call("receiver_hold", agent_id=name, process=facts_of(process), ttl_ms=600_000)


def began(scene: Scene, name: str, process: ProcessIdentity) -> None:
    facts = facts_of(process)
    scene.hub.call("invocation_start", agent_id=name, kind="turn", process=facts)


def test_ev_b6_a_holder_that_was_silent_for_eight_hours_is_told_and_keeps_the_agent(
    scene: Scene,
) -> None:
    hold(scene, "ann", me())
    assert scene.busy()["agents"].details == {"busy": 1, "running": 0}
    scene.silent(7)
    assert list(scene.busy()) == ["agents"]
    scene.silent(2)
    scene.ran_for(7)
    found = scene.busy()["ann (message)"]
    assert found.status is Status.WARN
    assert found.summary == f"busy, and silent for 9 h; process {os.getpid()} lives"
    assert scene.clinic.doctor("hub.busy").code == 0
    assert scene.follow(found, 0)["busy"] is True  # it is only told
    assert len(scene.follow(found, 1)["evicted"]) == 1
    assert list(scene.busy()) == ["agents"]


def test_ev_i1_what_is_gone_while_no_hub_runs_is_information(scene: Scene) -> None:
    process = subprocess.Popen(["sleep", "600"])
    holder = identify(process.pid)
    assert holder is not None
    hold(scene, "ann", holder)
    for _ in range(2):
        began(scene, "ann", holder)
    scene.stop()
    assert list(scene.busy()) == ["agents"]
    process.kill()
    process.wait()
    rows = scene.busy()
    held, runs = rows["holders that are gone"], rows["running invocations"]
    assert (held.status, held.details["agents"]) == (Status.INFO, ["ann"])
    assert (runs.status, runs.details["count"]) == (Status.INFO, 2)
    assert commands(held) == commands(runs) == ["tfx hub start"]
    assert scene.clinic.doctor("hub.busy", "--strict").code == 0
    scene.again()
    assert wait(lambda: list(scene.busy()) == ["lost invocations"])
    lost = scene.busy()["lost invocations"]
    assert (lost.status, lost.details["count"]) == (Status.INFO, 2)
    assert len(scene.follow(lost)["invocations"]) == 2


def test_ev_i1_a_phantom_of_a_running_hub_names_the_probe(scene: Scene) -> None:
    scene.hub.register("ann")
    began(scene, "ann", gone())
    found = list(hub_busy.busy(Facts(scene.clinic.paths, Options())))
    for phantoms in (each for each in found if each.target == "running invocations"):
        assert commands(phantoms) == ["tfx hub invocations probe"]
        scene.follow(phantoms)
    assert list(scene.busy()) == ["lost invocations"]  # by that command, or the hub was quicker


def wait(true: Any) -> bool:  # noqa: ANN401  (a predicate)
    for _ in range(600):
        if true():
            return True
        time.sleep(0.1)
    return False
