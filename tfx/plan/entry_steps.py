"""Plan the entries of one shared file: read it once, decide each entry, prepare the new bytes.

Knows no agent and writes nothing; values with a token leave it only inside the new bytes.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

from tfx.config.keypath import MISSING, canonical, leaves
from tfx.core.files import PRIVATE_FILE
from tfx.errors import OperationFailed
from tfx.plan.actions import CHANGES, Action, ActionKind, Reason, State
from tfx.plan.decide import Case, Decision, decide
from tfx.plan.disk import Write
from tfx.plan.documents import Edit, lookup, parse, starting_bytes
from tfx.plan.drafts import (
    Draft,
    SharedFile,
    bytes_after,
    differences,
    hand_over_parents,
    let_go,
    moved_shared,
    names_of,
)
from tfx.plan.entry_edits import (
    EntryItem,
    creation,
    deletion,
    disk_state,
    is_doubled,
    missing_parents,
    replacement,
    update,
)
from tfx.plan.look import Obstacle
from tfx.plan.records import EntryRecord, Replaced
from tfx.plan.steps import (
    Context,
    Step,
    conflict_hint,
    read_shared,
    refused,
    rival_detail,
)

_PHASE = 1
_OPEN_TO_OTHERS = 0o077


def plan_shared(file: SharedFile, context: Context) -> Step:
    """Return the step of one shared file."""
    try:
        found, document = read_shared(file.path, file.format, context)
    except Obstacle as obstacle:
        return _refused(file, obstacle, context)
    records = {record.name: record for record in file.records}
    draft = Draft(file, context, found, document, records, dict(records))
    for item in file.items:
        _plan_entry(draft, item)
    return _finished(draft)


def _refused(file: SharedFile, obstacle: Obstacle, context: Context) -> Step:
    actions, settled = [], []
    for item in file.items:
        if not _in_scope(item, context):
            skipped = Decision(ActionKind.SKIPPED, Reason.AGENT_ABSENT)
            settled.append(_action(file, item, skipped, None))
            continue
        action = refused(
            obstacle,
            file.path,
            (item.agent,),
            target=_shown(file, item),
            new=item.new,
        )
        actions.append(replace(action, key=item.key, asset=item.asset))
    return Step(
        tuple(actions),
        lambda: plan_shared(file, context),
        tuple(settled),
        phase=_PHASE,
        rank=(str(file.path), 0, ""),
    )


def _in_scope(item: EntryItem, context: Context) -> bool:
    return item.wanted is not None or context.in_scope((item.agent,))


def _shown(file: SharedFile, item: EntryItem) -> str:
    return f"{file.path}:{'.'.join(item.key)}"


def _action(
    file: SharedFile, item: EntryItem, decision: Decision, disk: State | None, detail: str = ""
) -> Action:
    conflict = decision.kind is ActionKind.CONFLICT
    return Action(
        decision.kind,
        decision.reason,
        _shown(file, item),
        file.path,
        (item.agent,),
        item.key,
        item.asset,
        base=item.record.state if item.record else None,
        disk=disk,
        new=item.new,
        detail=detail,
        hint=conflict_hint(decision.reason) if conflict else None,
    )


def _plan_entry(draft: Draft, item: EntryItem) -> None:
    try:
        disk = disk_state(draft.document.value, item)
        decision = _decided(draft, item, disk)
        edits = _edits(draft, item, decision)
        document = draft.document.edited(edits) if edits else draft.document
    except Obstacle as obstacle:
        action = refused(
            obstacle, draft.file.path, (item.agent,), target=_shown(draft.file, item), new=item.new
        )
        draft.actions.append(replace(action, key=item.key, asset=item.asset))
        return
    action = _action(draft.file, item, decision, disk, _owner(draft, item, decision))
    if not draft.context.is_chosen(action):
        return
    _record(draft, item, decision)
    draft.document = document
    if decision.kind in {ActionKind.UNCHANGED, ActionKind.KEPT, ActionKind.SKIPPED}:
        _settle(draft, item, action)
    else:
        draft.actions.append(replace(action, warning=_warning(draft, item, decision)))


def _owner(draft: Draft, item: EntryItem, decision: Decision) -> str:
    if decision.reason is not Reason.FOREIGN or item.wanted is None:
        return ""
    value = lookup(draft.document.value, item.key)
    text = "" if value is MISSING else canonical(value).decode("utf-8", "replace")
    return rival_detail(item.wanted.rivals, text)


def _settle(draft: Draft, item: EntryItem, action: Action) -> None:
    name = item.name(draft.file.target)
    noted = replace(action, kind=ActionKind.RECORD)
    if action.kind is not ActionKind.UNCHANGED or draft.after.get(name) == item.record:
        draft.settled.append(action)
    elif draft.context.is_chosen(noted):
        draft.actions.append(noted)
    elif item.record is not None:
        draft.after[name] = item.record


def _decided(draft: Draft, item: EntryItem, disk: State | None) -> Decision:
    record = item.record
    case = Case(
        base=record.state if record else None,
        disk=disk,
        new=item.new,
        kept=record.kept if record else None,
        replaced=bool(record and record.replaced),
        in_scope=_in_scope(item, draft.context),
    )
    decision = decide(case, draft.context.flags)
    same = decision.reason is Reason.IDENTICAL
    if same and is_doubled(draft.document.value, item):
        return Decision(ActionKind.UPDATE, Reason.DOUBLED)
    return decision


def _edits(draft: Draft, item: EntryItem, decision: Decision) -> tuple[Edit, ...]:
    value = draft.document.value
    match decision.kind:
        case ActionKind.DELETE:
            return deletion(value, item, draft.orphans)
        case ActionKind.RESTORE if decision.reason is Reason.REPLACED:
            return _give_back(draft, item)
        case ActionKind.CREATE | ActionKind.RESTORE:
            return creation(item)
        case ActionKind.UPDATE if decision.reason is Reason.TAKE_NEW:
            return replacement(item)
        case ActionKind.UPDATE:
            return update(value, item)
        case _:
            return ()


def _give_back(draft: Draft, item: EntryItem) -> tuple[Edit, ...]:
    record = item.record
    if record is None or record.replaced is None:
        raise ValueError("nothing was replaced here")
    try:
        data = draft.context.state.kept(record.replaced.backup)
    except OperationFailed as error:
        raise Obstacle(Reason.UNREADABLE, error.message) from error
    value = lookup(parse(draft.file.format, data), item.key)
    if value is MISSING:
        return deletion(draft.document.value, item, draft.orphans)
    return replacement(item, value)


def _record(draft: Draft, item: EntryItem, decision: Decision) -> None:
    """Note in `draft.after` what the manifest shall say of the entry."""
    name = item.name(draft.file.target)
    match decision.kind:
        case ActionKind.CONFLICT | ActionKind.KEPT | ActionKind.SKIPPED:
            return
        case ActionKind.KEEP if decision.reason is Reason.KEEP_MINE:
            draft.after[name] = _declined(draft, item)
        case ActionKind.DELETE | ActionKind.KEEP:
            _forget(draft, item)
        case ActionKind.RESTORE | ActionKind.RECORD if item.wanted is None:
            _forget(draft, item)
        case _:
            if item.record is not None:
                draft.after.pop(item.record.name, None)
            draft.after[name] = _recorded(draft, item, decision)
    if decision.kind in CHANGES:
        draft.touched.add(name)
        if item.record is not None:
            draft.touched.add(item.record.name)


def _forget(draft: Draft, item: EntryItem) -> None:
    if item.record is not None:
        draft.after.pop(item.record.name, None)
        draft.orphans.extend(item.record.created)


def _recorded(draft: Draft, item: EntryItem, decision: Decision) -> EntryRecord:
    wanted, old, new = item.wanted, item.record, item.new
    if wanted is None or new is None:
        raise ValueError("only a wanted entry is recorded")
    created = old.created if old else ()
    if decision.kind in {ActionKind.CREATE, ActionKind.RESTORE}:
        created = tuple(sorted({*created, *missing_parents(draft.document.value, wanted)}))
    taken = decision.reason is Reason.TAKE_NEW
    record = EntryRecord(
        agent=wanted.agent,
        file=str(draft.file.target),
        format=wanted.format,
        key=wanted.key,
        value_sha256=new.sha256,
        leaves=() if wanted.element else tuple(leaves(wanted.value)),
        created=created,
        element=wanted.element,
        asset=wanted.asset,
        replaced=(old.replaced if old else None) or (Replaced("") if taken else None),
    )
    return old if old is not None and replace(record, run=old.run) == old else record


def _declined(draft: Draft, item: EntryItem) -> EntryRecord:
    wanted, old, new = item.wanted, item.record, item.new
    if wanted is None or new is None:
        raise ValueError("only a wanted entry can be declined")
    if old is not None:
        return replace(old, kept=new.token(), run="")
    return EntryRecord(
        agent=wanted.agent,
        file=str(draft.file.target),
        format=wanted.format,
        key=wanted.key,
        value_sha256=None,
        element=wanted.element,
        asset=wanted.asset,
        kept=new.token(),
    )


def _warning(draft: Draft, item: EntryItem, decision: Decision) -> str | None:
    """Return the word on a token in a file that others can read (S-23)."""
    state = draft.found.state
    if item.wanted is None or not item.wanted.secret or decision.kind not in CHANGES:
        return None
    if state is None or state.mode is None or not state.mode & _OPEN_TO_OTHERS:
        return None
    path = draft.file.path
    warning = f"others can read {path} (mode {state.mode:o}) and this entry holds a token: "
    remedy = f"`chmod go-rwx {shlex.quote(str(path))}`"
    if item.wanted.by_variable is not None:
        remedy += f", or write it by hand as {json.dumps(item.wanted.by_variable)}"
    return warning + remedy


def _finished(draft: Draft) -> Step:
    file, found = draft.file, draft.found
    hand_over_parents(draft)
    step = Step(
        tuple(draft.actions),
        lambda: plan_shared(file, draft.context),
        tuple(draft.settled),
        entries={_shown(file, i): i.wanted for i in file.items if i.wanted is not None},
        phase=_PHASE,
        rank=(str(file.path), 0, ""),
    )
    changes = (*differences(draft), *moved_shared(draft))
    same_bytes = draft.document.data == starting_bytes(file.format, found.data)
    if same_bytes and not let_go(draft):
        return replace(step, notes=changes)
    notes = tuple(c for c in changes if not draft.touched.intersection(names_of(c)))
    data, shared = bytes_after(draft)
    if data == found.data:
        return replace(step, notes=(*changes, *shared))
    mode = found.state.mode if found.state is not None else None
    if mode is None:
        mode = PRIVATE_FILE  # its agent puts logins and tokens into it later
    return replace(
        step,
        notes=notes,
        write=Write(found.target, found.state, data, mode, shared=True),
        changes=(*(c for c in changes if c not in notes), *shared),
    )
