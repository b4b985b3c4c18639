"""The hub's own HTTP stack with the suite's fixture tools beside the real ones (H-107).

Same doors, same dispatcher, same services; a free port and a database of the test's own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from tests.hub.driver import FACTS
from tfx.core.clock import SystemClock
from tfx.errors import JsonValue
from tfx.hub.core import HubCore
from tfx.hub.models import Toolset
from tfx.hub.server import MOST_CONNECTIONS
from tfx.hub.tokens import Credentials
from tfx.hub.transport.auth import Doors
from tfx.hub.transport.http import Application, Traffic
from tfx.hub.transport.mcp.endpoint import MCP, Mcp
from tfx.hub.transport.mcp.rpc import Code, RpcError
from tfx.hub.transport.mcp.tools import Answer, Call, Tool, tools_of
from tfx.hub.transport.posts import bind
from tfx.hub.transport.replies import Receive, Scope, Send
from tfx.hub.transport.serving import Serving
from tfx.hub.wire.admin import ShutdownRequest, ShutdownResult

TOKEN: Final = "token-of-the-fixtures"  # noqa: S105  (of a throw-away server)
_PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
_WAV: Final = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVE").decode()
_TEXT: Final[dict[str, JsonValue]] = {
    "type": "text",
    "text": "This is a simple text response for testing.",
}
_IMAGE: Final[dict[str, JsonValue]] = {"type": "image", "data": _PNG, "mimeType": "image/png"}
_AUDIO: Final[dict[str, JsonValue]] = {"type": "audio", "data": _WAV, "mimeType": "audio/wav"}
_RESOURCE: Final[dict[str, JsonValue]] = {
    "type": "resource",
    "resource": {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    },
}
# The schema of which the suite wants to see every keyword again.
_SCHEMA_2020_12: Final[dict[str, JsonValue]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def fixtures() -> tuple[Tool, ...]:
    """The suite's tools for what the hub declares, and for what it must refuse."""
    return (
        _tool("test_simple_text", _TEXT),
        _tool("test_image_content", _IMAGE),
        _tool("test_audio_content", _AUDIO),
        _tool("test_embedded_resource", _RESOURCE),
        _tool("test_multiple_content_types", _TEXT, _IMAGE, _RESOURCE),
        _tool("test_error_handling", _TEXT, is_error=True),
        _tool("test_streaming_elicitation", _TEXT),
        _tool("test_logging_tool", _TEXT),
        _tool("json_schema_2020_12_tool", _TEXT, schema=_SCHEMA_2020_12),
        Tool(
            "test_missing_capability",
            "Needs a capability that no client of the test declares.",
            {"type": "object"},
            Toolset.BUS,
            _refuse,
        ),
    )


def _tool(
    name: str,
    *content: dict[str, JsonValue],
    is_error: bool = False,
    schema: dict[str, JsonValue] | None = None,
) -> Tool:
    async def call(_call: Call) -> Answer:
        return Answer(msgspec.json.encode(content), is_error)

    return Tool(name, f"{name} of the suite", schema or {"type": "object"}, Toolset.BUS, call)


async def _refuse(_call: Call) -> Answer:
    raise RpcError(
        Code.MISSING_CAPABILITY,
        "this tool needs sampling",
        {"requiredCapabilities": {"sampling": {}}},
    )


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[int]:
    """Serve the stack on a free port in a thread of its own."""
    loop = uvloop.new_event_loop()
    listener = socket.create_server(("127.0.0.1", 0))
    ready, ended = threading.Event(), threading.Event()
    stop = asyncio.Event()

    async def live() -> None:
        core = HubCore.open(directory / "hub.db", FACTS, clock=SystemClock())
        bound = bind({**core.handlers, "shutdown": _shutdown})
        real = tools_of(bound, core.unread, core.refused)
        mcp = Mcp((*real, *fixtures()), version=FACTS.version)
        app = Application(
            Doors(Credentials(TOKEN, f"{TOKEN}-operator"), ()),
            {MCP: mcp},
            _nothing,
            traffic=Traffic(),
            now_ms=SystemClock().monotonic_ms,
            refused=core.refused,
        )
        server = Serving(app, MOST_CONNECTIONS)
        await core.start()
        await server.start(listener)
        ready.set()
        await stop.wait()
        server.stop_accepting()
        core.drain()
        await server.finish(5)
        await core.close()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(live())
        loop.close()
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ready.wait(30)
    try:
        yield listener.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(stop.set)
        assert ended.wait(30)


async def _shutdown(_caller: object, _request: ShutdownRequest) -> ShutdownResult:
    raise NotImplementedError


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise NotImplementedError
