"""One step of a run: the actions on one target, the bytes that carry them out, what is recorded.

Knows how a step is shown and judged idle; file_steps.py and entry_steps.py make steps.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfx.plan.actions import (
    CHANGES,
    Action,
    ActionKind,
    Flags,
    Format,
    Marks,
    Plan,
    Reason,
    Rival,
    State,
    WantedEntry,
)
from tfx.plan.disk import Write
from tfx.plan.documents import Document, starting_bytes
from tfx.plan.look import Found, Obstacle, look
from tfx.plan.records import Change, Manifest
from tfx.plan.state import StateDir

LIMIT_BYTES = 32 * 1024 * 1024
RETRY_PAUSES_S = (0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5)
SKILL = "SKILL.md"

BOTH = "`tfx setup --take-new` replaces it after a backup, `tfx setup --keep-mine` keeps it"
ABSENT = "`tfx setup --restore` brings it back, `tfx setup --keep-mine` leaves it away"
MINE = "move it away, or `tfx setup --keep-mine` keeps it"


@dataclass(frozen=True, slots=True)
class Staging:
    """A new version that was not applied: its place under `staged/<run>/`, if it is not there."""

    place: str
    data: bytes
    there: Path | None


@dataclass(frozen=True, slots=True)
class Chmod:
    """Permission bits changed in place; the content is not touched."""

    path: Path
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Step:
    """What one target needs. `again` plans the same target anew, after it moved (S-46).

    `changes` are recorded when `write` was carried out, `notes` in any case.
    `phase` and `rank` order the steps; `base` is stored among the pristine bytes.
    """

    actions: tuple[Action, ...]
    again: Callable[[], Step]
    settled: tuple[Action, ...] = ()
    write: Write | None = None
    chmod: Chmod | None = None
    changes: tuple[Change, ...] = ()
    notes: tuple[Change, ...] = ()
    base: bytes | None = None
    staging: Staging | None = None
    entries: Mapping[str, WantedEntry] = field(default_factory=dict)
    phase: int = 0
    rank: tuple[str, int, str] = ("", 0, "")

    @property
    def idle(self) -> bool:
        """True when carrying it out would write nothing at all."""
        staged = self.staging is None or self.staging.there is not None
        quiet = self.write is None and self.chmod is None
        return quiet and not self.changes and not self.notes and staged


@dataclass(slots=True)
class Patience:
    """Waits for a file that is being rewritten (S-73), once for each file in one command."""

    sleep: Callable[[float], None]
    spent: set[Path] = field(default_factory=set)

    def pauses(self, path: Path) -> tuple[float, ...]:
        """Return how long to wait after each look that failed."""
        return () if path in self.spent else RETRY_PAUSES_S


@dataclass(slots=True)
class Context:
    """What planning reads: the manifest, the user's word, and a disk that may need patience."""

    manifest: Manifest
    state: StateDir
    flags: Flags
    scope: frozenset[str] | None  # None = every agent
    renames: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = field(default_factory=lambda: Patience(time.sleep))
    chosen: Marks | None = None  # marks; None = every action

    def is_chosen(self, action: Action) -> bool:
        """Say whether this run may carry an action out; what changes nothing always may."""
        changing = action.kind in CHANGES or action.kind is ActionKind.RECORD
        return self.chosen is None or not changing or mark_of(action) in self.chosen

    def in_scope(self, agents: tuple[str, ...]) -> bool:
        """Say whether a record of these agents may be touched (K-13)."""
        return self.scope is None or not agents or bool(self.scope.intersection(agents))

    def others(self, agents: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the agents that this run leaves alone."""
        return () if self.scope is None else tuple(a for a in agents if a not in self.scope)


def staging_place(root: Path, path: str) -> str:
    """Return where under `staged/<run>/` a version of a file lies."""
    return f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}/{path}"


def read_shared(path: Path, of: Format, context: Context) -> tuple[Found, Document]:
    """Read and parse a shared file, once when it is sound.

    One that is empty or broken is read again for about 2 s (S-73); one that stays empty counts
    as an empty document (S-60). Raises Obstacle.
    """
    patience = context.patience
    for pause_s in patience.pauses(path):
        found = look(path, LIMIT_BYTES)
        with contextlib.suppress(Obstacle):
            if found.data or found.state is None:
                return found, Document.read(of, starting_bytes(of, found.data))
        patience.sleep(pause_s)
    patience.spent.add(path)
    found = look(path, LIMIT_BYTES)
    return found, Document.read(of, starting_bytes(of, found.data))


def conflict_hint(reason: Reason) -> str:
    """Return the options that resolve a conflict (K-12)."""
    match reason:
        case Reason.DELETED:
            return ABSENT
        case Reason.LINK:
            return MINE
        case Reason.MOVING:
            return "run `tfx setup` again"
        case _:
            return BOTH


def refused(
    obstacle: Obstacle, path: Path, agents: tuple[str, ...], *, target: str, new: State | None
) -> Action:
    """Return the action for something that is left exactly as it is (S-54)."""
    at = f"{path}:{obstacle.line}:{obstacle.column}" if obstacle.line else str(path)
    what = obstacle.detail.removeprefix(f"line {obstacle.line}, column {obstacle.column}: ")
    detail = what if str(path) in what else f"{at}: {what}"
    return Action(
        ActionKind.REFUSED,
        obstacle.reason,
        target,
        path,
        agents,
        new=new,
        detail=detail,
        hint=_refusal_hint(obstacle.reason, path),
        line=obstacle.line,
        column=obstacle.column,
    )


def _refusal_hint(reason: Reason, path: Path) -> str:
    match reason:
        case Reason.UNPARSABLE:
            return f"correct {path} and run `tfx setup` again; it was left as it is"
        case Reason.BEYOND_LIMITS:
            return f"{path} is more than tfx reads; make it smaller, or edit it by hand"
        case Reason.UNREADABLE:
            return f"make {path} readable for you and run `tfx setup` again"
        case Reason.UNEDITABLE:
            return f"edit {path} by hand; it was left as it is"
        case _:
            return f"look at {path} and move away what is in the way"


def plan_of(steps: tuple[Step, ...]) -> Plan:
    """Return the plain plan that the steps carry out."""
    return Plan(
        tuple(action for step in steps for action in step.actions),
        tuple(action for step in steps for action in step.settled),
    )


def rival_detail(rivals: tuple[Rival, ...], text: str) -> str:
    """Return whose it is when a known program put it there, or an empty string (K-14)."""
    owner = next((rival.owner for rival in rivals if rival.made(text)), None)
    return f"it belongs to {owner}; --take-new backs it up and takes over" if owner else ""


def mark_of(action: Action) -> tuple[object, ...]:
    """Return what tells one action of a plan from another, so that it can be chosen."""
    return (action.kind, action.target, action.asset, action.disk, action.new)


def is_chosen(step: Step, chosen: Marks) -> bool:
    """Say whether all that a step would change was chosen; conflicts beside it change nothing."""
    changing = [a for a in step.actions if a.kind in CHANGES or a.kind is ActionKind.RECORD]
    return bool(changing) and all(mark_of(action) in chosen for action in changing)
