"""Tasks: add, list, show, next, delete.

Knows no SQL and no transport; changes of a task are `changing`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import TraceId
from tfx.hub.services import endings
from tfx.hub.services.work import admission, listing, people
from tfx.hub.services.work.claiming import claim, names_of
from tfx.hub.services.work.decisions import locked, task_of, there
from tfx.hub.services.work.edges import streams_of
from tfx.hub.services.work.recording import Asked, Refused, decide, note, recorded, refusal
from tfx.hub.services.work.shapes import Depth
from tfx.hub.store import leases, reviews, tasks
from tfx.hub.store.events import RequestNoted
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.store.work_bodies import TaskCreated, WorkClaimed
from tfx.hub.wire.work import (
    TaskAddRequest,
    TaskDeleteRequest,
    TaskDeleteResult,
    TaskListRequest,
    TaskListResult,
    TaskNextRequest,
    TaskNextResult,
    TaskResult,
    TaskShowRequest,
)
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Caller
    from tfx.hub.services.work.people import Worker
    from tfx.hub.services.work.shapes import Shapes
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx

_DUE: Final = 5_000
"""So many leases that are over are ended before the next task is picked."""


class Tasking:
    """What is to be done."""

    def __init__(self, store: Store, shapes: Shapes) -> None:
        self._store = store
        self._shapes = shapes

    async def work_add(self, caller: Caller, request: TaskAddRequest) -> TaskResult:
        """Create a task: proposed, and nobody's (WK-T3), unless `accept` says it is wanted.

        Raises StateConflict `duplicate-work`, `lock-active`, `idempotency-conflict`; NotFound
        `unknown-task` also when the task of the same key was deleted; InvalidRequest for a blank
        title.
        """
        op = op_of("work_add", request)

        def command(tx: Tx) -> TaskResult | Refused:
            who = people.worker(tx, caller, request)
            before = tx.done_before(who.actor, op)
            if before is not None:
                known = tasks.by_stream(tx, before.stream)
                if known is not None:
                    return TaskResult(task=self._shapes.task(tx, there(known)))
            same = _same_key(tx, who, request)
            if same is not None:
                answer = TaskResult(task=self._shapes.task(tx, there(same)))
                note(tx, "add", task=same)
                return answer
            stopped = reviews.lock_over(tx, who.room, None)
            if stopped is not None:
                return refusal(tx, locked(stopped), who, "add", lock=stopped)
            edges = _checked(tx, who.room, request)
            twin = admission.twin_of(tx, who.room, _marks(request))
            if twin is not None:
                admission.tell(tx, who, twin, request.title)
                error = admission.duplicate(tx, who, *twin)
                return refusal(tx, error, who, "add", task=twin[0])
            made = _create(tx, who, request, edges, op)
            return TaskResult(task=self._shapes.task(tx, made))

        return await decide(self._store, command, Asked(request, "add", guarded=True))

    async def work_list(self, caller: Caller, request: TaskListRequest) -> TaskListResult:
        """List tasks in the order of creation, open ones by default (WK-T7)."""
        del caller

        def query(reader: Reader) -> TaskListResult:
            room = people.room_of(reader, request)
            return listing.page_of(reader, room, request)

        return await self._store.read(query)

    async def work_show(self, caller: Caller, request: TaskShowRequest) -> TaskResult:
        """Show one task."""
        del caller

        def query(reader: Reader) -> TaskResult:
            found = task_of(reader, people.room_of(reader, request), request.task)
            return TaskResult(task=self._shapes.task(reader, found, Depth.WHOLE))

        return await self._store.read(query)

    async def work_next(self, caller: Caller, request: TaskNextRequest) -> TaskNextResult:
        """Pick the first ready task and claim it in one transaction (WK-T12).

        Raises StateConflict `nothing-ready`, or `lock-active` where the room is locked.
        """
        op = op_of("work_next", request)

        def command(tx: Tx) -> TaskNextResult | Refused:
            if not request.claim:
                seen = people.worker(tx, caller, request)
                look = self._first(tx, seen, seen.actor)
                if isinstance(look, Refused):
                    return look
                seen_task = self._shapes.task(tx, look, Depth.CLAIMED)
                return TaskNextResult(task=seen_task, lease=None)
            who, agent, session = people.supervised(tx, caller, request)
            before = tx.done_before(agent, op)
            if before is not None and isinstance(before.body, WorkClaimed):
                return self._taken(tx, before.body.lease)
            found = self._first(tx, who, agent)
            if isinstance(found, Refused):
                return found
            holder = leases.Holder(
                agent,
                session,
                label=agent,
                instance=request.instance,
                worktree=request.worktree,
                ttl_ms=request.ttl_ms,
            )
            return recorded(
                tx,
                found,
                who,
                "next",
                guarded=True,
                work=lambda: self._taken(tx, claim(tx, found, holder, op).id),
            )

        return await decide(self._store, command, Asked(request, "next", guarded=request.claim))

    async def work_delete(self, caller: Caller, request: TaskDeleteRequest) -> TaskDeleteResult:
        """Delete a task, its leases first (WK-L22, WK-L23)."""
        op = op_of("work_delete", request)

        def command(tx: Tx) -> TaskDeleteResult | Refused:
            who = people.worker(tx, caller, request)
            found = tasks.find(tx, who.room, request.task)
            before = tx.done_before(who.actor, op)
            if before is not None:
                deleted = not isinstance(before.body, RequestNoted)
                return TaskDeleteResult(task=request.task, deleted=deleted)
            if found is not None and found.deleted_at_ms is not None:
                note(tx, "delete", task=found)
                return TaskDeleteResult(task=request.task, deleted=False)
            task = task_of(tx, who.room, request.task)
            held = leases.active(tx, task.stream)
            if held is not None:
                endings.revoke(tx, task, held, request.reason, who.actor)
            endings.end_review(tx, task, request.reason, who.actor)
            lock = reviews.lock_of(tx, who.room, task.stream)
            if lock is not None:  # nobody could clear it any more
                reviews.clear_lock(tx, lock, who.actor, None)
            tasks.delete(tx, task, request.reason, who.actor, op)
            return TaskDeleteResult(task=task.number, deleted=True)

        return await decide(self._store, command, Asked(request, "delete", guarded=False))

    def _first(self, tx: Tx, who: Worker, agent: AgentId) -> TaskRow | Refused:
        room = who.room
        # A lease that is over may hide a ready task: it ends here as the sweeper would end it.
        for lease in leases.due(tx, _DUE):
            task = tasks.by_stream(tx, lease.task)
            if task is not None and task.room == room:
                endings.expire(tx, task, lease)
        found = tasks.first_ready(tx, room, names_of(tx, agent))
        if found is None:
            stopped = reviews.lock_over(tx, room, None)
            if stopped is not None:
                return refusal(tx, locked(stopped), who, "next", lock=stopped)
            raise StateConflict(
                "no task is ready",
                code="nothing-ready",
                hint="tfx task list",
                details={"room": room},
            )
        return found

    def _taken(self, tx: Tx, lease_id: str) -> TaskNextResult:
        lease = leases.find(tx, lease_id)
        task = None if lease is None else tasks.by_stream(tx, lease.task)
        if lease is None or task is None:
            raise StateConflict("what was taken is forgotten", code="nothing-ready")
        return TaskNextResult(
            task=self._shapes.task(tx, task, Depth.CLAIMED),
            lease=self._shapes.lease(tx, lease, task),
        )


def _same_key(tx: Tx, who: Worker, request: TaskAddRequest) -> TaskRow | None:
    """Return the task of the same client key; raises StateConflict for other content (WK-T6)."""
    if request.client_key is None:
        return None
    known = tasks.by_key(tx, who.room, request.client_key)
    if known is None:
        return None
    edges = _edges(tx, who.room, request, deleted=True)  # they were there when it was made
    wanted = _body(who, request, edges, known.number, known.trace_id)
    wanted = msgspec.structs.replace(wanted, author=known.author)  # a key is the room's
    if tasks.first_text(tx, known) != tasks.text_of(wanted):
        raise StateConflict(
            f"the key {request.client_key!r} was used for another task",
            code="idempotency-conflict",
            hint="use a new client_key for a new task",
            details={"client_key": request.client_key, "task": known.number},
        )
    return known


@dataclass(frozen=True, slots=True)
class _Edges:
    """The streams of what a new task waits for and is part of."""

    blockers: tuple[int, ...]
    parent: int | None


def _edges(tx: Tx, room: str, request: TaskAddRequest, *, deleted: bool = False) -> _Edges:
    parents = () if request.parent is None else (request.parent,)
    found = streams_of(tx, room, parents, deleted=deleted)
    blockers = streams_of(tx, room, request.blocked_by, deleted=deleted)
    return _Edges(blockers, found[0] if found else None)


def _body(
    who: Worker, request: TaskAddRequest, edges: _Edges, number: int, trace_id: str
) -> TaskCreated:
    return TaskCreated(
        author=who.actor,
        blockers=list(edges.blockers),
        branch=request.branch,
        client_key=request.client_key,
        detail=request.detail,
        exclusive=request.exclusive,
        number=number,
        output=request.output,
        parent=edges.parent,
        pr=request.pr,
        priority=request.priority,
        room=who.room,
        source_message=request.source_message,
        source_task=request.source_task,
        status=(TaskStatus.ACCEPTED if request.accept else TaskStatus.PROPOSED).value,
        title=request.title,
        trace_id=trace_id,
    )


def _checked(tx: Tx, room: str, request: TaskAddRequest) -> _Edges:
    """Return the edges of a task that can be made: what cannot be is no duplicate of anything."""
    if not request.title.strip():
        raise InvalidRequest("title is blank", details={"field": "title"})
    return _edges(tx, room, request)


def _create(tx: Tx, who: Worker, request: TaskAddRequest, edges: _Edges, op: Op | None) -> TaskRow:
    trace_id = TraceId(new_id(tx.now_ms))
    body = _body(who, request, edges, tasks.next_number(tx, who.room), trace_id)
    event = tasks.create(tx, body, who.actor, op)
    made = tasks.by_stream(tx, event.stream)
    if made is None:
        raise StateConflict("the task was not stored", code="stale")
    return made


def _marks(request: TaskAddRequest) -> dict[str, str | None]:
    return {
        "source_message": request.source_message,
        "source_task": request.source_task,
        "branch": request.branch,
        "pr": request.pr,
        "output": request.output,
    }
