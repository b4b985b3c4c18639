"""`/mcp`: Streamable HTTP with JSON answers, both eras, nothing remembered between requests.

Knows tools by their name only. Source: MCP revisions 2024-11-05 to 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from tfx.errors import InvalidRequest, JsonValue
from tfx.hub.models import Caller, LeaseId, Toolset, agent_id
from tfx.hub.transport.mcp import eras
from tfx.hub.transport.mcp.eras import Routing
from tfx.hub.transport.mcp.rpc import (
    BadFrameError,
    Code,
    Frame,
    RpcError,
    failure,
    frames_in,
    read,
    result,
)
from tfx.hub.transport.mcp.tools import Call, Tool
from tfx.hub.transport.replies import Receive, Scope, Send, accept, reply

MCP: Final = "/mcp"
SERVER: Final = "tfx-hub"
DEFAULT: Final = (Toolset.BUS,)
INSTRUCTIONS: Final = (
    "Carries messages between the coding agents on this machine, and questions to the person at "
    "it. Poll for mail when a result shows unread; confirm it with ack_ids of the next poll."
)
_MOST_IN_BATCH: Final = 50
_LIST_TTL_MS: Final = 300_000
_HTTP_OF_CODE: Final[Mapping[Code, int]] = {Code.METHOD_NOT_FOUND: 404}
_ENCODER: Final = msgspec.json.Encoder()
_TRACE: Final = b'"traceparent":"%b"'
_CAPABILITIES: Final[dict[str, JsonValue]] = {"tools": {}}


class Toolbox:
    """The tools of one selection of toolsets, and their list as bytes for each era."""

    def __init__(self, tools: Iterable[Tool], stamp: bytes) -> None:
        chosen = tuple(tools)
        self.by_name = {tool.name: tool for tool in chosen}
        listed = _ENCODER.encode(
            [
                {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
                for tool in chosen
            ]
        )
        self.legacy_list = b'{"tools":%b}' % listed
        self.modern_list = (
            b'{"tools":%b,"resultType":"complete","ttlMs":%d,"cacheScope":"private",%b}'
            % (listed, _LIST_TTL_MS, stamp)
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What came with a body: its headers, who sent it, the tools it may name."""

    headers: Routing
    caller: Caller
    box: Toolbox
    receive: Receive


