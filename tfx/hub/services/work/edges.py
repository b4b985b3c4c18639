"""Edges between tasks of a room: parent and blockers, without circles (WK-T11).

Reads only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import InvalidRequest
from tfx.hub.services.work.decisions import task_of
from tfx.hub.store import tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfx.hub.models import StreamNo
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx


def streams_of(
    tx: Tx, room: str, numbers: Iterable[int], *, deleted: bool = False
) -> tuple[StreamNo, ...]:
    """Return the streams of tasks of a room; raises NotFound `unknown-task`.

    With `deleted` also of those that are there no more.
    """

    def stream(number: int) -> StreamNo:
        known = tasks.find(tx, room, number) if deleted else None
        return (known or task_of(tx, room, number)).stream

    return tuple(stream(each) for each in sorted(set(numbers)))


def parent_of(tx: Tx, task: TaskRow, number: int) -> StreamNo | None:
    """Return the stream of a new parent, None for 0; raises InvalidRequest `cycle`."""
    if number == 0:
        return None
    found = task_of(tx, task.room, number)
    if tasks.reaches(tx, tasks.REACHES_BY_PARENTS, found.stream, task.stream):
        raise _cycle(task, number, "parent")
    return found.stream


def blockers_of(tx: Tx, task: TaskRow, numbers: Iterable[int]) -> tuple[StreamNo, ...]:
    """Return the streams of new blockers; raises InvalidRequest `cycle`."""
    found = streams_of(tx, task.room, numbers)
    for stream in found:
        if tasks.reaches(tx, tasks.REACHES_BY_BLOCKERS, stream, task.stream):
            other = tasks.by_stream(tx, stream)
            raise _cycle(task, 0 if other is None else other.number, "blocked_by")
    return found


def _cycle(task: TaskRow, number: int, field: str) -> InvalidRequest:
    return InvalidRequest(
        f"task {number} depends on task {task.number} already: that would be a circle",
        code="cycle",
        details={"field": field, "task": task.number, "other": number},
    )
