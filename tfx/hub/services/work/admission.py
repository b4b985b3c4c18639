"""New work that is somebody's work already is not let in (WK-K5).

Compares by source, PR, branch, output and artifact with the open tasks of the room. Marks come in
the one spelling of the wire.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.errors import StateConflict
from tfx.hub.services import notices
from tfx.hub.services.work import judging
from tfx.hub.store import agents, leases, tasks, twins
from tfx.hub.wire.identities import spellings
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfx.errors import JsonValue
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

PLACES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "source_message": ("source_message",),
        "source_task": ("source_task",),
        "branch": ("branch", "artifact branch", "output"),
        "pr": ("pr", "artifact pr", "output"),
        "commit": ("artifact commit", "output"),
        "output": ("output", "pr", "branch", "artifact pr", "artifact branch", "artifact commit"),
    }
)
"""Where else a mark of a kind can stand: files and links are nobody's alone."""

REVIEW: Final = "review"
WORK: Final = "work"


def twin_of(
    source: Tx | Reader, room: str, marks: Mapping[str, str | None], except_for: int = 0
) -> tuple[TaskRow, str] | None:
    """Return an open task with one of these marks, and by which one it was found.

    `marks` are of the kinds of `PLACES`; none and empty ones match nothing.
    """
    for kind, text in marks.items():
        found = _twin(source, room, kind, text, except_for) if text else None
        if found is not None:
            return found, kind
    return None


def twin_of_task(source: Tx | Reader, task: TaskRow) -> tuple[TaskRow, str] | None:
    """Return another open task that is the same work as this one, by all that it has."""
    for kind, text in marks_of(source, task):
        found = _twin(source, task.room, kind, text, task.stream)
        if found is not None:
            return found, kind
    return None


def marks_of(source: Tx | Reader, task: TaskRow) -> Iterator[tuple[str, str]]:
    """Yield every mark of a task: its own fields and its artifacts."""
    for kind in ("source_message", "source_task", "branch", "pr", "output"):
        text: str | None = getattr(task, kind)
        if text:
            yield kind, text
    for attached, identity, *_ in tasks.artifacts(source, task.stream):
        if attached in PLACES:
            yield str(attached), str(identity)


def must_be_new(tx: Tx, who: Worker, twin: tuple[TaskRow, str] | None, title: str) -> None:
    """Raise StateConflict `duplicate-work` for a twin, and tell who has it (WK-K5).

    `title` is what was proposed. Call it when every other check is done: the notice is an event.
    """
    if twin is not None:
        tell(tx, who, twin, title)
        raise duplicate(tx, who, *twin)


def tell(tx: Tx, who: Worker, twin: tuple[TaskRow, str], title: str) -> None:
    """Tell who holds the twin, or whom it is given to, who proposed what."""
    task, kind = twin
    held = leases.active(tx, task.stream)
    owner = task.assignee if held is None else held.agent
    known = None if owner is None or owner == who.agent else agents.find(tx, owner)
    if known is not None and known.retired_at_ms is None:
        notices.proposed(tx, task, known.id, who.actor, kind, title)


def duplicate(source: Tx | Reader, who: Worker, found: TaskRow, kind: str) -> StateConflict:
    """Return the error that names the task that is there already, and the way to it."""
    route = route_to(source, who, found)
    return StateConflict(
        f"task {found.number} is the same work: it has this {kind.replace('_', ' ')}",
        code="duplicate-work",
        hint=_hint(found, route),
        details={**_about(found, kind, route), "task": found.number},
    )


def mismatch(  # noqa: PLR0917  (who asks for what, and what is there)
    source: Tx | Reader, who: Worker, task: TaskRow, found: TaskRow, kind: str, identity: str
) -> StateConflict:
    """Return the error for an artifact that is another open task's."""
    route = route_to(source, who, found)
    return StateConflict(
        f"{identity} belongs to task {found.number}",
        code="artifact-mismatch",
        hint=_hint(found, route),
        details={**_about(found, kind, route), "task": task.number, "other": found.number},
    )


def route_to(source: Tx | Reader, who: Worker, found: TaskRow) -> str:
    """Return `review` where the work waits for a judge and this is not its maker, else `work`."""
    is_maker = who.actor in {found.author, found.assignee, *judging.authors(source, found)}
    return REVIEW if found.status == TaskStatus.IN_REVIEW and not is_maker else WORK


def _twin(source: Tx | Reader, room: str, kind: str, text: str, except_for: int) -> TaskRow | None:
    texts, exact = spellings(kind, text)
    for place in PLACES[kind]:
        mark = "!" if exact and not place.startswith("source") else ""
        found = twins.twin(source, room, place + mark, texts, except_for)
        if found is not None:
            return found
    return None


def _about(found: TaskRow, kind: str, route: str) -> dict[str, JsonValue]:
    return {
        "matches": kind,
        "status": found.status,
        "assignee": found.assignee,
        "route": route,
    }


def _hint(found: TaskRow, route: str) -> str:
    if route == REVIEW:
        return f"tfx lease review claim {found.number}"
    if found.assignee is not None:
        return f"ask {found.assignee} for it: tfx lease handoff {found.number} --to YOU"
    return f"tfx task show {found.number}"
