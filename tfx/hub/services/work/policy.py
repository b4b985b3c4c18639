"""How much agents may do on a task before a person decides (WK-K8).

Runs inside the writer's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import StateConflict
from tfx.hub.models import HUB
from tfx.hub.services.work import moves
from tfx.hub.services.work.people import Worker
from tfx.hub.store import task_story, tasks
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

_RUNNING: Final = frozenset({TaskStatus.ASSIGNED.value, TaskStatus.IN_PROGRESS.value})


def after_turn(tx: Tx, stream: int | None, limit: int) -> None:
    """Block a task whose agents reported as many turns as they may; 0 is no limit.

    Counted are the turns since a person moved it. The lease stays: its holder waits.
    """
    task = None if stream is None or not limit else tasks.by_stream(tx, stream)
    if task is None or task.status not in _RUNNING or tasks.turns(tx, task) < limit:
        return
    hub = Worker(task.room, HUB, None, is_operator=False)
    note = f"policy: {limit} turns are the limit; a person has to decide"
    for step in moves.path_of(task, TaskStatus.BLOCKED):
        now = tasks.by_stream(tx, task.stream) or task
        moves.move(tx, now, step, hub, note, None, by_policy=step is TaskStatus.BLOCKED)


def must_be_free(tx: Tx, task: TaskRow, who: Worker) -> None:
    """Let the operator alone move, give back or hand on a task that the policy has blocked.

    Raises StateConflict `policy-limit`.
    """
    if not who.is_operator and task_story.stopped_by_policy(tx, task):
        raise StateConflict(
            f"task {task.number} waits for a person: its agents did as much as they may",
            code="policy-limit",
            hint="tfx task update --operator",
            details={"task": task.number, "status": task.status},
        )
