"""`hub.work`: reviews that nobody goes on with, and work that nobody reviews."""

from __future__ import annotations

import subprocess

import pytest

from tests.doctor.work.scene import Scene, me, wait
from tests.doctor.world import commands
from tfx.core.identity import ProcessIdentity, identify
from tfx.doctor.model import Status


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
