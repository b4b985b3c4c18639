"""The plan of a finding's repair as data: states of the file, what differs, reversible or not.

Plans and writes nothing of its own; what it tells may be pasted (D-27, D-177).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from tfx.doctor.facts import Facts
from tfx.doctor.model import Finding
from tfx.errors import JsonValue, TfxError
from tfx.plan.actions import Action, ActionKind, Desired, Reason, State
from tfx.plan.engine import Engine
from tfx.plan.preview import state_at
from tfx.plan.recovery import foreseen
from tfx.plan.state import StateDir


def plan_shower(facts: Facts) -> Callable[[Finding], Mapping[str, JsonValue] | None]:
    """Return what tells the plan of a finding's repair as data (D-177)."""
    engine = Engine(facts.paths.setup_dir, git=facts.paths.program("git"))

    def show(finding: Finding) -> Mapping[str, JsonValue] | None:
        repair = finding.repair
        if repair is None or not repair.actions:
            return None
        return {"actions": [_shown(action, engine, facts) for action in repair.actions]}

    return show


def _shown(action: Action, engine: Engine, facts: Facts) -> JsonValue:
    before, after = _states(action, engine, facts)
    return {
        "kind": action.kind.value,
        "reason": action.reason.value,
        "target": action.target,
        "before": _state(before),
        "after": _state(after),
        "diff": _difference(action, engine, facts),
        "reversible": action.kind is not ActionKind.RECORD,
    }


def _states(action: Action, engine: Engine, facts: Facts) -> tuple[State | None, State | None]:
    """Return the file before and after; the journal of a run that is finished has no known end."""
    if action.reason is Reason.INTERRUPTED:
        return state_at(action.path), None
    with contextlib.suppress(TfxError):
        return engine.preview(facts.wanted.desired if action.asset else Desired(), action)
    return action.disk, action.new


def _difference(action: Action, engine: Engine, facts: Facts) -> str:
    with contextlib.suppress(TfxError):
        if action.reason is Reason.INTERRUPTED:
            ends = foreseen(StateDir(facts.paths.setup_dir), action.target)
            return "".join(f"{target}: {end.value}\n" for target, end in ends)
        if action.asset and action.kind in {ActionKind.CREATE, ActionKind.UPDATE}:
            found = engine.diff(facts.wanted.desired, action)
            return found.text if facts.options.shows_yours else found.outline
    return ""


def _state(state: State | None) -> JsonValue:
    if state is None:
        return None
    mode = None if state.mode is None else f"{state.mode:04o}"
    return {"sha256": state.sha256 or None, "mode": mode}
