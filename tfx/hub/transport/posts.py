"""One hot path for each row of the operation table (H-27, K-21).

Decodes and checks a body, calls the bound handler, encodes its result; knows no rule.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from tfx.errors import AccessDenied
from tfx.hub.models import Caller, Privilege
from tfx.hub.operations import OPERATIONS, Operation
from tfx.hub.transport.http import ClientGoneError, Post
from tfx.hub.transport.json_text import decode
from tfx.hub.transport.replies import Message, Receive, Send, reply, succeed

Handler: TypeAlias = Callable[[Caller, Any], Awaitable[msgspec.Struct]]
T = TypeVar("T")
U = TypeVar("U")

PREFIX = "/v1/"
_WAIT_FIELDS = ("wait_ms", "await_response_ms")
_SOON_S = 0.05


def posts(handlers: Mapping[str, Handler]) -> dict[str, Post]:
    """Return the paths of every operation; a row without a handler is a KeyError at start."""
    return {PREFIX + row.name: _post(row, handlers[row.name]) for row in OPERATIONS.values()}


def _post(row: Operation, handler: Handler) -> Post:
    decoder = msgspec.json.Decoder(row.request)
    fields = tuple(field.encode_name for field in msgspec.structs.fields(row.request))
    wait_field = next((name for name in _WAIT_FIELDS if name in fields), None)
    needs_operator = row.privilege is Privilege.OPERATOR
    name = row.name

    async def serve(caller: Caller, body: bytes, receive: Receive, send: Send) -> None:
        if needs_operator and not caller.operator:
            raise AccessDenied(
                f"{name} needs the operator credential",
                code="operator-needed",
                hint=f"run it as the person at this machine: tfx hub {name.replace('_', ' ')}",
            )
        request = decode(body, decoder, fields)
        if wait_field is not None and getattr(request, wait_field) > 0:
            answer = await unless_gone(handler(caller, request), receive)
        else:
            answer = await handler(caller, request)
        await reply(send, 200, succeed(answer))

    return serve


async def unless_gone(call: Awaitable[T], receive: Receive) -> T:
    """Return the call's result; cancel it when the client hangs up first.

    So nothing is claimed for somebody who left. Raises ClientGoneError then.
    """
    working = asyncio.ensure_future(call)
    gone: asyncio.Future[Message] | None = None
    try:
        await asyncio.wait((working,), timeout=_SOON_S)  # most calls need no watch
        if not working.done():
            gone = asyncio.ensure_future(receive())
            await first_of(working, gone)
        if working.done():
            return working.result()
        raise ClientGoneError
    finally:
        await end(working)
        if gone is not None:
            await end(gone)


async def first_of(one: asyncio.Future[T], other: asyncio.Future[U]) -> None:
    """Wait until either is done."""
    both: tuple[asyncio.Future[T] | asyncio.Future[U], ...] = (one, other)
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)


async def end(task: asyncio.Future[T]) -> None:
    """Cancel what still runs and see it end."""
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
