"""The bridge of an agent at work: its session lives on, and is opened anew when it has ended."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.bridging import BRIDGE, BridgeClient
from tests.hub.running import RunningHub
from tests.support import bare_env

ME = "me-and-nobody-else"


@pytest.fixture
def bridges() -> Iterator[list[BridgeClient]]:
    """Bridges of one name, each of its own."""
    made: list[BridgeClient] = []
    yield made
    for each in made:
        with contextlib.suppress(OSError, ValueError):
            each.kill()


def opened(bridges: list[BridgeClient], home: Path) -> BridgeClient:
    """Open a bridge below a shell of its own, which is the agent that it belongs to."""
    argv = ("/bin/sh", "-c", f"{shlex.join((*BRIDGE, '--tools', 'bus,work'))}; true")
    client = BridgeClient.start(bare_env(home, TFX_AGENT_ID=ME), cwd=home, argv=argv)
    bridges.append(client)
    client.open()
    return client


def claimed(client: BridgeClient) -> Any:  # noqa: ANN401  (JSON of the hub under test)
    task = client.tool("work_add", title="one", accept=True)["data"]["task"]["task"]
    return client.tool("work_claim", task=task)["data"]["lease"]


def test_wk_l24_an_agent_that_registers_for_a_topic_keeps_session_and_work(
    hub: RunningHub, home: Path, bridges: list[BridgeClient]
) -> None:
    client = opened(bridges, home)
    lease = claimed(client)
    before = hub.call("status", scope="agent", agent_id=ME)["agent"]
    given = client.tool(
        "register",
        agent_id=ME,
        cli="codex",
        capabilities=["code"],
        topics=["news"],
        heartbeat_ttl_ms=600_000,
    )
    assert given["data"]["lease_id"] == lease["session"]
    after = hub.call("status", scope="agent", agent_id=ME)["agent"]
    assert (after["workspace"], after["pid"]) == (before["workspace"], before["pid"])
    assert after["topics"] == ["news"]
    (held,) = hub.call("work_status", task=lease["task"], room=lease["room"])["leases"]
    assert held == lease
    fence = {"lease_id": lease["lease_id"], "epoch": lease["epoch"]}
    moved = client.tool("work_update", task=lease["task"], status="in_progress", **fence)
    assert moved["data"]["task"]["status"] == "in_progress"


def test_wk_a2_a_bridge_whose_session_has_ended_opens_another_by_its_next_call(
    hub: RunningHub, home: Path, bridges: list[BridgeClient]
) -> None:
    client = opened(bridges, home)
    lease = claimed(client)
    assert hub.call("deregister", agent_id=ME)["ended"]
    assert client.tool("work_claim", task=lease["task"])["error"]["code"] == "authority-ended"
    again = client.tool("work_claim", task=lease["task"])["data"]["lease"]
    assert again["session"] != lease["session"]
    assert again["epoch"] == lease["epoch"] + 1


@pytest.mark.usefixtures("hub")
def test_k_27_of_two_bridges_with_one_name_the_second_gets_another(
    home: Path, bridges: list[BridgeClient]
) -> None:
    first = opened(bridges, home)
    lease = claimed(first)
    other = claimed(opened(bridges, home))
    assert (lease["agent_id"], other["agent_id"]) == (ME, f"{ME}.2")
    fence = {"lease_id": lease["lease_id"], "epoch": lease["epoch"]}
    moved = first.tool("work_update", task=lease["task"], status="in_progress", **fence)
    assert moved["data"]["task"]["status"] == "in_progress"


def test_k_27_a_bridge_does_not_take_back_a_name_that_another_registered(
    hub: RunningHub, home: Path, bridges: list[BridgeClient]
) -> None:
    first = opened(bridges, home)
    held = claimed(first)
    wish = {"agent_id": ME, "cli": "x", "capabilities": ["code"], "topics": []}
    refused = hub.post("/v1/register", {**wish, "heartbeat_ttl_ms": 600_000})
    assert refused.code == "name-taken"  # it lives
    assert hub.call("heartbeat", agent_id=ME)["lease_id"] == held["session"]
    hub.call("register", operator=True, heartbeat_ttl_ms=600_000, **wish)
    session = hub.call("heartbeat", agent_id=ME)["lease_id"]
    assert session != held["session"]
    for _ in range(3):
        error = first.tool("work_claim", task=held["task"])["error"]
        assert error["code"] == "authority-ended"
        assert "TFX_AGENT_ID" in error["hint"]
    assert hub.call("heartbeat", agent_id=ME)["lease_id"] == session
