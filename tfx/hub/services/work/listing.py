"""A page of a board: tasks in the order of creation, and what is locked, within its size (H-31).

Reads only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tfx.hub.services.shapes import ENVELOPE_BYTES, fitting
from tfx.hub.services.work.shapes import line, lock_view
from tfx.hub.store import reviews, tasks
from tfx.hub.wire.work import TaskListResult

if TYPE_CHECKING:
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.wire.work import TaskListRequest

_SCANNED: Final = 5_000
"""A list with a filter looks at so many tasks at most before it hands out a cursor."""


def page_of(reader: Reader, room: str, request: TaskListRequest) -> TaskListResult:
    """Return the next page; locks have half of it at most."""
    rows, following = _page(reader, room, request)
    left = request.max_bytes - ENVELOPE_BYTES
    locks = reviews.locks_of_room(reader, room)
    shown, _ = fitting((lock_view(reader, each) for each in locks), left // 2)
    left -= len(msgspec.json.encode(shown))
    lines, whole = fitting([line(reader, row) for row in rows], left)
    return TaskListResult(
        room=room,
        tasks=lines,
        locks=shown,
        locks_total=len(locks),
        next_after=following if whole else lines[-1].task,
        revision=tasks.revision(reader, room),
    )


def _page(reader: Reader, room: str, request: TaskListRequest) -> tuple[list[TaskRow], int | None]:
    """Return the next page and the number it ended at, None when nothing is left."""
    closed = request.all or bool(request.status)
    kept: list[TaskRow] = []
    after, seen = request.after, 0
    filtered = bool(request.status) or request.assignee is not None
    while seen < _SCANNED:
        size = min(500, _SCANNED - seen) if filtered else request.limit + 1
        rows = tasks.page(reader, room, after, size, ready=request.ready, closed=closed)
        for row in rows:
            after = row.number
            if request.status and row.status not in request.status:
                continue
            if request.assignee not in {None, row.assignee}:
                continue
            kept.append(row)
            if len(kept) > request.limit:
                return kept[:-1], kept[-2].number
        seen += len(rows)
        if len(rows) < size:
            return kept, None
    return kept, after
