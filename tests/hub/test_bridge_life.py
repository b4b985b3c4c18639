"""The bridge beside a live client: what it reports of itself, and the lease that it keeps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.bridging import END_S, BridgeClient, patient
from tests.hub.running import RunningHub
from tests.hub.speaking import LEGACY, MODERN
from tests.hub.waiting import until
from tests.support import bare_env
from tfx.core import locks
from tfx.hub.bridge.heart import Heart
from tfx.hub.bridge.link import Hub
from tfx.hub.exchange import Exchange

ME = "me-and-nobody-else"


@pytest.fixture
def bridges(home: Path) -> Iterator[Callable[..., BridgeClient]]:
    made: list[BridgeClient] = []

    def start(version: str = LEGACY[-1], name: str = ME) -> BridgeClient:
        env = bare_env(home, TFX_AGENT_ID=name)
        argv = patient(every_s=0.1)
        made.append(BridgeClient.start(env, cwd=home, argv=argv, version=version))
        return made[-1]

    yield start
    for each in made:
        with contextlib.suppress(OSError, ValueError):
            each.kill()


def runs(hub: RunningHub) -> list[Any]:
    found = hub.call("invocations")["invocations"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("version", [MODERN, LEGACY[0]])
def test_ev_b3_a_bridge_reports_its_session_from_its_first_answer_to_its_end(
    hub: RunningHub, bridges: Callable[..., BridgeClient], version: str
) -> None:
    client = bridges(version)
    assert runs(hub) == []
    client.open()
    until(lambda: runs(hub))
    (run,) = runs(hub)
    assert (run["kind"], run["agent_id"], run["state"]) == ("terminal", ME, "running")
    assert (run["pid"], run["liveness"]) == (client.process.pid, "alive")
    (seat,) = hub.call("busy", agent_id=ME)["seats"]
    assert (seat["tier"], seat["seat_id"]) == ("invocation", run["invocation_id"])
    assert client.end() == 0
    (run,) = runs(hub)
    assert (run["state"], run["outcome"], run["is_late"]) == ("finished", "ok", False)
    assert hub.call("busy", agent_id=ME)["seats"] == []


def test_ev_i1_a_killed_bridge_is_lost_by_the_probe(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    client = bridges()
    client.open()
    until(lambda: runs(hub))
    client.process.kill()
    client.process.wait(END_S)
    assert hub.call("busy", agent_id=ME)["busy"] is False
    hub.call("invocations_probe")
    (run,) = runs(hub)
    assert (run["state"], run["evidence"]) == ("lost", "pid-gone")


def test_h_61_an_idle_client_that_lives_is_heard_all_the_time(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    client = bridges()
    client.open()

    def seen() -> int:
        agent = hub.call("status", scope="agent", agent_id=ME)["agent"]
        return int(agent["lease_expires_ms"])

    until(lambda: runs(hub))
    first = seen()
    until(lambda: seen() > first + 200)
    assert len(runs(hub)) == 1  # beats are no events and no new invocations
    assert client.end() == 0


def test_h_17_a_beat_starts_no_hub_that_was_stopped(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    client = bridges()
    client.open()
    until(lambda: runs(hub))
    hub.end()
    time.sleep(1)  # ten beats
    assert not locks.is_held(hub.files.lock)
    again = hub.again()
    try:
        # the same session goes on at the next life of the hub, without a call of the client
        until(lambda: runs(again)[0]["beat_age_ms"] < 2_000)
        assert len(runs(again)) == 1
        assert client.end() == 0
        assert runs(again)[0]["state"] == "finished"
    finally:
        again.end()


def test_ev_b1_a_second_bridge_of_one_agent_waits_for_the_seat_and_takes_it(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    first = bridges()
    first.open()
    until(lambda: runs(hub))
    second = bridges()
    second.open()
    time.sleep(0.5)
    assert len(runs(hub)) == 1
    assert first.end() == 0
    until(lambda: len(runs(hub)) == 2)
    newest, oldest = runs(hub)
    assert (newest["state"], newest["pid"]) == ("running", second.process.pid)
    assert oldest["state"] == "finished"


def test_ev_b8_a_bridge_whose_seat_a_person_took_goes_on_and_ends_as_itself(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    client = bridges()
    client.open()
    until(lambda: runs(hub))
    seen = hub.call("busy", agent_id=ME)["generation"]
    hub.call("agents_free", operator=True, agent_id=ME, force=True, generation=seen)
    assert [(run["state"], run["evidence"]) for run in runs(hub)] == [("lost", "force")]
    time.sleep(0.4)  # beats pass: it does not come back by itself
    assert not hub.call("busy", agent_id=ME)["busy"]
    assert client.end() == 0
    assert [(run["state"], run["is_late"]) for run in runs(hub)] == [("finished", True)]


@pytest.mark.parametrize("end", ["forced", "finished"])
def test_ev_l7_a_bridge_that_never_heard_its_first_answer_goes_on_from_what_is_so(
    hub: RunningHub, end: str
) -> None:
    ours = Hub(hub.paths)
    place = ours.place()
    with Exchange(place.url, place.token) as exchange:
        attached = ours.agent(exchange, place)
    assert attached is not None
    heart = Heart(ours)
    heart._beat()
    (first,) = runs(hub)
    heart._run = None  # the answer was lost
    if end == "forced":
        seen = hub.call("busy", agent_id=attached.name)["generation"]
        wish = {"agent_id": attached.name, "force": True, "generation": seen}
        hub.call("agents_free", operator=True, **wish)
    else:
        hub.call("invocation_finish", invocation_id=first["invocation_id"], outcome="ok")
    for _ in range(3):
        heart._beat()
    came_back = end == "finished"
    assert hub.call("busy", agent_id=attached.name)["busy"] is came_back
    heart.finish()
    assert [(run["state"], run["is_late"]) for run in runs(hub)] == (
        [("finished", False), ("finished", False)] if came_back else [("finished", True)]
    )


def test_ev_i1_a_bridge_reports_itself_anew_to_a_hub_that_does_not_know_it(
    hub: RunningHub, bridges: Callable[..., BridgeClient]
) -> None:
    client = bridges()
    client.open()
    until(lambda: runs(hub))
    (first,) = runs(hub)
    hub.end()
    for each in hub.files.database.parent.glob(hub.files.database.name + "*"):
        if each != hub.files.lock:
            each.unlink()
    again = hub.again()
    try:
        client.data("status")
        until(lambda: runs(again))
        (run,) = runs(again)
        assert run["invocation_id"] != first["invocation_id"]
        assert client.end() == 0
        assert runs(again)[0]["state"] == "finished"
    finally:
        again.end()


@pytest.mark.parametrize("name", ["bad name!", "operator"])
def test_h_29_a_name_that_is_none_is_told_by_the_bridge_and_nobody_works_under_it(
    hub: RunningHub, bridges: Callable[..., BridgeClient], name: str
) -> None:
    params = {"protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "x"}}
    error = bridges(name=name).request("initialize", params)["error"]
    assert error["data"]["code"] in {"bad-id", "reserved"}, error
    assert hub.call("agents")["agents"] == []
