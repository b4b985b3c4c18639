"""The official SDK's client of both eras, over HTTP and through the bridge, across kills (H-33)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.hub.running import RunningHub

mcp = pytest.importorskip("mcp", reason="pip install -e '.[conformance]'")
httpx2 = pytest.importorskip("httpx2")

from mcp.client.client import Client  # noqa: E402  (after the skip)
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

MODES = ("2026-07-28", "auto", "legacy")
Story = Callable[[Any], Awaitable[None]]


def over_http(hub: RunningHub, mode: str, story: Story) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {hub.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{hub.url}/mcp", http_client=http), mode=mode) as client,
        ):
            await story(client)

    asyncio.run(run())


def through_the_bridge(hub: RunningHub, mode: str, story: Story) -> None:
    async def run() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "tfx", "hub", "bridge"],
            env=hub.env,
            cwd=str(hub.home),
        )
        async with Client(stdio_client(server), mode=mode) as client:
            await story(client)

    asyncio.run(run())


async def call(client: Any, name: str, **arguments: object) -> Any:  # noqa: ANN401  (the SDK under test)
    given = {key.rstrip("_"): value for key, value in arguments.items()}
    result = await client.call_tool(name, given)
    envelope = json.loads(result.content[0].text)
    assert envelope["ok"], envelope
    return envelope["data"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", [over_http, through_the_bridge])
def test_h_33_the_sdk_lists_and_calls(
    hub: RunningHub, mode: str, way: Callable[[RunningHub, str, Story], None]
) -> None:
    hub.register("one", "two")

    async def story(client: Any) -> None:  # noqa: ANN401
        tools = await client.list_tools()
        assert "publish" in [tool.name for tool in tools.tools]
        await call(client, "publish", from_="one", to="two", topic="x", payload={"n": 1})
        got = await call(client, "poll_messages", agent_id="two", wait_ms=0, auto_ack=True)
        assert got["messages"][0]["payload"] == {"n": 1}
        refused = await client.call_tool("read_message", {"message_id": "none"})
        assert refused.is_error

    way(hub, mode, story)


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_h_33_h_118_the_sdk_does_nothing_new_when_the_hub_is_killed(
    hub: RunningHub, mode: str
) -> None:
    hub.register("one", "two")

    async def story(client: Any) -> None:  # noqa: ANN401
        for number in range(3):
            await call(client, "publish", from_="one", to="two", topic="x", payload={"n": number})
            hub.kill()
        got = await call(client, "poll_messages", agent_id="two", wait_ms=0, auto_ack=True)
        assert [each["payload"]["n"] for each in got["messages"]] == [0, 1, 2]

    through_the_bridge(hub, mode, story)
