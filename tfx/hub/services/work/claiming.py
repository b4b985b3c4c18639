"""The rules of a claim, in their order (WK-L1 … WK-L6); shared by claim, next and update.

Runs inside the writer's transaction; knows no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.models import LeaseId
from tfx.hub.services import endings
from tfx.hub.services.work.decisions import OWNED, held_by_other
from tfx.hub.store import agents, leases, tasks
from tfx.hub.store.ids import new_id
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import AgentId
    from tfx.hub.store.leases import Holder, LeaseRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Op, Tx
    from tfx.hub.store.work_bodies import TaskChanged


def claim(tx: Tx, task: TaskRow, holder: Holder, op: Op | None) -> LeaseRow:
    """Return the lease of a holder: the one it has, or a new one.

    The caller has expired what was due (WK-L1) and checked the locks. Raises StateConflict
    `held`, `bad-status`, `not-ready`.
    """
    held = leases.active(tx, task.stream)
    if held is not None:
        if (held.agent, held.session) == (holder.agent, holder.session):
            return held
        raise held_by_other(task, held)
    status = _status_after(tx, task, holder)
    lease = LeaseId(new_id(tx.now_ms))
    leases.claim(tx, task, holder, status.value, lease, op)
    endings.end_own_review(tx, task, holder.agent, holder.agent)
    minted = leases.find(tx, lease)
    if minted is None:
        raise StateConflict("the lease was not stored", code="lease-missing")
    return minted


def _status_after(tx: Tx, task: TaskRow, holder: Holder) -> TaskStatus:
    """Return the status that a claim gives: a fresh one assigns, a reclaim keeps it (WK-L4)."""
    status = TaskStatus(task.status)
    is_mine = is_given_to(tx, task, holder.agent)
    if status in OWNED and is_mine:
        if task.session is None:  # given by hand: nobody has had it by a lease yet
            must_be_ready(tx, task)
        return status
    is_free = is_mine or (task.assignee is None and task.label is None)
    if status is TaskStatus.ACCEPTED and is_free:
        must_be_ready(tx, task)
        return TaskStatus.ASSIGNED
    whose = task.assignee or task.label
    what = f"{task.status}, {whose}'s" if whose else task.status
    raise StateConflict(
        f"task {task.number} cannot be claimed: it is {what}",
        code="bad-status",
        hint="tfx task show",
        details={"task": task.number, "status": task.status, "assignee": whose},
    )


def is_given_to(source: Tx | Reader, task: TaskRow, agent: AgentId) -> bool:
    """Say whether a task is given to an agent: by its key, or by a name that a key is missing to.

    A name never beats another key (WK-T10).
    """
    if task.assignee is not None or task.label is None:
        return task.assignee == agent
    return task.label in names_of(source, agent)


def names_of(source: Tx | Reader, agent: AgentId) -> tuple[str, str]:
    """Return the names of an agent as it is registered: its key, and `label` of its metadata.

    Without such a label twice its key. What the request calls it is for display only: anybody may
    say anything there (WK-T10).
    """
    known = agents.find(source, agent)
    label = None if known is None else known.said("label")
    return agent, agent if label is None else label


def must_be_ready(tx: Tx, task: TaskRow) -> None:
    """Refuse to begin a task that waits for another, or beside its rival (WK-T11).

    Raises StateConflict `not-ready`, whoever asks.
    """
    open_ones = tasks.numbers(tx, tasks.OPEN_BLOCKERS, (task.stream,))
    _must_not_wait(task, open_ones, _rivals(tx, task, task.exclusive))


def must_fit(tx: Tx, task: TaskRow, edited: TaskChanged, *, begins: bool) -> None:
    """Refuse an edit that gives work under way, or begun by the same request, what it waits for.

    An exclusion key is compared with what its rivals do now; a blocker may come up during the work,
    but nothing begins behind one (WK-T11). Raises StateConflict `not-ready`.
    """
    is_owned = task.status in OWNED
    if not (is_owned or begins):
        return
    open_ones: list[int] = []
    if not is_owned:
        known = (tasks.by_stream(tx, each) for each in edited.blockers)
        open_ones = [
            each.number
            for each in known
            if each is not None and each.closed_at_ms is None and each.deleted_at_ms is None
        ]
    is_same = is_owned and edited.exclusive == task.exclusive
    rivals = () if is_same else _rivals(tx, task, edited.exclusive)
    _must_not_wait(task, tuple(open_ones), rivals)


def _rivals(tx: Tx, task: TaskRow, exclusive: str | None) -> tuple[int, ...]:
    if exclusive is None:
        return ()
    return tasks.numbers(tx, tasks.RIVALS, (task.room, exclusive, task.stream))


def _must_not_wait(task: TaskRow, open_ones: tuple[int, ...], rivals: tuple[int, ...]) -> None:
    if open_ones or rivals:
        why = [f"blocked by {each}" for each in open_ones]
        why += [f"not beside {each}" for each in rivals]
        raise StateConflict(
            f"task {task.number} is not ready: {', '.join(why)}",
            code="not-ready",
            details={
                "task": task.number,
                "blocked_by": list(open_ones),
                "not_beside": list(rivals),
            },
        )
