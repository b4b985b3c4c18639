"""One line of JSON-RPC on the client's side: what the bridge must know of it, and its errors.

Passes lines on as they came; knows no connection.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final

from tfx.errors import JsonValue

PARSE: Final = -32700
INVALID_REQUEST: Final = -32600
HUB_FAILED: Final = -32000
"""The first of the codes that are the server's own; the hub's code stands in `data`."""

CANCELLED: Final = "notifications/cancelled"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the client. `ids` are those that are owed an answer."""

    data: bytes
    ids: tuple[JsonValue, ...] = ()
    is_batch: bool = False
    method: str = ""
    name: str | None = None
    version: str | None = None
    client: str | None = None
    cancels: JsonValue = None

    def headers(self) -> dict[str, str]:
        """Return the headers of the modern era; the older ones are served without any."""
        if self.version is None:
            return {}
        headers = {"MCP-Protocol-Version": self.version, "Mcp-Method": _header(self.method)}
        if self.name is not None:
            headers["Mcp-Name"] = _header(self.name)
        return headers


def read(data: bytes) -> Line | None:
    """Return a line, or None for one that is not JSON."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):
        ids = tuple(_ids_of(each) for each in document)
        return Line(data, tuple(each for some in ids for each in some), is_batch=True)
    if not isinstance(document, dict):
        return Line(data, (None,))
    method = document.get("method")
    method = method if isinstance(method, str) else ""
    params = document.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    info = params.get("clientInfo") or meta.get("io.modelcontextprotocol/clientInfo")
    return Line(
        data,
        _ids_of(document),
        method=method,
        name=_text(params.get(_NAMED_BY.get(method, ""))),
        version=_text(meta.get("io.modelcontextprotocol/protocolVersion")),
        client=_text(info.get("name")) if isinstance(info, dict) else None,
        cancels=params.get("requestId") if method == CANCELLED else None,
    )


def failure(identity: JsonValue, code: int, message: str, data: JsonValue = None) -> bytes:
    """Return an error response as a line."""
    error: dict[str, JsonValue] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    document = {"jsonrpc": "2.0", "id": identity, "error": error}
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _ids_of(document: object) -> tuple[JsonValue, ...]:
    if not isinstance(document, dict) or "id" not in document or "method" not in document:
        return ()
    identity = document["id"]
    return (identity if isinstance(identity, (str, int, float)) else None,)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _header(value: str) -> str:
    """Return a value as a header carries it: encoded unless it is plain printable ASCII."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not value.startswith("=?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="
