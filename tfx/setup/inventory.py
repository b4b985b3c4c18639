"""What is installed: skills per root, the version of each part.

Only looks: ownership is the engine's answer, the rest is a listing of directories.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfx import __version__
from tfx.agents.roots import written_roots
from tfx.core.files import is_file
from tfx.core.paths import Paths
from tfx.desired import desired
from tfx.plan.actions import Action, ActionKind, Plan, Reason
from tfx.plan.engine import Engine
from tfx.result import Result
from tfx.setup.links import links_of
from tfx.setup.report import AgentRow, agent_rows
from tfx.setup.survey import survey


class SkillState(StrEnum):
    """How a skill folder stands to the bundle; the later one wins when files differ."""

    INSTALLED = "installed"
    BUNDLED = "bundled"  # not installed yet
    OUTDATED = "outdated"
    DELETED = "deleted"  # by the user
    MODIFIED = "modified"  # by the user
    FOREIGN = "foreign"  # the user's own
    UNREADABLE = "unreadable"  # nobody can tell


_ORDER = tuple(SkillState)


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill in one root; `bundled` tells whether tfx ships one of that name."""

    name: str
    state: SkillState
    bundled: bool


@dataclass(frozen=True, slots=True)
class RootRow:
    """One skills root and the agents that read it."""

    root: str
    agents: tuple[str, ...]
    skills: tuple[SkillRow, ...]


@dataclass(frozen=True, slots=True)
class ListData:
    """Every skills root of the agents found."""

    roots: tuple[RootRow, ...]


@dataclass(frozen=True, slots=True)
class AssetCounts:
    """How the installed files and entries stand: `pending` and `conflicts` differ from tfx's."""

    installed: int
    pending: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class VersionData:
    """The version of every part."""

    tfx: str
    python: str
    assets: AssetCounts
    agents: tuple[AgentRow, ...]


def list_skills(paths: Paths) -> Result[ListData]:
    """Return bundled, installed, modified and foreign skills per root."""
    engine = Engine(paths.setup_dir)
    seen = survey(paths, engine)
    plan = engine.plan(desired(paths, seen.scope, seen.settings, {}))
    states = _states(plan)
    roots = tuple(
        RootRow(paths.display(root.directory), root.agents, tuple(_skills(root.directory, states)))
        for root in written_roots(paths, (one.agent for one in seen.scope))
    )
    return Result(ListData(roots))


def versions(paths: Paths) -> Result[VersionData]:
    """Return the version of tfx, how its assets stand, and every agent's version."""
    engine = Engine(paths.setup_dir)
    seen = survey(paths, engine, probe=True)
    entries = links_of(paths, engine, seen, None, make=False)
    plan = engine.plan(desired(paths, seen.scope, seen.settings, entries))
    conflicts = sum(a.kind in {ActionKind.CONFLICT, ActionKind.REFUSED} for a in plan.actions)
    assets = AssetCounts(
        installed=sum(a.kind is ActionKind.UNCHANGED for a in plan.settled),
        pending=len(plan.actions) - conflicts,
        conflicts=conflicts,
    )
    rows = agent_rows(seen.found, seen.scope, ())
    return Result(VersionData(__version__, platform.python_version(), assets, rows))


def _states(plan: Plan) -> Mapping[Path, SkillState]:
    """Return the state of each file that tfx ships, by its path."""
    return {action.path: _state(action) for action in (*plan.actions, *plan.settled)}


_BY_REASON = {
    Reason.FOREIGN: SkillState.FOREIGN,
    Reason.LINK: SkillState.FOREIGN,
    Reason.NOT_A_FILE: SkillState.FOREIGN,
    Reason.LOOP: SkillState.FOREIGN,
    Reason.OUTSIDE: SkillState.FOREIGN,
    Reason.UNREADABLE: SkillState.UNREADABLE,
    Reason.NO_DIRECTORY: SkillState.UNREADABLE,
    Reason.EDITED: SkillState.MODIFIED,
    Reason.DIVERGED: SkillState.MODIFIED,
    Reason.DRIFTED: SkillState.MODIFIED,
    Reason.DELETED: SkillState.DELETED,
}
_BY_KIND = {
    ActionKind.UNCHANGED: SkillState.INSTALLED,
    ActionKind.RECORD: SkillState.INSTALLED,
    ActionKind.CREATE: SkillState.BUNDLED,
    ActionKind.KEPT: SkillState.MODIFIED,
    ActionKind.KEEP: SkillState.MODIFIED,
}


def _state(action: Action) -> SkillState:
    by_kind = _BY_KIND.get(action.kind, SkillState.OUTDATED)
    return _BY_REASON.get(action.reason, by_kind)


def _skills(root: Path, states: Mapping[Path, SkillState]) -> Iterator[SkillRow]:
    ours: dict[str, SkillState] = {}
    real = Path(os.path.realpath(root))  # as actions name it
    for path, state in states.items():
        if path.is_relative_to(real):
            name = path.relative_to(real).parts[0]
            ours[name] = max(ours.get(name, state), state, key=_ORDER.index)
    there: set[str] = set()
    with contextlib.suppress(OSError):  # absent, or not for this user's eyes
        there = {entry.name for entry in root.iterdir()}
    for name in sorted(ours.keys() | there):
        if name in ours:
            yield SkillRow(name, ours[name], bundled=True)
        elif is_file(root / name / "SKILL.md"):
            yield SkillRow(name, SkillState.FOREIGN, bundled=False)
