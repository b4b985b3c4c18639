"""`--idle-exit` fires only when nothing at all uses the hub (H-20, H-93)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub.driver import FACTS, FakeClock
from tests.hub.running import RunningHub, start
from tests.hub.waiting import until
from tests.support import bare_env
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.core import HubCore
from tfx.hub.daemon import launch, ports
from tfx.hub.daemon.probe import State, probe
from tfx.hub.places import HubFiles
from tfx.hub.server import Hub
from tfx.hub.settings import resolve
from tfx.hub.state import RunWishes
from tfx.hub.tokens import Credentials

IDLE_S = 1
LONGER_S = 3.0
SOON_S = 60.0
Start = Callable[[], RunningHub]


@pytest.fixture
def idle_hub(home: Path) -> Iterator[Start]:
    """Start a hub that ends when nobody has used it for a second.

    What is to keep it has to be there before: nobody knows when a test gets on.
    """
    env = bare_env(home)
    paths = Paths.resolve(env)
    files = HubFiles.of(paths)
    made: list[RunningHub] = []

    def begin() -> RunningHub:
        run = launch.start(paths, RunWishes(0, IDLE_S)).probe.recorded
        assert run is not None
        made.append(RunningHub(home, env, paths, files, run.url, run.port, run.pid, run.instance))
        return made[-1]

    yield begin
    for each in made:
        each.end()


@pytest.fixture
def kept_hub(home: Path, idle_hub: Start) -> RunningHub:
    """Such a hub, kept by the live agent `agent-1` of a life before."""
    before = start(home)
    before.register("agent-1")
    before.end()
    return idle_hub()


def _ends(hub: RunningHub, within_s: float = SOON_S) -> bool:
    return locks.wait_until_free(hub.files.lock, within_s)


def _leave(hub: RunningHub) -> None:
    hub.call("deregister", agent_id="agent-1")


def test_h_20_an_unused_hub_exits_in_order(idle_hub: Start) -> None:
    hub = idle_hub()
    assert _ends(hub)
    assert probe(hub.paths, port=0).state is State.STOPPED
    assert "stopping: idle" in hub.files.log.read_text()


def test_h_20_a_live_agent_keeps_it(kept_hub: RunningHub) -> None:
    assert not _ends(kept_hub, LONGER_S)
    _leave(kept_hub)
    assert _ends(kept_hub)


def test_h_20_an_open_wait_keeps_it(kept_hub: RunningHub) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        wish = {"agent_id": "agent-1", "wait_ms": 45_000}
        waiting = pool.submit(kept_hub.post, "/v1/wait", wish)
        until(lambda: kept_hub.get("/status").document["queues"]["open_waits"])
        _leave(kept_hub)
        assert not _ends(kept_hub, LONGER_S)
        kept_hub.call("publish", from_="operator", to="agent-1", topic="x", payload={})
        assert waiting.result(SOON_S).data["total"] == 1
    assert _ends(kept_hub)


def test_h_20_an_open_stream_keeps_it(kept_hub: RunningHub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", kept_hub.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/events", headers=dict(kept_hub.headers()))
        with connection.getresponse() as response:
            assert response.status == 200
            _leave(kept_hub)
            assert not _ends(kept_hub, LONGER_S)
    assert _ends(kept_hub)


def test_h_20_a_pending_human_request_keeps_it(kept_hub: RunningHub) -> None:
    asked = kept_hub.call(
        "request_human_input",
        requester_agent="agent-1",
        kind="approval",
        prompt="may I?",
        requested_schema={},
        deadline_ms=600_000,
        default_action="decline",
    )
    _leave(kept_hub)
    assert not _ends(kept_hub, LONGER_S)
    gone = {"requester_agent": "agent-1", "request_id": asked["request_id"]}
    assert kept_hub.post("/v1/withdraw_human_input", gone).status == 200
    assert _ends(kept_hub)


def test_h_20_requests_keep_it(home: Path) -> None:
    """What `--idle-exit` asks is told by a clock of ours: each request begins the time anew."""
    paths = Paths.resolve(bare_env(home))
    clock = FakeClock()

    async def story() -> None:
        core = HubCore.open(home / "hub.db", FACTS, clock=clock)
        hub = Hub(core, Credentials("t" * 40, "o" * 40), resolve(paths), FACTS, clock)
        listening = ports.listen(0, strict=True)
        await hub.start(listening.socket)
        try:
            clock.pass_ms(700)
            assert hub.idle_ms() == 700
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
                writer.write(
                    b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                assert (await reader.read()).startswith(b"HTTP/1.1 200")
                writer.close()
                assert hub.idle_ms() == 0
                clock.pass_ms(700)
                assert hub.idle_ms() == 700
        finally:
            await hub.stop()

    asyncio.run(story())
