"""The log as clients read it: from a cursor, in pages, without secrets.

Knows no SQL and no transport.
"""

from __future__ import annotations

import re
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import AgentId, Cursor, MessageType
from tfx.hub.store import views
from tfx.hub.store.wakeups import APPENDED
from tfx.hub.wire.views import EventsRequest, EventsResult, EventView

if TYPE_CHECKING:
    from tfx.core.database import Row
    from tfx.hub.models import Caller
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store

_CURSOR = re.compile(r"(\d{1,18})-([0-9a-f]{32})(?:-(\d{1,18}))?\Z")
_NOTHING = (0, bytes(16))
_HIDDEN_KINDS = frozenset({"human_request_answered"})
_HIDDEN_TYPES = frozenset({MessageType.HUMAN_RESPONSE.value})


class Events:
    """The tail of the log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def events(self, caller: Caller, request: EventsRequest) -> EventsResult:
        """Return the log after a cursor; with `wait_ms` wait for the next event.

        Raises StateConflict `cursor-ahead` (EV-D6) or `cursor-expired` (H-73); InvalidRequest
        `bad-cursor`.
        """
        del caller
        until = monotonic() + request.wait_ms / 1000
        wanted = request
        with self._store.wakeups.listen(APPENDED, counted=request.wait_ms > 0) as waiter:
            while True:
                page = await self._store.read(partial(_events, wanted))
                if page.events or not await waiter.wait(until - monotonic()):
                    return page
                wanted = msgspec.structs.replace(wanted, after=page.next_cursor, tail=False)


def _events(request: EventsRequest, reader: Reader) -> EventsResult:
    row = reader.one(views.FORGOTTEN)
    forgotten = int(row[0] or 0) if row is not None else 0
    after = _start(reader, request, forgotten)
    shown: list[EventView] = []
    room = request.max_bytes - 256
    more = False
    for row in reader.all(views.EVENTS, (after[0], request.limit + 1)):
        event = _event(row, forgotten)
        size = len(msgspec.json.encode(event)) + 1
        if len(shown) == request.limit or (shown and size > room):
            more = True
            break
        if size > room:
            event = msgspec.structs.replace(event, payload=None)
        room -= size
        shown.append(event)
    here = shown[-1].cursor if shown else Cursor(views.cursor(*after, forgotten))
    return EventsResult(events=tuple(shown), next_cursor=here, more=more)


def _start(reader: Reader, request: EventsRequest, forgotten: int) -> tuple[int, bytes]:
    """Return the seq and id to read after, or refuse the cursor."""
    last = _place(reader.one(views.LAST_EVENT)) or _NOTHING
    if request.tail:
        return last
    if request.after is None:
        return _NOTHING
    match = _CURSOR.match(request.after)
    if match is None:
        raise InvalidRequest(
            "after is not a cursor of this hub", code="bad-cursor", details={"field": "after"}
        )
    seq, wanted, known = int(match[1]), bytes.fromhex(match[2]), int(match[3] or 0)
    found = reader.one(views.EVENT_ID, (seq,))
    if seq > max(last[0], forgotten) or (found is not None and found[0] != wanted):
        raise StateConflict(
            "the log does not have what the cursor saw; read it again from a cursor that it has",
            code="cursor-ahead",
            details={"cursor": request.after, "last": views.cursor(*last, forgotten)},
        )
    if max(seq, known) < forgotten:
        raise StateConflict(
            "events after the cursor are forgotten; read what is left from the oldest one",
            code="cursor-expired",
            hint="read without a cursor",
            details={"cursor": request.after, "oldest": _oldest(reader, forgotten)},
        )
    return seq, wanted


def _oldest(reader: Reader, forgotten: int) -> str:
    """Return the cursor of the oldest event that is left."""
    first = _place(reader.one(views.FIRST_EVENT)) or _NOTHING
    return views.cursor(*first, forgotten)


def _place(row: Row | None) -> tuple[int, bytes] | None:
    if row is None or not isinstance(row[0], int) or not isinstance(row[1], bytes):
        return None
    return row[0], row[1]


def _event(row: Row, forgotten: int) -> EventView:
    seq, event_id, at_ms, kind, stream, actor, body, payload = row
    if not (isinstance(seq, int) and isinstance(at_ms, int) and isinstance(stream, int)):
        raise TypeError("the log has a row that is none")
    hidden = kind in _HIDDEN_KINDS or (
        kind in {"message_posted", "reply_posted"}
        and msgspec.json.decode(str(body)).get("type") in _HIDDEN_TYPES
    )
    shown = isinstance(payload, bytes) and not hidden and _is_json(payload)
    return EventView(
        cursor=Cursor(
            views.cursor(seq, event_id if isinstance(event_id, bytes) else b"", forgotten)
        ),
        seq=seq,
        at_ms=at_ms,
        kind=str(kind),
        stream=stream,
        actor=AgentId(str(actor)),
        body=msgspec.Raw(str(body).encode()),
        payload=msgspec.Raw(payload if shown and isinstance(payload, bytes) else b"null"),
    )


def _is_json(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True
