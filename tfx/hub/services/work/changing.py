"""Changes of a task: its status, its fields, its assignee, its artifacts.

Every change passes the fence of `decisions`; knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.services import endings
from tfx.hub.services.work import (
    admission,
    assigning,
    claiming,
    edges,
    judging,
    moves,
    people,
    policy,
    reopening,
)
from tfx.hub.services.work.decisions import (
    compare,
    may_change,
    not_lost,
    observed,
    task_of,
)
from tfx.hub.services.work.recording import Asked, decide, recorded
from tfx.hub.services.work.shapes import Depth
from tfx.hub.store import tasks, twins
from tfx.hub.store.ops import op_of
from tfx.hub.store.work_bodies import ArtifactAttached, TaskChanged
from tfx.hub.wire.work import TaskAttachRequest, TaskResult, TaskUpdateRequest
from tfx.hub.work_models import ArtifactKind, TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import Caller, Limits
    from tfx.hub.services.work.decisions import Expected
    from tfx.hub.services.work.people import Worker
    from tfx.hub.services.work.recording import Refused
    from tfx.hub.services.work.shapes import Shapes
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx

_EDITS: Final = (
    *("title", "detail", "priority", "parent", "blocked_by", "exclusive", "branch", "pr"),
    "output",
)


_KEEPS_NOTE: Final = frozenset({None, TaskStatus.ASSIGNED})
"""A move to any other status carries the note itself."""


class Changing:
    """What becomes of a task."""

    def __init__(self, store: Store, limits: Limits, shapes: Shapes) -> None:
        self._store = store
        self._limits = limits
        self._shapes = shapes

    async def work_update(self, caller: Caller, request: TaskUpdateRequest) -> TaskResult:
        """Change a task (WK-T1 … WK-T10, WK-L8 … WK-L13, WK-L22); nothing asked changes nothing."""
        op = op_of("work_update", request)
        expected = await self._store.read(
            lambda reader: observed(reader, request, self._seen(reader, request))
        )

        def command(tx: Tx) -> TaskResult | Refused:
            who = people.worker(tx, caller, request)
            task = task_of(tx, who.room, request.task)
            if tx.done_before(who.actor, op) is not None:
                return self._result(tx, task)
            task = endings.expire_due(tx, task)
            return recorded(
                tx,
                task,
                who,
                _verb(request),
                guarded=_is_guarded(request),
                work=lambda: self._update(tx, task, who, request, expected, op),
            )

        asked = Asked(request, _verb(request), guarded=_is_guarded(request))
        return await decide(self._store, command, asked)

    async def work_attach(self, caller: Caller, request: TaskAttachRequest) -> TaskResult:
        """Attach an artifact; task and artifact change together or not at all (WK-L14).

        Raises StateConflict `artifact-mismatch` for one that is another open task's.
        """
        op = op_of("work_attach", request)
        expected = await self._store.read(
            lambda reader: observed(reader, request, self._linked(reader, request))
        )

        def command(tx: Tx) -> TaskResult | Refused:
            who = people.worker(tx, caller, request)
            task = self._attached_to(tx, who.room, request)
            if tx.done_before(who.actor, op) is not None:
                return self._result(tx, task)
            task = endings.expire_due(tx, task)
            return recorded(
                tx,
                task,
                who,
                "attach",
                guarded=True,
                work=lambda: self._attach(tx, task, who, request, expected, op),
            )

        return await decide(self._store, command, Asked(request, "attach", guarded=True))

    def _update(  # noqa: PLR0917  (one request in its transaction)
        self,
        tx: Tx,
        task: TaskRow,
        who: Worker,
        request: TaskUpdateRequest,
        expected: Expected | None,
        op: Op | None,
    ) -> TaskResult:
        if request.expect is not None and request.expect != task.last_seq:
            raise StateConflict(
                f"task {task.number} has changed since",
                code="stale",
                hint="tfx task show",
                details={"task": task.number, "expected": request.expect, "now": task.last_seq},
            )
        edits = any(getattr(request, name) is not None for name in _EDITS)
        held = compare(tx, task, expected)
        claims = request.wanted is TaskStatus.ASSIGNED and who.is_supervised
        giving = not claims and assigning.is_giving(task, request)
        if not claims:
            not_lost(tx, task, who, expected)
            may_change(tx, task, who, held, verdict=not edits and not giving)
        given = assigning.given(tx, task, who, held, request) if giving else None
        target = None
        if request.wanted is not None and not (giving or claims):
            moves.check(task, request.wanted)
            policy.must_be_free(tx, task, who)
            target = moves.limited(task, request.wanted, self._limits.review_rounds)
            if target is TaskStatus.MERGED:
                judging.must_be_its_judge(tx, task, who)
        changed = None
        if edits or (request.note is not None and target is None):
            changed = _changed(tx, task, request)
            claiming.must_fit(tx, task, changed, begins=claims or giving)
            self._no_twin(tx, task, who, request)
        reopening.must_be_alone(tx, task, who, target, changed)
        # every check but those of a claim is done: from here on events are appended
        if claims and assigning.claim_for(tx, task, who, request, op):
            op = None
        if changed is not None:
            tasks.change(tx, task, changed, who.actor, op)
            op = None
        if given is not None:
            moves.assign(tx, tasks.by_stream(tx, task.stream) or task, who, given, op)
        elif target is not None:
            self._move(tx, task, request, target, who, op)
        return self._result(tx, task, Depth.CLAIMED if claims else Depth.CHANGED)

    def _move(  # noqa: PLR0917  (one move)
        self,
        tx: Tx,
        task: TaskRow,
        request: TaskUpdateRequest,
        target: TaskStatus,
        who: Worker,
        op: Op | None,
    ) -> None:
        note = request.note
        is_limit = target is not request.wanted
        if is_limit:
            note = f"policy: {task.rounds} review rounds are the limit; a person has to decide"
        for step in moves.path_of(task, target):
            by_policy = is_limit and step is target
            now = tasks.by_stream(tx, task.stream) or task
            moves.move(tx, now, step, who, note, op, by_policy=by_policy)
            op = None

    def _attach(  # noqa: PLR0917  (one request in its transaction)
        self,
        tx: Tx,
        task: TaskRow,
        who: Worker,
        request: TaskAttachRequest,
        expected: Expected | None,
        op: Op | None,
    ) -> TaskResult:
        held = compare(tx, task, expected)
        not_lost(tx, task, who, expected)
        may_change(tx, task, who, held, verdict=False)
        kind = request.kind.value
        marks = {kind: request.identity} if kind in admission.PLACES else {}
        twin = admission.twin_of(tx, task.room, marks, task.stream)
        if twin is not None:
            admission.tell(tx, who, twin, f"{kind} {request.identity} of task {task.number}")
            raise admission.mismatch(tx, who, task, *twin, request.identity)
        body = ArtifactAttached(
            artifact=kind,
            branch=request.identity if request.kind is ArtifactKind.BRANCH else None,
            identity=request.identity,
            pr=request.identity if request.kind is ArtifactKind.PR else None,
        )
        if not _has(tx, task, body):
            tasks.attach(tx, task, body, who.actor, op)
        return self._result(tx, task)

    def _attached_to(self, source: Tx | Reader, room: str, request: TaskAttachRequest) -> TaskRow:
        if request.task is not None:
            return task_of(source, room, request.task)
        kind = "pr" if request.kind is ArtifactKind.LINK else request.kind.value
        marks = {kind: request.identity} if kind in admission.PLACES else {}
        found = admission.twin_of(source, room, marks)
        if found is not None:
            return found[0]
        having = twins.attached_to(source, room, request.identity)
        if len(having) == 1:
            return having[0]
        what = "several open tasks have" if having else "no open task has"
        raise InvalidRequest(
            f"{what} this artifact: say which one it is for",
            code="task-needed",
            details={"field": "task", "tasks": [each.number for each in having]},
        )

    def _linked(self, reader: Reader, request: TaskAttachRequest) -> TaskRow | None:
        return self._attached_to(reader, people.room_of(reader, request), request)

    def _seen(self, reader: Reader, request: TaskUpdateRequest) -> TaskRow | None:
        return tasks.find(reader, people.room_of(reader, request), request.task)

    def _no_twin(self, tx: Tx, task: TaskRow, who: Worker, request: TaskUpdateRequest) -> None:
        marks = {"branch": request.branch, "pr": request.pr, "output": request.output}
        twin = admission.twin_of(tx, task.room, marks, task.stream)
        admission.must_be_new(tx, who, twin, f"task {task.number}: {request.title or task.title}")

    def _result(self, tx: Tx, task: TaskRow, depth: Depth = Depth.CHANGED) -> TaskResult:
        now = tasks.by_stream(tx, task.stream) or task
        return TaskResult(task=self._shapes.task(tx, now, depth))


def _has(tx: Tx, task: TaskRow, body: ArtifactAttached) -> bool:
    """Say whether this is attached as what it is, and a branch or PR is the one the task has."""
    attached = ((row[0], row[1]) for row in tasks.artifacts(tx, task.stream))
    return (
        (body.artifact, body.identity) in attached
        and body.branch in {None, task.branch}
        and body.pr in {None, task.pr}
    )


def _verb(request: TaskUpdateRequest) -> str:
    """Return the guard class of a change (WK-K4)."""
    if request.wanted is TaskStatus.ASSIGNED:
        return "claim"
    if request.wanted is TaskStatus.IN_REVIEW:
        return "complete"
    if request.pr is not None or request.branch is not None:
        return "attach"
    if request.wanted in {None, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED}:
        return "update"
    return f"move to {request.wanted}"


def _is_guarded(request: TaskUpdateRequest) -> bool:
    edits = any(getattr(request, name) is not None for name in (*_EDITS, "assignee", "label"))
    return edits or request.wanted not in moves.UNGUARDED


def _changed(tx: Tx, task: TaskRow, request: TaskUpdateRequest) -> TaskChanged:
    """Return the editable part of a task as it is from now on; an empty text takes one away."""

    def text(asked: str | None, now: str | None) -> str | None:
        return now if asked is None else asked or None

    blockers = tasks.blockers_of(tx, task.stream)
    if request.blocked_by is not None:
        blockers = edges.blockers_of(tx, task, request.blocked_by)
    parent: int | None = task.parent
    if request.parent is not None:
        parent = edges.parent_of(tx, task, request.parent)
    title = task.title if request.title is None else request.title
    if not title.strip():
        raise InvalidRequest("title is blank", details={"field": "title"})
    return TaskChanged(
        blockers=list(blockers),
        branch=text(request.branch, task.branch),
        detail=task.detail if request.detail is None else request.detail,
        exclusive=text(request.exclusive, task.exclusive),
        note=text(request.note, task.note) if request.wanted in _KEEPS_NOTE else task.note,
        output=text(request.output, task.output),
        parent=parent,
        pr=text(request.pr, task.pr),
        priority=task.priority if request.priority is None else request.priority,
        title=title,
    )
