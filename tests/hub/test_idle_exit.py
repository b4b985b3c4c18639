"""`--idle-exit` fires only when nothing at all uses the hub (H-20, H-93)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.support import bare_env
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.daemon.probe import State, probe
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

IDLE_S = 1
LONGER_S = 3.0


@pytest.fixture
def idle_hub(home: Path) -> Iterator[RunningHub]:
    env = bare_env(home)
    paths = Paths.resolve(env)
    run = launch.start(paths, RunWishes(0, IDLE_S)).probe.recorded
    assert run is not None
    hub = RunningHub(home, env, paths, HubFiles.of(paths), run.url, run.port, run.pid, run.instance)
    yield hub
    hub.end()


def _ends(hub: RunningHub, within_s: float) -> bool:
    return locks.wait_until_free(hub.files.lock, within_s)


def test_h_20_an_unused_hub_exits_in_order(idle_hub: RunningHub) -> None:
    assert _ends(idle_hub, 20)
    assert probe(idle_hub.paths, port=0).state is State.STOPPED
    assert "stopping: idle" in idle_hub.files.log.read_text()


def test_h_20_a_live_agent_keeps_it(idle_hub: RunningHub) -> None:
    idle_hub.register("agent-1")
    assert not _ends(idle_hub, LONGER_S)
    idle_hub.call("deregister", agent_id="agent-1")
    assert _ends(idle_hub, 20)


def test_h_20_an_open_wait_keeps_it(idle_hub: RunningHub) -> None:
    idle_hub.register("agent-1")
    idle_hub.call("deregister", agent_id="agent-1")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            idle_hub.post, "/v1/wait", {"agent_id": "agent-1", "wait_ms": int(LONGER_S * 1000)}
        )
        assert not _ends(idle_hub, LONGER_S - 0.5)
        assert waiting.result(20).status == 200


def test_h_20_an_open_stream_keeps_it(idle_hub: RunningHub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", idle_hub.port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/events", headers=dict(idle_hub.headers()))
        with connection.getresponse() as response:
            assert response.status == 200
            assert not _ends(idle_hub, LONGER_S)
    assert _ends(idle_hub, 20)


def test_h_20_a_pending_human_request_keeps_it(idle_hub: RunningHub) -> None:
    idle_hub.register("agent-1")
    idle_hub.call(
        "request_human_input",
        requester_agent="agent-1",
        kind="approval",
        prompt="may I?",
        requested_schema={},
        deadline_ms=5_000,
        default_action="decline",
    )
    idle_hub.call("deregister", agent_id="agent-1")
    assert not _ends(idle_hub, LONGER_S)
    assert _ends(idle_hub, 20)


def test_h_20_requests_keep_it(idle_hub: RunningHub) -> None:
    for _ in range(12):
        assert idle_hub.get("/status").status == 200
        assert not _ends(idle_hub, 0.25)
    assert _ends(idle_hub, 20)
