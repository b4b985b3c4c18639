"""The HTTP application: doors, then one dictionary look-up, one decode, one call, one encode.

Knows the operation table and the handlers bound to it, and neither rules nor SQL. Hot paths never
reach Starlette's router (H-34); the doors stand before every path, unknown ones included.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tfx.errors import InvalidRequest, NotFound, OperationFailed, TfxError
from tfx.hub.models import Caller
from tfx.hub.transport.auth import Doors, Headers
from tfx.hub.transport.replies import Message, Receive, Scope, Send, refuse

MAX_BODY_BYTES = 1024 * 1024
HEALTH = "/health"
EVENTS = "/v1/events"
"""The stream by GET; the operation of that name by POST."""

Asgi: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Post: TypeAlias = Callable[[Caller, bytes, Receive, Send], Awaitable[None]]
"""Answers one body; it may listen on `receive` for the client's hanging up."""

_JSON = b"application/json"
_logger = logging.getLogger("tfx.hub.http")


@dataclass(slots=True)
class Traffic:
    """What the transport counts for metrics, idle exit and drain."""

    requests: int = 0
    errors: int = 0
    open_calls: int = 0
    open_streams: int = 0
    last_request_ms: int = 0


class Application:
    """The ASGI application of the hub."""

    def __init__(
        self,
        doors: Doors,
        hot: Mapping[str, Post],
        rest: Asgi,
        *,
        traffic: Traffic,
        now_ms: Callable[[], int],
        refused: Callable[[str], None],
    ) -> None:
        self._doors = doors
        self._hot = dict(hot)
        self._rest = rest
        self._traffic = traffic
        self._now_ms = now_ms
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a handler's fault is logged with an id and ends nothing (H-19)."""
        if scope["type"] != "http":
            return
        traffic = self._traffic
        traffic.requests += 1
        traffic.open_calls += 1
        try:
            await self._serve(scope, receive, send)
        except TfxError as error:
            self._refused(error.reason)
            await refuse(send, error)
        except ClientGoneError:
            pass
        except Exception as error:  # noqa: BLE001  (one bad request must not end the hub)
            traffic.errors += 1
            await refuse(send, _logged(error, scope["path"]))
        finally:
            traffic.open_calls -= 1
            traffic.last_request_ms = self._now_ms()  # of its end: a long wait was use too

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        path: str = scope["path"]
        self._doors.admit(headers)
        if path == HEALTH:
            await self._rest(scope, receive, send)
            return
        caller = self._doors.caller(headers)
        post = self._hot.get(path)
        if post is None or (path == EVENTS and scope["method"] == "GET"):
            if path.startswith("/v1/") and path != EVENTS:
                raise _no_such_operation(path)
            scope["state"]["caller"] = caller
            await self._rest(scope, receive, send)
            return
        if scope["method"] != "POST":
            raise InvalidRequest(
                f"{path} takes POST, not {scope['method']}",
                code="method-not-allowed",
                details={"allow": "GET, POST" if path == EVENTS else "POST"},
            )
        _check_type(headers)
        body = await _read(receive)
        await post(caller, body, receive, send)


class ClientGoneError(Exception):
    """The client hung up before its answer was there."""


def _check_type(headers: Headers) -> None:
    """Refuse a body that a web page could send without asking first (H-44)."""
    given = b""
    for name, value in headers:
        if name == b"content-type":
            given = value
        elif name == b"content-length" and len(value) > 6 and int(value) > MAX_BODY_BYTES:  # noqa: PLR2004  (seven digits are the least that can be too many)
            raise _too_large()
        elif name == b"content-encoding" and value != b"identity":
            raise InvalidRequest("a compressed body is not read", code="unsupported-media-type")
    if given != _JSON and given.partition(b";")[0].strip().lower() != _JSON:
        raise InvalidRequest(
            "the body must be application/json",
            code="unsupported-media-type",
            details={"received": given.decode("latin-1")[:100] or None},
        )


async def _read(receive: Receive) -> bytes:
    """Return the whole body, chunked or not; raises InvalidRequest `too-large` past the limit."""
    message: Message = await receive()
    if message["type"] != "http.request":
        raise ClientGoneError
    body: bytes = message["body"]
    if not message["more_body"] and len(body) <= MAX_BODY_BYTES:
        return body
    parts = bytearray(body)
    while message["more_body"]:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError
        parts += message["body"]
        if len(parts) > MAX_BODY_BYTES:
            raise _too_large()
    if len(parts) > MAX_BODY_BYTES:
        raise _too_large()
    return bytes(parts)


def _too_large() -> InvalidRequest:
    return InvalidRequest(
        f"the body is larger than {MAX_BODY_BYTES} bytes",
        code="too-large",
        details={"limit": MAX_BODY_BYTES},
    )


def _no_such_operation(path: str) -> NotFound:
    return NotFound(f"there is no operation at {path[:200]}", code="unknown-operation")


def _logged(error: Exception, path: str) -> OperationFailed:
    incident = secrets.token_hex(6)
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_qualname}:{place.tb_lineno}" if place else "?"
    # the exception's text may quote a payload or a secret; its type and place do not
    _logger.error("incident %s: %s at %s serving %s", incident, type(error).__name__, where, path)
    return OperationFailed(
        f"the hub failed at this request; its log has the incident {incident}",
        code="internal",
        hint="tfx hub logs",
        details={"incident": incident},
    )
