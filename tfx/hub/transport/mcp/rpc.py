"""JSON-RPC 2.0 as MCP uses it: frames in, results and errors out.

Knows neither eras nor tools; ids are echoed as the bytes that came.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from tfx.core import canonical_json
from tfx.errors import InvalidRequest, JsonValue

_LONGEST_ID: Final = 512
_ID_STARTS: Final = frozenset(b'"-0123456789')
_ENCODER: Final = msgspec.json.Encoder()
_ABSENT: Final = msgspec.Raw()


class Code(IntEnum):
    """Error codes: JSON-RPC's own and those of revision 2026-07-28."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    HEADER_MISMATCH = -32020
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022


class RpcError(Exception):
    """A request that gets an error of the protocol instead of a result."""

    def __init__(self, code: Code, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Meta(msgspec.Struct, frozen=True):
    """What `_meta` says of the request itself; the rest of it is not ours."""

    version: str | None = msgspec.field(
        default=None, name="io.modelcontextprotocol/protocolVersion"
    )
    capabilities: msgspec.Raw = msgspec.field(
        default=_ABSENT, name="io.modelcontextprotocol/clientCapabilities"
    )
    traceparent: str | None = None


class Params(msgspec.Struct, frozen=True):
    """The parameters of every method that is served."""

    name: str | None = None
    uri: str | None = None
    arguments: msgspec.Raw = _ABSENT
    cursor: str | None = None
    version: str | None = msgspec.field(default=None, name="protocolVersion")
    meta: Meta | None = msgspec.field(default=None, name="_meta")


class Frame(msgspec.Struct, frozen=True):
    """One message; without a method it is a response, without an id a notification."""

    jsonrpc: str = ""
    id: msgspec.Raw = _ABSENT
    method: str | None = None
    params: Params | None = None

    @property
    def given(self) -> Params:
        """The parameters; none at all are as good as an empty object."""
        return self.params or _NONE


_NONE: Final = Params()


class _Outline(msgspec.Struct, frozen=True):
    """A frame whose parameters are not of the shape that is served."""

    id: msgspec.Raw = _ABSENT
    jsonrpc: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT


_FRAME: Final = msgspec.json.Decoder(Frame)
_OUTLINE: Final = msgspec.json.Decoder(_Outline)
_BATCH: Final = msgspec.json.Decoder(list[msgspec.Raw])


def frames_in(body: bytes) -> tuple[bytes, ...] | None:
    """Return the frames of a batch, or None for a single message.

    Raises RpcError PARSE for text that is not strict JSON (H-79); what passes is checked once.
    """
    try:
        canonical_json.check(body)
    except InvalidRequest as error:
        raise RpcError(Code.PARSE, error.message) from None
    if not body.lstrip().startswith(b"["):
        return None
    return tuple(bytes(each) for each in _BATCH.decode(body))


def read(body: bytes) -> Frame:
    """Return the frame; raises BadFrameError for what is none."""
    try:
        frame = _FRAME.decode(body)
    except msgspec.ValidationError as error:
        raise _bad(body, str(error)) from None
    if frame.jsonrpc != "2.0":
        raise BadFrameError(frame.id, Code.INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if frame.id and not _is_id(frame.id):
        raise BadFrameError(_ABSENT, Code.INVALID_REQUEST, "id must be text or a number")
    return frame


class BadFrameError(RpcError):
    """A message that is no frame; `id` is its id as far as it has one."""

    def __init__(self, identity: msgspec.Raw, code: Code, message: str) -> None:
        super().__init__(code, message)
        self.id = identity if identity and _is_id(identity) else _ABSENT


def result(identity: msgspec.Raw, body: bytes) -> bytes:
    """Return a response that carries a result, given as its JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(identity), body)


def failure(identity: msgspec.Raw, error: RpcError) -> bytes:
    """Return an error response; without an id that could be read it is null."""
    shown: dict[str, JsonValue] = {"code": int(error.code), "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (
        bytes(identity) or b"null",
        _ENCODER.encode(shown),
    )


def _bad(body: bytes, reason: str) -> BadFrameError:
    try:
        outline = _OUTLINE.decode(body)
    except msgspec.ValidationError:
        return BadFrameError(_ABSENT, Code.INVALID_REQUEST, "a message must be one JSON object")
    sound = bytes(outline.jsonrpc) == b'"2.0"' and bytes(outline.method).startswith(b'"')
    code = Code.INVALID_PARAMS if sound else Code.INVALID_REQUEST
    return BadFrameError(outline.id, code, reason.replace("`", ""))


def _is_id(identity: msgspec.Raw) -> bool:
    text = bytes(identity)
    return len(text) <= _LONGEST_ID and text[0] in _ID_STARTS
