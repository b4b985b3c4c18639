"""The board as one value: all tasks of a workspace, who holds them, what is locked.

Reads page by page; a board that changed between two pages is read again. Draws nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tfx.cli.work.who import Wishes, speaker
from tfx.errors import AgentUnavailable
from tfx.hub.client import HubClient
from tfx.hub.wire.fields import Response
from tfx.hub.wire.leases import LeaseStatusResult
from tfx.hub.wire.work import LeaseView, LockView, TaskLine, TaskListResult

if TYPE_CHECKING:
    from tfx.core.paths import Paths

_PAGE: Final = 500
_PAGE_BYTES: Final = 262_144
_TRIES: Final = 5
_PAUSE_S: Final = 1.0
_READ_EVERY_S: Final = 15.0
_AWAY_S: Final = 30.0


class Board(Response, frozen=True, kw_only=True):
    """What `tfx task board` shows; `revision` rises with every change of it (WK-B2)."""

    room: str
    revision: int
    tasks: tuple[TaskLine, ...]
    leases: tuple[LeaseView, ...]
    locks: tuple[LockView, ...]
    locks_total: int


def read_board(client: HubClient, room: str, *, everything: bool) -> Board:
    """Return the board of a workspace, open tasks or all of them; raises what the hub raises."""
    found = _once(client, room, everything=everything)
    for _ in range(_TRIES):
        again = _page(client, room, everything=everything, after=0, limit=1)
        if again.revision == found.revision:
            break
        found = _once(client, room, everything=everything)
    return found


def boards(paths: Paths, wishes: Wishes, *, everything: bool, ages: bool) -> Iterator[Board]:
    """Yield the board now and whenever it has changed, for ever; for `ages` also at times.

    What is asked each second is the revision, and what is locked. A restart of the hub is bridged;
    raises AgentUnavailable when it is not there at first or stays away for 30 s.
    """
    last: Board | None = None
    away_since: float | None = None
    while True:
        try:
            with HubClient.of(paths) as client:
                room = speaker(paths, client, wishes).room
                for found in _reads(client, room, everything=everything):
                    away_since = None
                    if ages or found != last:
                        yield found
                    last = found
        except AgentUnavailable:
            away_since = away_since or time.monotonic()
            if last is None or time.monotonic() - away_since > _AWAY_S:
                raise
            time.sleep(_PAUSE_S)


def _reads(client: HubClient, room: str, *, everything: bool) -> Iterator[Board]:
    """Yield what is read: at once, soon after each change, and now and then."""
    found = read_board(client, room, everything=everything)
    read_at = time.monotonic()
    yield found
    while True:
        time.sleep(_PAUSE_S)
        page = _page(client, room, everything=everything, after=0, limit=1)
        same = (page.revision, page.locks) == (found.revision, found.locks)
        if same and time.monotonic() - read_at < _READ_EVERY_S:
            continue
        found = read_board(client, room, everything=everything)
        read_at = time.monotonic()
        yield found


def _once(client: HubClient, room: str, *, everything: bool) -> Board:
    page = _page(client, room, everything=everything, after=0, limit=_PAGE)
    tasks = [*page.tasks]
    first = page
    while page.next_after is not None:
        page = _page(client, room, everything=everything, after=page.next_after, limit=_PAGE)
        tasks += page.tasks
    asked = {"room": room, "limit": _PAGE, "max_bytes": _PAGE_BYTES}
    held = client.call_with("work_status", asked, LeaseStatusResult)
    return Board(
        room=first.room,
        revision=first.revision,
        tasks=tuple(tasks),
        leases=held.leases,
        locks=first.locks,
        locks_total=first.locks_total,
    )


def _page(
    client: HubClient, room: str, *, everything: bool, after: int, limit: int
) -> TaskListResult:
    fields = {
        "room": room,
        "all": everything,
        "after": after,
        "limit": limit,
        "max_bytes": _PAGE_BYTES,
    }
    return client.call_with("work_list", fields, TaskListResult)
