"""Answers over HTTP: the success envelope, the error envelope and their status codes (H-27).

Knows no operation.
"""

from __future__ import annotations

import http
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from tfx.errors import TfxError
from tfx.hub.failures import HTTP_STATUS, to_wire

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_STATUS_OF_CODE: Mapping[str, int] = {
    "actor-missing": 403,  # the bearer is right: 401 would send the client for another one
    "bad-host": 421,
    "bad-origin": 403,
    "method-not-allowed": 405,
    "too-large": 413,
    "unsupported-media-type": 415,
}
_TYPE = (b"content-type", b"application/json")
_NO_STORE = (b"cache-control", b"no-store")
_ENCODER = msgspec.json.Encoder()


def succeed(data: object) -> bytes:
    """Return `{"ok":true,"data":…}`."""
    return b'{"ok":true,"data":' + _ENCODER.encode(data) + b"}"


def fail(error: TfxError) -> bytes:
    """Return `{"ok":false,"error":{code,kind,message,hint,details}}`."""
    return _ENCODER.encode({"ok": False, "error": to_wire(error)})


def status_of(error: TfxError) -> int:
    """Return the HTTP status of an error."""
    return _STATUS_OF_CODE.get(error.reason) or HTTP_STATUS[error.kind]


async def reply(send: Send, status: int, body: bytes) -> None:
    """Send one JSON answer."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [_TYPE, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def accept(send: Send) -> None:
    """Take a message that gets no answer: 202 without a body."""
    await send(
        {
            "type": "http.response.start",
            "status": 202,
            "headers": [(b"content-length", b"0")],
        }
    )
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Send, error: TfxError) -> None:
    """Send an error; 405 names the method that works, 401 the scheme."""
    status = status_of(error)
    body = fail(error)
    headers = [_TYPE, _NO_STORE, (b"content-length", b"%d" % len(body))]
    if status == http.HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", str(error.details.get("allow", "POST")).encode()))
    if status == http.HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
