"""One hot path for each row of the operation table (H-27, K-21).

Decodes and checks a body, calls the bound handler, encodes its result; knows no rule.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from tfx.errors import AccessDenied, TfxError
from tfx.hub.models import Caller, Privilege
from tfx.hub.operation import Operation
from tfx.hub.operations import OPERATIONS
from tfx.hub.transport.http import ClientGoneError, Post
from tfx.hub.transport.json_text import decode
from tfx.hub.transport.replies import Message, Receive, Scope, Send, reply, succeed

Handler: TypeAlias = Callable[[Caller, Any], Awaitable[msgspec.Struct]]
Refuser: TypeAlias = Callable[[msgspec.Struct, AccessDenied], Awaitable[None]]
T = TypeVar("T")
U = TypeVar("U")

PREFIX = "/v1/"
_WAIT_FIELDS = ("wait_ms", "await_response_ms")
_SOON_S = 0.05


class Bound:
    """A row of the operation table bound to its handler: decode and check, then call."""

    def __init__(self, row: Operation, handler: Handler, refuser: Refuser | None = None) -> None:
        self.row = row
        self.fields = tuple(field.encode_name for field in msgspec.structs.fields(row.request))
        self._decoder = msgspec.json.Decoder(row.request)
        self._handler = handler
        self._refuser = refuser
        self._wait_field = next((name for name in _WAIT_FIELDS if name in self.fields), None)
        self._needs_operator = row.privilege is Privilege.OPERATOR

    def decode(self, caller: Caller, body: bytes, *, checked: bool = False) -> msgspec.Struct:
        """Return the request in a body, once the caller may make it (H-28, H-47).

        Raises AccessDenied `operator-needed`, InvalidRequest as `json_text.decode` does.
        """
        if self._needs_operator and not caller.operator:
            name = self.row.name
            raise AccessDenied(
                f"{name} needs the operator credential",
                code="operator-needed",
                hint=f"run it as the person at this machine: {self.row.command}",
            )
        return decode(body, self._decoder, self.fields, checked=checked)

    async def admit(self, caller: Caller, body: bytes) -> msgspec.Struct:
        """Return what `decode` does; where a refusal is kept as an event, keep it first (WK-K6).

        Raises what `decode` raises, whether or not that could be kept.
        """
        try:
            return self.decode(caller, body)
        except AccessDenied as error:
            if self._refuser is not None:
                with contextlib.suppress(TfxError):
                    request = decode(body, self._decoder, self.fields)
                    await self._refuser(request, error)
            raise

    async def run(
        self, caller: Caller, request: msgspec.Struct, receive: Receive
    ) -> msgspec.Struct:
        """Call the handler; a wait ends when the client hangs up."""
        if self._wait_field is not None and getattr(request, self._wait_field) > 0:
            return await unless_gone(self._handler(caller, request), receive)
        return await self._handler(caller, request)


def posts(bound: Iterable[Bound]) -> dict[str, Post]:
    """Return the paths of every operation."""
    return {PREFIX + each.row.name: _post(each) for each in bound}


def bind(
    handlers: Mapping[str, Handler], refusers: Mapping[str, Refuser] | None = None
) -> tuple[Bound, ...]:
    """Bind every row of the table; a row without a handler is a KeyError at start (K-21)."""
    keep = refusers or {}
    return tuple(Bound(row, handlers[row.name], keep.get(row.name)) for row in OPERATIONS.values())


def _post(bound: Bound) -> Post:
    async def serve(
        _scope: Scope, caller: Caller, body: bytes, receive: Receive, send: Send
    ) -> None:
        request = await bound.admit(caller, body)
        await reply(send, 200, succeed(await bound.run(caller, request, receive)))

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
