"""What one action of a repair makes of its file: hash and mode before and after (D-118, D-177).

Knows the steps of a plan and writes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from tfx.plan.actions import Action, ActionKind, State
from tfx.plan.look import Obstacle, look
from tfx.plan.steps import Step, is_chosen, mark_of
from tfx.plan.upkeep import UPKEEP


def file_states(steps: Iterable[Step], action: Action) -> tuple[State | None, State | None]:
    """Return the state of the file of an action, before and after it.

    They are the same where the record alone changes. An action on an entry is told as the whole
    shared file that holds it.
    """
    if action.reason in UPKEEP:
        return action.disk, action.new
    mark = mark_of(action)
    for step in steps:
        if is_chosen(step, frozenset({mark})) and mark in map(mark_of, step.actions):
            if step.write is not None:
                return step.write.before, step.write.after
            if step.chmod is not None:
                return action.disk, action.new
    now = state_at(action.path)
    return now, now if action.kind is ActionKind.RECORD else action.new


def state_at(path: Path) -> State | None:
    """Return what lies at a path now, None for nothing that can be read as a file."""
    with contextlib.suppress(Obstacle):
        return look(path).state
    return None
