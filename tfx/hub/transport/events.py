"""The event stream: server-sent events from a cursor, read in pages (H-26).

Knows the `events` operation only; no read stays open between pages (EV-S7).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tfx.errors import InvalidRequest, StateConflict, TfxError
from tfx.hub.models import Caller, Cursor
from tfx.hub.transport.http import Traffic
from tfx.hub.transport.posts import end, first_of
from tfx.hub.transport.replies import fail
from tfx.hub.wire.views import EventsRequest, EventsResult

Read = Callable[[Caller, EventsRequest], Awaitable[EventsResult]]

KEEP_ALIVE_MS = 15_000
MOST_STREAMS = 64
_PAGE = 100
_ENCODER = msgspec.json.Encoder()


class EventStream:
    """Serves `GET /v1/events?after=CURSOR`, to at most 64 readers at once (H-49)."""

    def __init__(self, read: Read, traffic: Traffic, draining: asyncio.Event) -> None:
        self._read = read
        self._traffic = traffic
        self._draining = draining

    async def __call__(self, request: Request) -> Response:
        """Open a stream; a cursor that does not fit is refused before it begins."""
        if self._traffic.open_streams >= MOST_STREAMS:
            raise StateConflict(
                f"{MOST_STREAMS} event streams are open, which is the most", code="too-many-streams"
            )
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        unknown = set(request.query_params) - {"after"}
        if unknown:
            raise InvalidRequest(
                f"there is no parameter {min(unknown)}; /v1/events takes after",
                code="unknown-field",
                details={"field": min(unknown), "known": ["after"]},
            )
        caller: Caller = request.state.caller
        first = await self._read(caller, _page(Cursor(after) if after else None))
        return StreamingResponse(
            self._lines(caller, first),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    async def _lines(self, caller: Caller, page: EventsResult) -> AsyncIterator[bytes]:
        self._traffic.open_streams += 1
        try:
            yield b": tfx events\n\n"
            while not self._draining.is_set():
                for event in page.events:
                    yield b"id: %b\nevent: %b\ndata: %b\n\n" % (
                        event.cursor.encode(),
                        event.kind.encode(),
                        _ENCODER.encode(event),
                    )
                if not page.events and not page.more:
                    yield b": keep-alive\n\n"
                following = await self._next(caller, page.next_cursor)
                if following is None:
                    return
                page = following
        except TfxError as error:
            yield b"event: error\ndata: %b\n\n" % fail(error)
        finally:
            self._traffic.open_streams -= 1

    async def _next(self, caller: Caller, cursor: Cursor) -> EventsResult | None:
        """Wait for the next page; None when the hub drains."""
        reading = asyncio.ensure_future(self._read(caller, _page(cursor, KEEP_ALIVE_MS)))
        draining = asyncio.ensure_future(self._draining.wait())
        try:
            await first_of(reading, draining)
            return reading.result() if reading.done() else None
        finally:
            await end(reading)
            await end(draining)


def _page(after: Cursor | None, wait_ms: int = 0) -> EventsRequest:
    return EventsRequest(after=after, limit=_PAGE, wait_ms=wait_ms)
