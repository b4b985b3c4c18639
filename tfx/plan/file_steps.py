"""Plan one bundled file: look at its place, ask the decision table, prepare the bytes.

Knows nothing of shared files and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfx.errors import OperationFailed
from tfx.plan.actions import Action, ActionKind, Reason, State
from tfx.plan.decide import Case, Decision, decide
from tfx.plan.disk import Write
from tfx.plan.file_items import FileItem, look_at
from tfx.plan.look import Found, Obstacle
from tfx.plan.records import Change, FileRecord, Replaced
from tfx.plan.steps import (
    SKILL,
    Context,
    Staging,
    Step,
    conflict_hint,
    refused,
    rival_detail,
    staging_place,
)


@dataclass(frozen=True, slots=True)
class _View:
    """An item with what was found at its place."""

    item: FileItem
    found: Found | None
    decision: Decision
    agents: tuple[str, ...]

    @property
    def disk(self) -> State | None:
        return None if self.found is None else self.found.state


def plan_file(item: FileItem, context: Context) -> Step:
    """Return the step of one file."""
    agents = _agents_after(item, context)
    held = item.record.agents if item.record else ()
    if item.wanted is None and item.record is not None and context.in_scope(held):
        others = context.others(held)
        if others:
            return _release(item, others)
    try:
        found, blocked = look_at(item)
    except Obstacle as obstacle:
        return _obstructed(item, obstacle, context, agents)
    record = item.record
    case = Case(
        base=record.state if record else None,
        disk=found.state if found else None,
        new=item.new,
        kept=record.kept if record else None,
        replaced=bool(record and record.replaced),
        in_scope=item.wanted is not None or context.in_scope(held),
        blocked=blocked,
    )
    return _step(_View(item, found, decide(case, context.flags), agents), context)


def _agents_after(item: FileItem, context: Context) -> tuple[str, ...]:
    wanted = item.wanted.agents if item.wanted else ()
    recorded = item.record.agents if item.record else ()
    return tuple(sorted({*wanted, *context.others(recorded)})) or recorded


def _action(view: _View, kind: ActionKind, reason: Reason, detail: str = "") -> Action:
    item = view.item
    conflict = kind is ActionKind.CONFLICT
    return Action(
        kind,
        reason,
        str(item.place),
        item.place,
        view.agents,
        asset=item.asset,
        base=item.record.state if item.record else None,
        disk=view.disk,
        new=item.new,
        detail=detail,
        hint=conflict_hint(reason) if conflict else None,
    )


def _step(view: _View, context: Context) -> Step:
    kind, reason = view.decision.kind, view.decision.reason
    item = view.item
    step = Step((_action(view, kind, reason),), lambda: plan_file(item, context))
    match kind:
        case ActionKind.UNCHANGED | ActionKind.KEPT | ActionKind.SKIPPED:
            return _settled(view, step)
        case ActionKind.RECORD | ActionKind.KEEP:
            return _noted(view, step, context)
        case ActionKind.DELETE:
            return _ordered(_deletion(view, step), item, 2, -1)
        case ActionKind.RESTORE if reason is Reason.REPLACED:
            return _ordered(_give_back(view, step, context), item, 2, -1)
        case ActionKind.CREATE | ActionKind.UPDATE | ActionKind.RESTORE:
            return _ordered(_publication(view, step), item, 0, 1)
        case _:
            return _contested(view, step, context)


def _contested(view: _View, step: Step, context: Context) -> Step:
    """Return the step of a conflict: whose the file is, and the new version to look at."""
    found, wanted = view.found, view.item.wanted
    if view.decision.reason is Reason.FOREIGN and found and found.data and wanted:
        owner = rival_detail(wanted.rivals, found.data.decode("utf-8", "replace"))
        step = replace(step, actions=(replace(step.actions[0], detail=owner),))
    return replace(step, staging=_staging(view, context))


def _noted(view: _View, step: Step, context: Context) -> Step:
    """Return the step with what the manifest alone is to learn."""
    item = view.item
    match view.decision.reason:
        case Reason.GONE:
            return replace(step, notes=(Change(item.record, None),))
        case Reason.DRIFTED:
            action = replace(step.actions[0], detail=_successor(item, context))
            return replace(step, actions=(action,), notes=(Change(item.record, None),))
        case Reason.KEEP_MINE:
            return replace(step, notes=(_declined(item, view.agents),))
        case _:
            return replace(step, notes=(_recorded(view),), base=_data(item))


def _successor(item: FileItem, context: Context) -> str:
    successor = context.renames.get(item.asset)
    return f"it was edited, so it stays beside its successor {successor}" if successor else ""


def _ordered(step: Step, item: FileItem, phase: int, sign: int) -> Step:
    """Write SKILL.md last in its folder and remove it first (S-31)."""
    folder, _, rest = item.path.partition("/")
    rank = (f"{item.root}/{folder}", sign * int(rest == SKILL), item.path)
    return replace(step, phase=phase, rank=rank)


def _settled(view: _View, step: Step) -> Step:
    if view.decision.kind is ActionKind.UNCHANGED:
        change = _recorded(view)
        if change.new != change.old:
            action = _action(view, ActionKind.RECORD, Reason.RELEASED)
            return replace(step, actions=(action,), notes=(change,))
    return replace(step, actions=(), settled=step.actions)


def _release(item: FileItem, others: tuple[str, ...]) -> Step:
    record = item.record
    if record is None:
        raise ValueError("only a recorded file can be released")
    view = _View(item, None, Decision(ActionKind.RECORD, Reason.RELEASED), others)
    action = _action(view, ActionKind.RECORD, Reason.RELEASED, f"still used by {', '.join(others)}")
    change = Change(record, replace(record, agents=others))
    return Step((action,), lambda: _release(item, others), notes=(change,))


def _data(item: FileItem) -> bytes | None:
    return None if item.wanted is None else item.wanted.data


def _recorded(view: _View, replaced: Replaced | None = None) -> Change:
    item, new = view.item, view.item.new
    if item.wanted is None or new is None:
        raise ValueError("only a wanted file is recorded")
    old = item.record
    found = view.found
    record = FileRecord(
        root=str(item.root),
        path=item.path,
        sha256=new.sha256,
        mode=new.mode,
        asset=item.wanted.asset,
        agents=view.agents,
        replaced=(old.replaced if old else None) or replaced,
        target=str(found.target) if found is not None and found.linked else None,
    )
    if old is not None and replace(record, run=old.run) == old:
        record = old
    return Change(old, record)


def _publication(view: _View, step: Step) -> Step:
    item, found, new = view.item, view.found, view.item.new
    if item.wanted is None or found is None or new is None or new.mode is None:
        raise ValueError("only a wanted file with a known place is written")
    taken = view.decision.reason is Reason.TAKE_NEW and found.state is not None
    replaced = Replaced("", found.state.mode) if taken and found.state else None
    return replace(
        step,
        write=Write(found.target, found.state, item.wanted.data, new.mode),
        changes=(_recorded(view, replaced),),
        base=item.wanted.data,
    )


def _deletion(view: _View, step: Step) -> Step:
    if view.found is None:
        raise ValueError("only what was found is deleted")
    return replace(
        step,
        write=Write(view.found.target, view.found.state, None),
        changes=(Change(view.item.record, None),),
    )


def _give_back(view: _View, step: Step, context: Context) -> Step:
    record, found = view.item.record, view.found
    if record is None or record.replaced is None or found is None:
        raise ValueError("nothing was replaced here")
    try:
        data = context.state.kept(record.replaced.backup)
    except OperationFailed as error:
        obstacle = Obstacle(Reason.UNREADABLE, error.message)
        return _obstructed(view.item, obstacle, context, view.agents)
    mode = 0o644 if record.replaced.mode is None else record.replaced.mode
    return replace(
        step,
        write=Write(found.target, found.state, data, mode),
        changes=(Change(record, None),),
    )


def _declined(item: FileItem, agents: tuple[str, ...]) -> Change:
    new = item.new
    if item.wanted is None or new is None:
        raise ValueError("only a wanted file can be declined")
    old = item.record
    if old is not None:
        return Change(old, replace(old, kept=new.token(), run=""))
    root = str(item.root)
    fresh = FileRecord(root, item.path, None, None, item.asset, agents, kept=new.token())
    return Change(None, fresh)


def _staging(view: _View, context: Context) -> Staging | None:
    wanted, new = view.item.wanted, view.item.new
    if view.decision.reason is not Reason.DIVERGED or wanted is None or new is None:
        return None
    place = staging_place(view.item.root, view.item.path)
    return Staging(place, wanted.data, context.state.staged(place, new))


def _obstructed(
    item: FileItem, obstacle: Obstacle, context: Context, agents: tuple[str, ...]
) -> Step:
    """Return the step when no file can be read there: refuse, or do what needs no look."""

    def bare(kind: ActionKind, reason: Reason) -> Action:
        return _action(_View(item, None, Decision(kind, reason), agents), kind, reason, why)

    why = obstacle.detail
    record, new = item.record, item.new
    unreadable = obstacle.reason is Reason.UNREADABLE
    step = Step((), lambda: plan_file(item, context))
    if new is None and not context.in_scope(record.agents if record else ()):
        skipped = bare(ActionKind.SKIPPED, Reason.AGENT_ABSENT)
        return replace(step, settled=(skipped,))
    if new is None and not unreadable:
        kept = bare(ActionKind.KEEP, Reason.DRIFTED)
        return replace(step, actions=(kept,), notes=(Change(record, None),))
    if new is not None and record is not None and record.kept == new.token():
        return replace(step, settled=(bare(ActionKind.KEPT, Reason.KEEP_MINE),))
    if new is not None and context.flags.keep_mine:
        kept = bare(ActionKind.KEEP, Reason.KEEP_MINE)
        return replace(step, actions=(kept,), notes=(_declined(item, agents),))
    action = refused(obstacle, item.place, agents, target=str(item.place), new=new)
    return replace(step, actions=(replace(action, asset=item.asset),))
