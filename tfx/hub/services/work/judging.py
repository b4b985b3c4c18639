"""Who may judge a piece of work, and so never has done any of it (WK-R2, WK-R5).

Reads only; knows no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import AccessDenied, StateConflict
from tfx.hub.models import HUB, OPERATOR
from tfx.hub.services.work.claiming import is_given_to
from tfx.hub.services.work.decisions import CLOSED
from tfx.hub.store import leases, reviews, task_story
from tfx.hub.store.work_bodies import (
    ArtifactAttached,
    TaskMoved,
    WorkClaimed,
    WorkEnded,
    WorkHandedOff,
)
from tfx.hub.work_models import ArtifactKind, TaskStatus

if TYPE_CHECKING:
    from tfx.hub.models import AgentId
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

_NO_AUTHORS: Final = frozenset({OPERATOR, HUB})


def authors(source: Tx | Reader, task: TaskRow) -> frozenset[str]:
    """Return the agents whose work a task is, former owners included; keys, never labels (WK-R2).

    That is who owned it while it was in progress or put into review, and who attached what came
    of the work (a link alone is none, unless the owner attached it). A name without a key stands
    for the key that it will be filled in with: only that agent could work (WK-T10). Who gave it
    back without having begun is no author. They are forgotten when merged work is taken up again,
    or when the operator credential reopens a task; an agent's own reopening forgets nobody.
    """
    found: set[str] = set()
    status, owner = "", None
    for step in task_story.steps(source, task):
        body = step.body
        if isinstance(body, TaskMoved):
            if _begins_anew(body):
                found.clear()
            status, owner = body.status, body.assignee or body.label
            if owner is not None and status == TaskStatus.IN_REVIEW:
                found.add(owner)
        elif isinstance(body, WorkClaimed | WorkHandedOff):
            status, owner = body.status, body.agent
        elif isinstance(body, WorkEnded) and body.status is not None:
            status, owner = body.status, None
        elif isinstance(body, ArtifactAttached) and (
            step.actor == owner or body.artifact != ArtifactKind.LINK
        ):
            found.add(step.actor)
        if owner is not None and status == TaskStatus.IN_PROGRESS:
            found.add(owner)
    return frozenset(found - _NO_AUTHORS)


def must_be_no_author(source: Tx | Reader, task: TaskRow, agent: AgentId) -> None:
    """Raise AccessDenied `self-review` for whoever has the task or did some of its work."""
    held = leases.active(source, task.stream)
    if is_given_to(source, task, agent) or (held is not None and held.agent == agent):
        why = f"task {task.number} is {agent}'s own work"
    elif agent in authors(source, task):
        why = f"{agent} did some of the work of task {task.number}"
    else:
        return
    raise AccessDenied(
        f"{why}: another agent has to review and merge it",
        code="self-review",
        details={"task": task.number, "agent": agent},
    )


def must_be_its_judge(source: Tx | Reader, task: TaskRow, who: Worker) -> None:
    """Let the reviewer merge a task, by its session, or the operator (WK-R5).

    Raises AccessDenied `self-review` or `lease-holder`, StateConflict `review-missing`.
    """
    if who.is_operator:
        return
    if who.agent is not None:
        must_be_no_author(source, task, who.agent)
    review = reviews.active(source, task.stream)
    if review is None:
        raise StateConflict(
            f"task {task.number} has no reviewer: a merge needs one",
            code="review-missing",
            hint="tfx lease review",
            details={"task": task.number},
        )
    if not who.is_holder(review.agent, review.session):
        raise AccessDenied(
            f"{review.agent} reviews task {task.number}, and so merges it",
            code="lease-holder",
            details={"task": task.number, "reviewer": review.agent},
        )


def _begins_anew(body: TaskMoved) -> bool:
    """Say whether a move takes up a task whose former work is settled."""
    if body.status != TaskStatus.ACCEPTED:
        return False
    return body.before == TaskStatus.MERGED or (body.before in CLOSED and body.decided)
