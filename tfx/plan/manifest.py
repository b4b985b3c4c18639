"""What tfx wrote and owns: the records of manifest.json and how changes fold into them.

Knows neither targets nor decisions. An unreadable or newer manifest is refused, never treated
as empty (S-39).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from tfx.config.keypath import KeyPath
from tfx.core.files import replace_atomically
from tfx.errors import JsonValue, StateConflict
from tfx.plan.actions import Format, State

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Replaced:
    """User content that --take-new replaced: `backup` is `<run>/<name>`, empty = this write."""

    backup: str
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file we wrote; `sha256` None = not ours, only the user's wish (`kept`) is noted.

    `root` is the resolved directory. `target` is set when the file was written through a link.
    """

    root: str
    path: str
    sha256: str | None
    mode: int | None
    asset: str
    agents: tuple[str, ...]
    run: str = ""
    replaced: Replaced | None = None
    kept: str | None = None
    target: str | None = None

    @property
    def key(self) -> str:
        """The place, unique among files."""
        return f"{self.root}/{self.path}"

    @property
    def state(self) -> State | None:
        """B of the decision table."""
        return None if self.sha256 is None else State(self.sha256, self.mode)


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """An entry we wrote into a shared file; `file` is resolved, `value_sha256` None as above.

    `leaves` are the key paths below `key` that we wrote, `created` the containers we made.
    """

    agent: str
    file: str
    format: Format
    key: KeyPath
    value_sha256: str | None
    leaves: tuple[KeyPath, ...] = ()
    created: tuple[KeyPath, ...] = ()
    element: bool = False
    asset: str = ""
    run: str = ""
    replaced: Replaced | None = None
    kept: str | None = None

    @property
    def name(self) -> str:
        """The place, unique among entries; elements of one array differ by their asset."""
        return entry_name(self.file, self.key, self.asset if self.element else None)

    @property
    def state(self) -> State | None:
        """B of the decision table."""
        return None if self.value_sha256 is None else State(self.value_sha256)


@dataclass(frozen=True, slots=True)
class SharedRecord:
    """A shared file we edited: its bytes as we last left them, and where the original lies.

    `original` (`<run>/<name>`) is kept as long as nobody else changed the file in between.
    """

    file: str
    sha256: str
    original: str | None = None
    created: bool = False


def entry_name(file: str, key: KeyPath, asset: str | None) -> str:
    """Return the unique name of an entry; `asset` is given for array elements only."""
    return json.dumps([file, list(key), asset])


_R = TypeVar("_R")

Record: TypeAlias = FileRecord | EntryRecord | SharedRecord | str
"""A str is a directory that we made."""