class Mcp:
    """Answers the POSTs of MCP clients."""

    def __init__(self, tools: tuple[Tool, ...], *, version: str) -> None:
        self._tools = tools
        self._server: dict[str, JsonValue] = {"name": SERVER, "version": version}
        server = _ENCODER.encode(self._server)
        self._about = b'"io.modelcontextprotocol/serverInfo":%b' % server
        self._stamp = b'"_meta":{%b}' % self._about
        self._known = tuple(dict.fromkeys(tool.toolset for tool in tools))
        self._boxes: dict[bytes, Toolbox] = {}

    async def __call__(
        self, scope: Scope, caller: Caller, body: bytes, receive: Receive, send: Send
    ) -> None:
        """Answer one body; raises InvalidRequest for a query that names no toolset (H-36)."""
        box = self._box(scope["query_string"])
        headers = eras.routing(scope["headers"])
        if headers.agent is not None:
            session = None if headers.session is None else LeaseId(headers.session)
            named = agent_id(headers.agent, "Tfx-Agent")
            caller = Caller(named, operator=caller.operator, session=session)
        asked = Asked(headers, caller, box, receive)
        try:
            batch = frames_in(body)
        except RpcError as error:
            await reply(send, 400, failure(msgspec.Raw(), error))
            return
        if batch is None:
            status, answer = await self._one(body, asked)
        else:
            status, answer = await self._many(batch, asked)
        if answer is None:
            await accept(send)
        else:
            await reply(send, status, answer)

    async def _many(self, batch: tuple[bytes, ...], asked: Asked) -> tuple[int, bytes | None]:
        if asked.headers.version not in eras.BATCHING or not 1 <= len(batch) <= _MOST_IN_BATCH:
            error = RpcError(Code.INVALID_REQUEST, "a body holds one message in this revision")
            return 400, failure(msgspec.Raw(), error)
        answers = [(await self._one(each, asked))[1] for each in batch]
        said = [each for each in answers if each is not None]
        return 200, b"[%b]" % b",".join(said) if said else None

    async def _one(self, body: bytes, asked: Asked) -> tuple[int, bytes | None]:
        """Return status and answer of one message; none for a notification or a response."""
        try:
            frame = read(body)
        except BadFrameError as error:
            return 400, failure(error.id, error)
        headers = asked.headers
        modern = eras.is_modern(frame, headers)
        try:
            if frame.method is None or not frame.id:
                _check_unanswered(frame, headers, modern=modern)
                return 202, None
            if modern:
                eras.check_modern(frame, headers)
                answer = await self._modern(frame, asked)
            else:
                answer = await self._legacy(frame, asked)
        except RpcError as error:
            status = _HTTP_OF_CODE.get(error.code, 400) if modern else 200
            return status, failure(frame.id, error)
        return 200, result(frame.id, answer)

    async def _modern(self, frame: Frame, asked: Asked) -> bytes:
        match frame.method:
            case "tools/call":
                return await self._call(frame, asked)
            case "tools/list":
                _refuse_cursor(frame)
                return asked.box.modern_list
            case "server/discover":
                document: dict[str, JsonValue] = {
                    "supportedVersions": [eras.MODERN],
                    "capabilities": _CAPABILITIES,
                    "instructions": _instructions(asked.caller),
                    "resultType": "complete",
                    "ttlMs": _LIST_TTL_MS,
                    "cacheScope": "private",
                }
                return _ENCODER.encode(document)[:-1] + b",%b}" % self._stamp
            case _:
                raise _no_method(frame)

    async def _legacy(self, frame: Frame, asked: Asked) -> bytes:
        match frame.method:
            case "tools/call":
                return await self._call(frame, asked)
            case "tools/list":
                _refuse_cursor(frame)
                return asked.box.legacy_list
            case "initialize":
                document: dict[str, JsonValue] = {
                    "protocolVersion": eras.negotiated(frame.given.version),
                    "capabilities": _CAPABILITIES,
                    "serverInfo": self._server,
                    "instructions": _instructions(asked.caller),
                }
                return _ENCODER.encode(document)
            case "ping":
                return b"{}"
            case _:
                raise _no_method(frame)

    async def _call(self, frame: Frame, asked: Asked) -> bytes:
        given = frame.given
        tool = asked.box.by_name.get(given.name or "")
        if tool is None:
            raise RpcError(Code.INVALID_PARAMS, f"there is no tool {str(given.name)[:100]}")
        arguments = bytes(given.arguments)
        if not arguments or arguments == b"null":
            arguments = b"{}"
        trace = None if given.meta is None else given.meta.traceparent
        call = Call(asked.caller, arguments, asked.receive, trace, asked.headers.op_id)
        answer = await tool.call(call)
        body = b'{"content":%b,"isError":%b' % (
            answer.content,
            b"true" if answer.is_error else b"false",
        )
        meta = [] if answer.traceparent is None else [_TRACE % answer.traceparent.encode()]
        if eras.is_modern(frame, asked.headers):
            body += b',"resultType":"complete"'
            meta.append(self._about)
        return body + (b',"_meta":{%b}}' % b",".join(meta) if meta else b"}")

    def _box(self, query: bytes) -> Toolbox:
        """Return the tools of `?tools=bus,work`; the default is `bus` (H-36)."""
        box = self._boxes.get(query)
        if box is None:
            wanted = _toolsets(query, self._known)
            chosen = (tool for tool in self._tools if tool.toolset in wanted)
            box = Toolbox(chosen, self._stamp)
            if len(self._boxes) < _MOST_IN_BATCH:
                self._boxes[query] = box
        return box


def _toolsets(query: bytes, known: tuple[Toolset, ...]) -> frozenset[Toolset]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if not pairs:
        return frozenset(DEFAULT)
    names = [name for key, value in pairs if key == "tools" for name in value.split(",")]
    strange = [key for key, _ in pairs if key != "tools"]
    wrong = strange or [name for name in names if name not in known]
    if wrong:
        shown: list[JsonValue] = [each.value for each in known]
        raise InvalidRequest(
            f"there is no toolset {wrong[0][:64]!r}; known: {', '.join(known)}"
            if not strange
            else f"there is no parameter {wrong[0][:64]!r}; /mcp takes tools",
            code="unknown-toolset" if not strange else "unknown-field",
            details={"field": "tools", "known": shown},
        )
    return frozenset(Toolset(name) for name in names)


def _check_unanswered(frame: Frame, headers: Routing, *, modern: bool) -> None:
    """Take a notification or a response, which get no answer; raises RpcError for a stray one."""
    if frame.method is None and (modern or not frame.id):
        raise RpcError(Code.INVALID_REQUEST, "a body must be one request or notification")
    if modern and headers.version is not None and headers.version != eras.MODERN:
        raise eras.unsupported(headers.version)


def _instructions(caller: Caller) -> str:
    if caller.agent is None:
        return INSTRUCTIONS
    return f"You are the agent {caller.agent}. {INSTRUCTIONS}"


def _refuse_cursor(frame: Frame) -> None:
    if frame.given.cursor is not None:
        raise RpcError(Code.INVALID_PARAMS, "the list has one page; there is no such cursor")


def _no_method(frame: Frame) -> RpcError:
    return RpcError(Code.METHOD_NOT_FOUND, f"there is no method {str(frame.method)[:100]}")
