"""Steps for tfx's own small files: close one that is too open, remove one that a dead run left.

Knows no asset and no entry: nothing here is recorded in the manifest, only in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfx.plan.actions import Action, ActionKind, Reason, State
from tfx.plan.disk import Write
from tfx.plan.look import Obstacle, look, mode_of
from tfx.plan.steps import Chmod, Step, refused

UPKEEP = frozenset({Reason.LOOSE_MODE, Reason.LEFT_BEHIND})


def upkeep_steps(actions: Iterable[Action]) -> tuple[Step, ...]:
    """Return one step for each action whose target still is as the action saw it (D-120)."""
    return tuple(_step(action) for action in actions if action.reason in UPKEEP)


def _step(action: Action) -> Step:
    def again() -> Step:
        return _step(action)

    if action.reason is Reason.LOOSE_MODE:
        return _closing(action)
    try:
        found = look(action.path)
    except Obstacle as obstacle:
        return Step((refused(obstacle, action.path, (), target=action.target, new=None),), again)
    if found.linked or found.state is None or found.state != action.disk:
        return Step((), again)
    return Step((action,), again, write=Write(found.target, found.state, None))


def _closing(action: Action) -> Step:
    def again() -> Step:
        return _closing(action)

    before, after = _mode(action.disk), _mode(action.new)
    if before is None or after is None or mode_of(action.path) != before:
        return Step((), again)
    return Step((action,), again, chmod=Chmod(action.path, before, after))


def _mode(state: State | None) -> int | None:
    return None if state is None else state.mode


def reopening(chmod: Chmod) -> Step:
    """Return the step that takes a change of mode back, a conflict when it changed since."""

    def again() -> Step:
        return reopening(chmod)

    now = mode_of(chmod.path)
    kind = ActionKind.UPDATE
    if now == chmod.before:
        kind = ActionKind.UNCHANGED
    elif now != chmod.after:
        kind = ActionKind.CONFLICT
    action = Action(
        kind,
        Reason.EDITED if kind is ActionKind.CONFLICT else Reason.UNDO,
        str(chmod.path),
        chmod.path,
        disk=State("", now),
        new=State("", chmod.before),
        hint="its mode changed after that run" if kind is ActionKind.CONFLICT else None,
    )
    if kind is ActionKind.UNCHANGED:
        return Step((), again, (action,))
    if kind is ActionKind.CONFLICT:
        return Step((action,), again)
    return Step((action,), again, chmod=Chmod(chmod.path, chmod.after, chmod.before))
