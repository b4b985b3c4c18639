"""`hub.busy`: who keeps an agent busy, and what ran and is gone."""

from __future__ import annotations

import os
import subprocess

from tests.doctor.work.scene import Scene, gone, me, wait
from tests.doctor.world import commands
from tfx.core.identity import ProcessIdentity, identify
from tfx.doctor.checks import hub_busy
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options
from tfx.hub.ancestry import facts_of


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