def name_of(record: Record) -> str:
    """Return the key of a record in its table."""
    match record:
        case FileRecord():
            return record.key
        case EntryRecord():
            return record.name
        case SharedRecord():
            return record.file
        case str():
            return record


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one record; `old` or `new` is None, never both. Its inverse undoes it."""

    old: Record | None
    new: Record | None

    @property
    def record(self) -> Record:
        """The record it is about."""
        record = self.new if self.new is not None else self.old
        if record is None:
            raise ValueError("a change of nothing")
        return record

    def inverse(self) -> Change:
        """Return the change that takes this one back."""
        return Change(self.new, self.old)

    def stamped(self, run: str, backup: str | None) -> Change:
        """Return the change with the run and the backup that belong to this write filled in."""
        pointer = f"{run}/{backup}" if backup else None
        match self.new:
            case FileRecord() | EntryRecord() as new:
                replaced = new.replaced
                if replaced is not None and not replaced.backup:
                    replaced = Replaced(pointer, replaced.mode) if pointer else None
                return Change(self.old, replace(new, run=new.run or run, replaced=replaced))
            case SharedRecord(original="") as new:
                return Change(self.old, replace(new, original=pointer))
            case _:
                return self


@dataclass(frozen=True, slots=True)
class Manifest:
    """All records by key, and the last run that wrote."""

    run: str = ""
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    entries: Mapping[str, EntryRecord] = field(default_factory=dict)
    shared: Mapping[str, SharedRecord] = field(default_factory=dict)
    dirs: frozenset[str] = frozenset()

    def after(self, changes: Iterable[Change], run: str | None = None) -> Manifest:
        """Return the manifest with the changes folded in; folding twice changes nothing more."""
        files, entries, shared = dict(self.files), dict(self.entries), dict(self.shared)
        dirs = set(self.dirs)
        for change in changes:
            record, gone = change.record, change.new is None
            match record:
                case FileRecord():
                    _put(files, record.key, None if gone else record)
                case EntryRecord():
                    _put(entries, record.name, None if gone else record)
                case SharedRecord():
                    _put(shared, record.file, None if gone else record)
                case str():
                    (dirs.discard if gone else dirs.add)(record)
        return Manifest(run or self.run, files, entries, shared, frozenset(dirs))

    @property
    def pinned_runs(self) -> frozenset[str]:
        """Runs whose backups a record still needs (S-45)."""
        replaced = [record.replaced for record in self.files.values()]
        replaced += [record.replaced for record in self.entries.values()]
        pointers = [item.backup for item in replaced if item]
        pointers += [record.original for record in self.shared.values() if record.original]
        return frozenset(pointer.split("/", 1)[0] for pointer in pointers)


def _put(table: dict[str, _R], key: str, record: _R | None) -> None:
    if record is None:
        table.pop(key, None)
    else:
        table[key] = record


def load(path: Path) -> Manifest:
    """Read the manifest; a missing one is a first run (S-39).

    Raises StateConflict when it is unreadable, truncated, not ours or of a newer tfx.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        loose = json.loads(raw)
    except ValueError as error:
        raise _unreadable(path, f"it is not JSON ({error})") from error
    schema = loose.get("schema") if isinstance(loose, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise StateConflict(
            f"{path} has schema {schema}, written by a newer tfx; this one knows {SCHEMA}",
            code="manifest-newer",
            hint="tfx update",
            details={"path": str(path), "schema": schema},
        )
    try:
        return _decode(msgspec.convert(loose, type=_Document))
    except (msgspec.ValidationError, KeyError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, why: str) -> StateConflict:
    return StateConflict(
        f"cannot read the manifest {path}: {why}; without it nothing can be told to be ours",
        code="manifest-unreadable",
        hint=f"put {path} back from a copy, or move it away to start over with nothing recorded",
        details={"path": str(path)},
    )


def save(path: Path, manifest: Manifest, version: str) -> None:
    """Write the manifest atomically and durably (S-40)."""
    text = json.dumps(msgspec.to_builtins(_encode(manifest, version)), indent=1)
    replace_atomically(path, text.encode() + b"\n")


@dataclass(frozen=True, slots=True)
class _Document:
    """The manifest as it lies on the disk; `root` of a file is an id of `roots` here."""

    schema: int
    tfx: str
    run: str
    roots: dict[str, str]
    files: tuple[FileRecord, ...]
    entries: tuple[EntryRecord, ...]
    shared: tuple[SharedRecord, ...] = ()
    dirs: tuple[str, ...] = ()


def _encode(manifest: Manifest, version: str) -> _Document:
    ids = {record.root: _root_id(record.root) for record in manifest.files.values()}
    return _Document(
        SCHEMA,
        version,
        manifest.run,
        {ids[root]: root for root in sorted(ids)},
        tuple(replace(record, root=ids[record.root]) for _, record in _sorted(manifest.files)),
        tuple(record for _, record in _sorted(manifest.entries)),
        tuple(record for _, record in _sorted(manifest.shared)),
        tuple(sorted(manifest.dirs)),
    )


def _decode(document: _Document) -> Manifest:
    if document.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {document.schema} is not known")
    files = [replace(record, root=document.roots[record.root]) for record in document.files]
    return Manifest(
        document.run,
        {record.key: record for record in files},
        {record.name: record for record in document.entries},
        {record.file: record for record in document.shared},
        frozenset(document.dirs),
    )


def _root_id(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:12]


def _sorted(table: Mapping[str, _R]) -> list[tuple[str, _R]]:
    return sorted(table.items())


_RECORD_TYPES: Mapping[str, type] = {
    "file": FileRecord,
    "entry": EntryRecord,
    "shared": SharedRecord,
    "dir": str,
}


def change_to_json(change: Change) -> JsonValue:
    """Return the change as a journal line holds it."""
    kind = next(word for word, cls in _RECORD_TYPES.items() if isinstance(change.record, cls))
    plain: JsonValue = msgspec.to_builtins({"kind": kind, "old": change.old, "new": change.new})
    return plain


def change_from_json(loose: Mapping[str, object]) -> Change:
    """Return the change of a journal line. Raises msgspec.ValidationError or KeyError."""
    cls = _RECORD_TYPES[str(loose["kind"])]
    old, new = (
        None if loose[side] is None else msgspec.convert(loose[side], type=cls)
        for side in ("old", "new")
    )
    return Change(old, new)
