"""The two eras of MCP: which one a request belongs to, and what the modern one demands of it.

Knows no tool; a request carries everything, nothing is remembered between two (H-33).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tfx.hub.transport.mcp.rpc import Code, Frame, RpcError

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
BATCHING: Final = frozenset({None, "2025-03-26", "2024-11-05"})
"""The revisions in which a body may hold several messages; the older ones sent no header."""

_NAME_OF: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")


@dataclass(slots=True)
class Routing:
    """The headers that repeat what the body says, and what a bridge adds: its agent and a key."""

    version: str | None = None
    method: str | None = None
    name: str | None = None
    agent: str | None = None
    session: str | None = None
    op_id: str | None = None
    twice: str | None = None


def routing(headers: Iterable[tuple[bytes, bytes]]) -> Routing:
    """Return the routing headers of a request."""
    found = Routing()
    for name, value in headers:
        field = _FIELDS.get(name)
        if field is not None:
            if getattr(found, field) is not None:
                found.twice = name.decode()
            setattr(found, field, value.decode("latin-1").strip())
    return found


_FIELDS: Final = {
    b"mcp-protocol-version": "version",
    b"mcp-method": "method",
    b"mcp-name": "name",
    b"tfx-agent": "agent",
    b"tfx-session": "session",
    b"tfx-op-id": "op_id",
}


def is_modern(frame: Frame, headers: Routing) -> bool:
    """Say in which era a request is made: its envelope or its header tells."""
    meta = frame.given.meta
    if meta is not None and meta.version is not None:
        return True
    return headers.version is not None and headers.version not in LEGACY


def check_modern(frame: Frame, headers: Routing) -> None:
    """Raise RpcError unless envelope and headers are whole, agree, and name our revision.

    Source: revision 2026-07-28, basic/index (per-request fields) and basic/transports.
    """
    meta = frame.given.meta
    if meta is None or meta.version is None or not meta.capabilities:
        raise RpcError(
            Code.INVALID_PARAMS,
            "params._meta must hold io.modelcontextprotocol/protocolVersion and "
            "io.modelcontextprotocol/clientCapabilities",
        )
    if headers.twice is not None:
        raise _mismatch(f"the header {headers.twice} stands twice")
    if headers.version != meta.version:
        raise _mismatch("MCP-Protocol-Version differs from the body's protocol version")
    if headers.method != frame.method:
        raise _mismatch("Mcp-Method differs from the body's method")
    field = _NAME_OF.get(frame.method or "")
    if field is not None:
        named = frame.given.name if field == "name" else frame.given.uri
        if named is not None and _plain(headers.name) != named:
            raise _mismatch(f"Mcp-Name differs from the body's {field}")
    if meta.version != MODERN:
        raise unsupported(meta.version)


def unsupported(version: str) -> RpcError:
    """Return the error that names the revisions a request may carry."""
    return RpcError(
        Code.UNSUPPORTED_VERSION,
        "this protocol version is not served",
        {"supported": [MODERN], "requested": version},
    )


def negotiated(asked: str | None) -> str:
    """Return the revision that an `initialize` gets: its own if we serve it, else our newest."""
    return asked if asked in LEGACY else LEGACY[0]


def _mismatch(message: str) -> RpcError:
    return RpcError(Code.HEADER_MISMATCH, message)


def _plain(value: str | None) -> str | None:
    """Return a header value decoded; a broken encoding equals no name."""
    encoded = None if value is None else _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        data = base64.b64decode(encoded[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == encoded[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None
