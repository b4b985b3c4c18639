"""Plan the reversal of one run from its journal and its backup (S-44).

Knows nothing of what is wanted now; what changed since that run stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tfx.config.keypath import MISSING, value_digest
from tfx.errors import JsonValue, OperationFailed
from tfx.plan.actions import Action, ActionKind, Format, Reason, State
from tfx.plan.disk import Write
from tfx.plan.documents import Append, Document, Edit, SetKey, array, lookup
from tfx.plan.entry_edits import EntryItem, deletion, disk_state
from tfx.plan.journal import Intent, Story
from tfx.plan.look import Found, Obstacle, look
from tfx.plan.records import Change, EntryRecord, FileRecord, Manifest, Record, SharedRecord
from tfx.plan.state import StateDir
from tfx.plan.steps import Chmod, Context, Step, refused
from tfx.plan.upkeep import reopening

_HINT = "it changed after that run; what it was before lies in the backup of the run"


@dataclass(frozen=True, slots=True)
class _Undo:
    """One intent to be reversed, with the bytes from before it (None = there was no file)."""

    intent: Intent
    context: Context
    before: bytes | None

    @property
    def entries(self) -> tuple[Change, ...]:
        return tuple(c for c in self.intent.changes if isinstance(c.record, EntryRecord))

    @property
    def inverse(self) -> tuple[Change, ...]:
        """The changes of the manifest taken back; directories are judged at the end of the run."""
        return tuple(c.inverse() for c in self.intent.changes if not isinstance(c.record, str))


def make_undo(story: Story, context: Context) -> tuple[Step, ...]:
    """Return the steps that take a run back, in reverse order."""
    steps = [_undo(intent, story.run, context) for intent in reversed(story.done)]
    steps += [
        reopening(Chmod(change.target, change.before, change.after))
        for change in reversed(story.modes)
    ]
    notes = tuple(
        change.inverse()
        for change in story.records
        if not isinstance(change.record, str)
        and _record_now(context.manifest, change.record) == change.new
    )
    if notes:
        steps.append(_forgotten(notes))
    return tuple(steps)


def _forgotten(notes: tuple[Change, ...]) -> Step:
    paths = [_path(change.record) for change in notes]
    actions = tuple(Action(ActionKind.RECORD, Reason.UNDO, str(path), path) for path in paths)
    return Step(actions, lambda: _forgotten(notes), notes=notes)


def _path(record: Record) -> Path:
    match record:
        case FileRecord():
            return Path(record.key)
        case EntryRecord() | SharedRecord():
            return Path(record.file)
        case str():
            return Path(record)


def _record_now(manifest: Manifest, record: Record) -> Record | None:
    match record:
        case FileRecord():
            return manifest.files.get(record.key)
        case EntryRecord():
            return manifest.entries.get(record.name)
        case SharedRecord():
            return manifest.shared.get(record.file)
        case str():
            return record if record in manifest.dirs else None


def _undo(intent: Intent, run: str, context: Context) -> Step:
    try:
        before = _kept(context.state, run, intent)
    except OperationFailed as error:
        obstacle = Obstacle(Reason.UNREADABLE, error.message)
        return _refusal(intent, obstacle)
    return _planned(_Undo(intent, context, before))


def _kept(state: StateDir, run: str, intent: Intent) -> bytes | None:
    if intent.backup is None:
        return None
    expected = intent.before.sha256 if intent.before else None
    return state.kept(f"{run}/{intent.backup}", expected)


def _planned(undo: _Undo) -> Step:
    intent = undo.intent
    try:
        found = look(intent.target)
        if found.state == intent.after and _recorded_result(undo):
            return _whole(undo, found)
        if found.state == intent.before:
            settled = _action(undo, ActionKind.UNCHANGED, found.state)
            return Step((), lambda: _planned(undo), (settled,))
        if undo.entries and found.data is not None:
            return _entrywise(undo, found)
    except Obstacle as obstacle:
        return _refusal(intent, obstacle)
    action = _action(undo, ActionKind.CONFLICT, found.state)
    return Step((action,), lambda: _planned(undo))


def _refusal(intent: Intent, obstacle: Obstacle) -> Step:
    action = refused(obstacle, intent.target, (), target=str(intent.target), new=intent.before)
    return Step((action,), lambda: _refusal(intent, obstacle))


def _recorded_result(undo: _Undo) -> bool:
    """Say whether the manifest still says of each item what that run made it say."""
    for change in undo.intent.changes:
        now = _record_now(undo.context.manifest, change.record)
        match change.record:
            case FileRecord() | EntryRecord():
                if _state(now) != _state(change.new):
                    return False
            case _:
                continue
    return True


def _state(record: Record | None) -> State | None:
    return record.state if isinstance(record, FileRecord | EntryRecord) else None


def _action(undo: _Undo, kind: ActionKind, disk: State | None, of: Change | None = None) -> Action:
    conflict = kind is ActionKind.CONFLICT
    intent = undo.intent
    action = Action(
        kind,
        Reason.EDITED if conflict else Reason.UNDO,
        str(intent.target),
        intent.target,
        base=intent.after,
        disk=disk,
        new=intent.before,
        hint=_HINT if conflict else None,
    )
    record = of.record if of else None
    if isinstance(record, EntryRecord):
        shown = f"{intent.target}:{'.'.join(record.key)}"
        return replace(
            action, target=shown, key=record.key, agents=(record.agent,), asset=record.asset
        )
    return action


def _kind(before: object, after: object) -> ActionKind:
    if before is None:
        return ActionKind.DELETE
    return ActionKind.RESTORE if after is None else ActionKind.UPDATE


def _whole(undo: _Undo, found: Found) -> Step:
    """Give back the very bytes and mode: nobody touched the file since."""
    intent = undo.intent
    kind = _kind(intent.before, intent.after)
    actions = tuple(
        _action(undo, _kind(change.old, change.new), found.state, change) for change in undo.entries
    ) or (_action(undo, kind, found.state),)
    mode = intent.before.mode if intent.before else None
    return Step(
        actions,
        lambda: _planned(undo),
        write=Write(
            found.target,
            found.state,
            undo.before,
            0o644 if mode is None else mode,
            shared=bool(undo.entries),
        ),
        changes=undo.inverse,
    )


def _entrywise(undo: _Undo, found: Found) -> Step:
    """Take back the entries only: others changed the file since (S-44)."""
    of = _format(undo)
    document = Document.read(of, found.data or b"")
    old = Document.read(of, undo.before or b"")
    actions: list[Action] = []
    changes: list[Change] = []
    for change in undo.entries:
        edits = _reverse(document.value, old.value, change)
        if edits is None or _state(_record_now(undo.context.manifest, change.record)) != _state(
            change.new
        ):
            actions.append(_action(undo, ActionKind.CONFLICT, found.state, change))
            continue
        document = document.edited(edits)
        actions.append(_action(undo, _kind(change.old, change.new), found.state, change))
        changes.append(change.inverse())
    step = Step(tuple(actions), lambda: _planned(undo))
    if not changes:
        return step
    mode = found.state.mode if found.state else None
    mode = 0o644 if mode is None else mode
    write = Write(found.target, found.state, document.data, mode, shared=True)
    shared = _shared_after(undo, write, tuple(changes))
    return replace(step, write=write, changes=(*changes, *shared))


def _format(undo: _Undo) -> Format:
    record = undo.entries[0].record
    if not isinstance(record, EntryRecord):
        raise TypeError("not an entry")
    return record.format


def _reverse(now: JsonValue, old: JsonValue, change: Change) -> tuple[Edit, ...] | None:
    """Return the edits that put an entry back as it was; None when it changed since."""
    record, before = change.new, change.old
    after = EntryItem(None, record if isinstance(record, EntryRecord) else None)
    place = change.record
    if not isinstance(place, EntryRecord):
        raise TypeError("not an entry")
    gone = EntryItem(None, place)
    if after.record is None:
        if disk_state(now, gone) is not None:
            return None
    elif disk_state(now, after) != after.record.state:
        return None
    if place.element:
        return _reverse_element(now, old, after, before)
    value = lookup(old, place.key)
    if value is MISSING:
        return deletion(now, gone)
    return (SetKey(place.key, value),)


def _reverse_element(
    now: JsonValue, old: JsonValue, after: EntryItem, before: Record | None
) -> tuple[Edit, ...]:
    edits: tuple[Edit, ...] = ()
    if after.record is not None and not isinstance(before, EntryRecord):
        return deletion(now, after)
    if after.record is not None:
        edits = deletion(now, EntryItem(None, replace(after.record, created=())))
    if isinstance(before, EntryRecord):
        edits += tuple(
            Append(before.key, element)
            for element in array(old, before.key)
            if value_digest(element) == before.value_sha256
        )[:1]
    return edits


def _shared_after(undo: _Undo, write: Write, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    manifest = undo.context.manifest
    old = manifest.shared.get(str(write.target))
    later = manifest.after(changes)
    still = any(
        record.file == str(write.target) and record.value_sha256
        for record in later.entries.values()
    )
    after = write.after
    if not still or after is None:
        return () if old is None else (Change(old, None),)
    fresh = SharedRecord(str(write.target), after.sha256)
    return (Change(old, replace(old, sha256=after.sha256, original=None) if old else fresh),)
