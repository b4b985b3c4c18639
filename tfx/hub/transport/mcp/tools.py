"""Operations as MCP tools: name, description, schema, and one text content as the result (H-33).

Knows neither eras nor HTTP; a tool is called with the bytes of its arguments.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from tfx.errors import TfxError
from tfx.hub.failures import to_wire
from tfx.hub.models import AgentId, AskState, Caller, Toolset, Unread
from tfx.hub.transport.mcp.schemas import Schema, input_schema
from tfx.hub.transport.mcp.tracing import trace_in, traceparent_of
from tfx.hub.transport.posts import Bound
from tfx.hub.transport.replies import Receive
from tfx.hub.wire.messages import AskResult, PollResult

AGENT_FIELDS: Final = ("agent_id", "from", "requester_agent")
"""The arguments that name the calling agent, in the order in which they are looked for (H-38)."""
_NOT_FOR_AGENTS: Final = frozenset({"process", "workspace"})
_NOT_FOR_WORK: Final = frozenset(
    {
        *("room", "op_id", "instance", "label", "worktree", "max_bytes", "expect", "no_lease"),
        *("to_instance", "to_session", "source_task", "output"),
    }
)
"""What the bridge or the hub fills in, so that the toolset stays below 6 KB; a call may have it."""
_OPTIONAL_AGENT: Final = frozenset({"status", "dead_letters", "work_status"})
"""Tools whose `agent_id` is a filter and not the caller."""
_AROUND_BYTES: Final = 192
_LEAST_BYTES: Final = 512
_CALL_AGAIN: Final = "nothing yet: call again"
_ENCODER: Final = msgspec.json.Encoder()
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: who, the bytes of the arguments, and what came beside them.

    That is the trace that the client is in, and the key of a bridge that may send it twice.
    """

    caller: Caller
    arguments: bytes
    receive: Receive
    traceparent: str | None = None
    op_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON of a result's `content`, whether it tells of a failure, and the trace it is of."""

    content: bytes
    is_error: bool = False
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Its call may raise RpcError for what is the protocol's fault."""

    name: str
    description: str
    schema: Schema
    toolset: Toolset
    call: Callable[[Call], Awaitable[Answer]]


Reads: TypeAlias = Callable[[AgentId], Unread]


def tools_of(
    bound: Iterable[Bound], unread: Reads, refused: Callable[[str], None]
) -> tuple[Tool, ...]:
    """Return a tool for every row that has a toolset, in the order of the table."""
    return tuple(
        Tool(
            name=each.row.name,
            description=each.row.summary,
            schema=input_schema(each.row.request, hidden=_hidden(each.row.name, each.row.toolset)),
            toolset=each.row.toolset,
            call=_OperationCall(each, unread, refused),
        )
        for each in bound
        if each.row.toolset is not None
    )


def _hidden(name: str, toolset: Toolset) -> frozenset[str]:
    if name == "register":  # without a bridge only the agent knows where it works
        return _NOT_FOR_AGENTS - {"workspace"}
    return _NOT_FOR_AGENTS | _NOT_FOR_WORK if toolset is Toolset.WORK else _NOT_FOR_AGENTS


class _OperationCall:
    """Calls an operation and puts its result into triflux's envelope."""

    def __init__(self, bound: Bound, unread: Reads, refused: Callable[[str], None]) -> None:
        self._bound = bound
        self._unread = unread
        self._refused = refused
        is_filter = bound.row.name in _OPTIONAL_AGENT
        named = next((name for name in AGENT_FIELDS if name in bound.fields), None)
        self._agent_field = None if is_filter else named
        self._agent_name = _python_name(bound, self._agent_field)
        self._has_trace = "trace_id" in bound.fields and bound.row.mutates
        self._has_key = "op_id" in bound.fields
        self._has_session = "session" in bound.fields
        self._has_room = "max_bytes" in bound.fields

    async def __call__(self, call: Call) -> Answer:
        caller = call.caller
        agent = caller.agent
        try:
            request = self._bound.decode(caller, self._filled(call), checked=True)
            if self._agent_name is not None:
                agent = getattr(request, self._agent_name)
            if self._has_room:
                request = _with_room(request)
            result = await self._bound.run(caller, request, call.receive)
        except TfxError as error:
            self._refused(error.reason)
            body = b'{"ok":false,"error":%b' % _ENCODER.encode(to_wire(error))
            return _answer(body + self._count(agent), is_error=True)
        body = b'{"ok":true,"data":%b' % _ENCODER.encode(result)
        if _is_empty(result):
            body += b',"hint":"%b"' % _CALL_AGAIN.encode()
        return _answer(body + self._count(agent), traceparent=traceparent_of(result))

    def _filled(self, call: Call) -> bytes:
        """Return the arguments, with what the transport knows put where the caller left it out.

        The agent is the one whose bridge this is (K-27), the key that bridge's (K-26), the trace
        the client's (H-60).
        """
        extra: dict[str, str] = {}
        if self._agent_field is not None and call.caller.agent is not None:
            extra[self._agent_field] = call.caller.agent
        if self._has_session and call.caller.session is not None:
            extra["session"] = call.caller.session
        if self._has_trace and call.traceparent is not None:
            trace = trace_in(call.traceparent)
            if trace is not None:
                extra["trace_id"] = trace
        if self._has_key and call.op_id is not None:
            extra["op_id"] = call.op_id
        if not extra or not call.arguments.lstrip().startswith(b"{"):
            return call.arguments
        members: dict[str, object] = {**_MEMBERS.decode(call.arguments)}
        missing = {name: value for name, value in extra.items() if name not in members}
        return _ENCODER.encode({**members, **missing}) if missing else call.arguments

    def _count(self, agent: AgentId | None) -> bytes:
        """Return what waits for the caller, without claiming it; null for an unknown one (H-38)."""
        if agent is None:
            return b',"unread":null}'
        found = self._unread(agent)
        return b',"unread":{"total":%d,"urgent":%d}}' % (found.total, found.urgent)


def _answer(envelope: bytes, *, is_error: bool = False, traceparent: str | None = None) -> Answer:
    text = _ENCODER.encode(envelope.decode())
    return Answer(b'[{"type":"text","text":%b}]' % text, is_error, traceparent)


def _with_room(request: msgspec.Struct) -> msgspec.Struct:
    """Return a request whose result leaves room for the envelope around it (H-31)."""
    wanted: int = getattr(request, "max_bytes")  # noqa: B009  (a field of some requests only)
    return msgspec.structs.replace(request, max_bytes=max(_LEAST_BYTES, wanted - _AROUND_BYTES))


def _is_empty(result: msgspec.Struct) -> bool:
    """Say whether a wait ended without what it waited for (H-39)."""
    if isinstance(result, PollResult):
        return not result.messages
    return isinstance(result, AskResult) and result.state in {AskState.QUEUED, AskState.DELIVERED}


def _python_name(bound: Bound, field: str | None) -> str | None:
    return next(
        (
            each.name
            for each in msgspec.structs.fields(bound.row.request)
            if each.encode_name == field
        ),
        None,
    )
