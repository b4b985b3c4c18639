"""A task that is taken up again is admitted like a new one (WK-K5).

Runs inside the writer's transaction; what a duplicate is says `admission`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfx.hub.services.work import admission
from tfx.hub.services.work.decisions import CLOSED

if TYPE_CHECKING:
    from tfx.hub.services.work.people import Worker
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx
    from tfx.hub.store.work_bodies import TaskChanged
    from tfx.hub.work_models import TaskStatus


def must_be_alone(
    tx: Tx, task: TaskRow, who: Worker, target: TaskStatus | None, edited: TaskChanged | None
) -> None:
    """Refuse to open a closed task when another one is the same work by now.

    `edited` is what the same request makes of its branch, PR and output. Call it when every other
    check is done: who has the other one is told. Raises StateConflict `duplicate-work`.
    """
    if target is None or target in CLOSED or task.status not in CLOSED:
        return
    if edited is not None:
        task = replace(task, branch=edited.branch, pr=edited.pr, output=edited.output)
    admission.must_be_new(tx, who, admission.twin_of_task(tx, task), task.title)
