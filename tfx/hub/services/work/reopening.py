"""A task that is taken up again is admitted like a new one (WK-K5).

Runs inside the writer's transaction; what a duplicate is says `admission`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfx.hub.services.work import admission
from tfx.hub.services.work.decisions import CLOSED
from tfx.hub.store import tasks
from tfx.hub.work_models import ArtifactKind

if TYPE_CHECKING:
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx
    from tfx.hub.store.work_bodies import TaskChanged
    from tfx.hub.work_models import TaskStatus


def must_be_alone(
    tx: Tx, task: TaskRow, target: TaskStatus | None, edited: TaskChanged | None
) -> None:
    """Refuse to open a closed task when another one is the same work by now.

    `edited` is what the same request makes of its branch, PR and output. Raises StateConflict
    `duplicate-work`.
    """
    if target is None or target in CLOSED or task.status not in CLOSED:
        return
    if edited is not None:
        task = replace(task, branch=edited.branch, pr=edited.pr, output=edited.output)
    twin = _twin_of_task(tx, task)
    if twin is not None:
        raise admission.duplicate(*twin)


def _twin_of_task(tx: Tx, task: TaskRow) -> tuple[TaskRow, str] | None:
    marks = {
        "source_message": task.source_message,
        "source_task": task.source_task,
        "branch": task.branch,
        "pr": task.pr,
        "output": task.output,
    }
    twin = admission.twin_of(tx, task.room, marks, task.stream)
    for row in tasks.artifacts(tx, task.stream):
        kind, identity = str(row[0]), str(row[1])
        for mark in ("pr", "branch") if kind == ArtifactKind.BRANCH else ("pr",):
            twin = twin or admission.twin_of(tx, task.room, {mark: identity}, task.stream)
    return twin
