"""Plan the entries of one shared file: read it once, decide each entry, prepare the new bytes.

Knows no agent and writes nothing; values with a token leave it only inside the new bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tfx.config.keypath import MISSING, KeyPath, leaves
from tfx.errors import OperationFailed
from tfx.plan.actions import CHANGES, Action, ActionKind, Format, Reason, State
from tfx.plan.decide import Case, Decision, decide
from tfx.plan.disk import Found, Obstacle, Write
from tfx.plan.documents import Document, Edit, canonical_equal, is_blank, lookup, parse
from tfx.plan.entry_edits import (
    EntryItem,
    creation,
    deletion,
    disk_state,
    missing_parents,
    replacement,
    update,
)
from tfx.plan.manifest import Change, EntryRecord, Replaced, SharedRecord, name_of
from tfx.plan.steps import Context, Step, conflict_hint, read_shared, refused

_PHASE = 1
_OPEN_TO_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class SharedFile:
    """One shared file: the path as wanted, fully resolved, and all that concerns it.

    `records` are all records of the file, `items` those of them and the wants to be planned.
    """

    path: Path
    target: Path
    format: Format
    items: tuple[EntryItem, ...]
    records: tuple[EntryRecord, ...]


@dataclass(slots=True)
class _Draft:
    """The plan of one file while its entries are decided one after the other."""

    file: SharedFile
    context: Context
    found: Found
    document: Document
    before: dict[str, EntryRecord]
    after: dict[str, EntryRecord]
    touched: set[str] = field(default_factory=set)
    orphans: list[KeyPath] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    settled: list[Action] = field(default_factory=list)


def plan_shared(file: SharedFile, context: Context) -> Step:
    """Return the step of one shared file."""
    try:
        found = read_shared(file.path, context, lambda data: _check(file, data))
        document = Document.read(file.format, found.data or b"")
    except Obstacle as obstacle:
        return _refused(file, obstacle, context)
    records = {record.name: record for record in file.records}
    draft = _Draft(file, context, found, document, records, dict(records))
    for item in file.items:
        _plan_entry(draft, item)
    return _finished(draft)


def _check(file: SharedFile, data: bytes) -> None:
    Document.read(file.format, data)


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


def _plan_entry(draft: _Draft, item: EntryItem) -> None:
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
    action = _action(draft.file, item, decision, disk)
    _record(draft, item, decision)
    draft.document = document
    if decision.kind in {ActionKind.UNCHANGED, ActionKind.KEPT, ActionKind.SKIPPED}:
        _settle(draft, item, action)
    else:
        draft.actions.append(replace(action, warning=_warning(draft, item, decision)))


def _settle(draft: _Draft, item: EntryItem, action: Action) -> None:
    name = item.name(draft.file.target)
    if action.kind is ActionKind.UNCHANGED and draft.after.get(name) != item.record:
        action = replace(action, kind=ActionKind.RECORD)
        draft.actions.append(action)
    else:
        draft.settled.append(action)


def _decided(draft: _Draft, item: EntryItem, disk: State | None) -> Decision:
    record = item.record
    case = Case(
        base=record.state if record else None,
        disk=disk,
        new=item.new,
        kept=record.kept if record else None,
        replaced=bool(record and record.replaced),
        in_scope=_in_scope(item, draft.context),
    )
    return decide(case, draft.context.flags)


def _edits(draft: _Draft, item: EntryItem, decision: Decision) -> tuple[Edit, ...]:
    value = draft.document.value
    match decision.kind:
        case ActionKind.DELETE:
            return deletion(value, item)
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


def _give_back(draft: _Draft, item: EntryItem) -> tuple[Edit, ...]:
    record = item.record
    if record is None or record.replaced is None:
        raise ValueError("nothing was replaced here")
    try:
        data = draft.context.state.kept(record.replaced.backup)
    except OperationFailed as error:
        raise Obstacle(Reason.UNREADABLE, error.message) from error
    value = lookup(parse(draft.file.format, data), item.key)
    if value is MISSING:
        return deletion(draft.document.value, item)
    return replacement(item, value)


def _record(draft: _Draft, item: EntryItem, decision: Decision) -> None:
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


def _forget(draft: _Draft, item: EntryItem) -> None:
    if item.record is not None:
        draft.after.pop(item.record.name, None)
        draft.orphans.extend(item.record.created)


def _recorded(draft: _Draft, item: EntryItem, decision: Decision) -> EntryRecord:
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


def _declined(draft: _Draft, item: EntryItem) -> EntryRecord:
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


def _warning(draft: _Draft, item: EntryItem, decision: Decision) -> str | None:
    """Return the word on a token in a file that others can read (S-23)."""
    state = draft.found.state
    if item.wanted is None or not item.wanted.secret or decision.kind not in CHANGES:
        return None
    if state is None or state.mode is None or not state.mode & _OPEN_TO_OTHERS:
        return None
    return f"others can read {draft.file.path} (mode {state.mode:o}), which now holds a token"


def _finished(draft: _Draft) -> Step:
    file, found = draft.file, draft.found
    _hand_over_parents(draft)
    step = Step(
        tuple(draft.actions),
        lambda: plan_shared(file, draft.context),
        tuple(draft.settled),
        entries={_shown(file, i): i.wanted for i in file.items if i.wanted is not None},
        phase=_PHASE,
        rank=(str(file.path), 0, ""),
    )
    changes = (*_differences(draft), *_moved_shared(draft))
    if draft.document.data == (found.data or b""):
        return replace(step, notes=changes)
    notes = tuple(c for c in changes if not draft.touched.intersection(_names(c)))
    data, shared = _bytes_after(draft)
    mode = found.state.mode if found.state is not None else None
    if mode is None:
        mode = 0o600 if any(i.wanted and i.wanted.secret for i in file.items) else 0o644
    return replace(
        step,
        notes=notes,
        write=Write(found.target, found.state, data, mode),
        changes=(*(c for c in changes if c not in notes), *shared),
    )


def _differences(draft: _Draft) -> tuple[Change, ...]:
    names = sorted({*draft.before, *draft.after})
    pairs = ((draft.before.get(name), draft.after.get(name)) for name in names)
    return tuple(Change(old, new) for old, new in pairs if old != new)


def _shared_before(draft: _Draft) -> SharedRecord | None:
    """Return what is recorded of the file, also when it was moved behind a link since."""
    shared = draft.context.manifest.shared
    names = (str(draft.file.target), *sorted({record.file for record in draft.file.records}))
    found = next((shared[name] for name in names if name in shared), None)
    return None if found is None else replace(found, file=str(draft.file.target))


def _moved_shared(draft: _Draft) -> tuple[Change, ...]:
    target = str(draft.file.target)
    shared = draft.context.manifest.shared
    names = {record.file for record in draft.file.records} - {target}
    gone = tuple(Change(shared[name], None) for name in sorted(names) if name in shared)
    if not gone or target in shared:
        return gone
    return (*gone, Change(None, _shared_before(draft)))


def _names(change: Change) -> set[str]:
    return {name_of(record) for record in (change.old, change.new) if record is not None}


def _hand_over_parents(draft: _Draft) -> None:
    """Let a record that stays remember the containers that a forgotten one had made."""
    left = [key for key in draft.orphans if lookup(draft.document.value, key) is not MISSING]
    heirs = sorted(name for name, record in draft.after.items() if record.value_sha256)
    if left and heirs:
        heir = draft.after[heirs[0]]
        draft.after[heirs[0]] = replace(heir, created=tuple(sorted({*heir.created, *left})))
        draft.touched.add(heirs[0])


def _bytes_after(draft: _Draft) -> tuple[bytes | None, tuple[Change, ...]]:
    """Return the new bytes (None = delete the file) and what is recorded of the file."""
    found, document = draft.found, draft.document
    old = _shared_before(draft)
    unbroken = old is not None and found.state is not None and old.sha256 == found.state.sha256
    if any(record.value_sha256 for record in draft.after.values()):
        digest = Write(found.target, None, document.data).after
        if digest is None:
            raise ValueError("a document has bytes")
        if old is None:
            fresh = found.state is None
            new = SharedRecord(str(draft.file.target), digest.sha256, None if fresh else "", fresh)
        else:
            new = replace(old, sha256=digest.sha256, original=old.original if unbroken else None)
        return document.data, (Change(old, new),)
    forget = () if old is None else (Change(old, None),)
    if old is None:
        return document.data, forget
    blank = document.value == {} and (unbroken or is_blank(document.format, document.data))
    if old.created and blank:
        return None, forget
    return _original(draft, old) if unbroken else document.data, forget


def _original(draft: _Draft, shared: SharedRecord) -> bytes:
    """Return the very bytes from before our first edit when they say the same (S-5)."""
    if not shared.original:
        return draft.document.data
    try:
        data = draft.context.state.kept(shared.original)
        value = parse(draft.file.format, data)
    except (OperationFailed, Obstacle):
        return draft.document.data
    return data if canonical_equal(value, draft.document.value) else draft.document.data
