"""One shared file while its entries are decided, and what becomes of its bytes in the end.

Knows which records stay and which bytes were there first; entry_steps.py decides the entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tfx.config.keypath import MISSING, KeyPath
from tfx.errors import OperationFailed
from tfx.plan.actions import Action, Format
from tfx.plan.disk import Write
from tfx.plan.documents import Document, canonical_equal, is_blank, lookup, parse
from tfx.plan.entry_edits import EntryItem
from tfx.plan.look import Found, Obstacle
from tfx.plan.records import Change, EntryRecord, SharedRecord, name_of
from tfx.plan.steps import Context


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
class Draft:
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


def differences(draft: Draft) -> tuple[Change, ...]:
    """Return what the manifest has to learn of the entries."""
    names = sorted({*draft.before, *draft.after})
    pairs = ((draft.before.get(name), draft.after.get(name)) for name in names)
    return tuple(Change(old, new) for old, new in pairs if old != new)


def shared_before(draft: Draft) -> SharedRecord | None:
    """Return what is recorded of the file, also when it was moved behind a link since."""
    shared = draft.context.manifest.shared
    names = (str(draft.file.target), *sorted({record.file for record in draft.file.records}))
    found = next((shared[name] for name in names if name in shared), None)
    return None if found is None else replace(found, file=str(draft.file.target))


def moved_shared(draft: Draft) -> tuple[Change, ...]:
    """Return how the record of a file follows it when it was moved behind a link."""
    target = str(draft.file.target)
    shared = draft.context.manifest.shared
    names = {record.file for record in draft.file.records} - {target}
    gone = tuple(Change(shared[name], None) for name in sorted(names) if name in shared)
    if not gone or target in shared:
        return gone
    return (*gone, Change(None, shared_before(draft)))


def names_of(change: Change) -> set[str]:
    """Return the names of the records of a change."""
    return {name_of(record) for record in (change.old, change.new) if record is not None}


def hand_over_parents(draft: Draft) -> None:
    """Let a record that stays remember the containers that a forgotten one had made."""
    left = [key for key in draft.orphans if lookup(draft.document.value, key) is not MISSING]
    heirs = sorted(name for name, record in draft.after.items() if record.value_sha256)
    if left and heirs:
        heir = draft.after[heirs[0]]
        draft.after[heirs[0]] = replace(heir, created=tuple(sorted({*heir.created, *left})))
        draft.touched.add(heirs[0])


def let_go(draft: Draft) -> bool:
    """Say whether nothing in a file that we had edited is ours any more."""
    ours = any(record.value_sha256 for record in draft.after.values())
    return not ours and shared_before(draft) is not None


def bytes_after(draft: Draft) -> tuple[bytes | None, tuple[Change, ...]]:
    """Return the new bytes (None = delete the file) and what is recorded of the file."""
    found, document = draft.found, draft.document
    old = shared_before(draft)
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
    if found.state is None:  # the user deleted the whole file: it stays away
        return None, forget
    blank = document.value == {} and (unbroken or is_blank(document.format, document.data))
    if old.created and blank:
        return None, forget
    return _original(draft, old) if unbroken else document.data, forget


def _original(draft: Draft, shared: SharedRecord) -> bytes:
    """Return the very bytes from before our first edit when they say the same (S-5)."""
    if not shared.original:
        return draft.document.data
    try:
        data = draft.context.state.kept(shared.original)
        value = parse(draft.file.format, data)
    except (OperationFailed, Obstacle):
        return draft.document.data
    return data if canonical_equal(value, draft.document.value) else draft.document.data
