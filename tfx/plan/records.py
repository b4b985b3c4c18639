"""What tfx remembers of what it wrote, as frozen data, and how changes fold into it.

Knows no file: manifest.py reads and writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, cast

from tfx.config.keypath import KeyPath
from tfx.plan.actions import Format, State


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
            match change.record:
                case FileRecord():
                    _fold(files, change)
                case EntryRecord():
                    _fold(entries, change)
                case SharedRecord():
                    _fold(shared, change)
                case str() as directory:
                    (dirs.discard if change.new is None else dirs.add)(directory)
        return Manifest(run or self.run, files, entries, shared, frozenset(dirs))

    @property
    def agents(self) -> frozenset[str]:
        """Names of the agents that something is recorded for."""
        of_files = (name for record in self.files.values() for name in record.agents)
        return frozenset(of_files) | {record.agent for record in self.entries.values()}

    @property
    def pinned_runs(self) -> frozenset[str]:
        """Runs whose backups a record still needs (S-45)."""
        replaced = [record.replaced for record in self.files.values()]
        replaced += [record.replaced for record in self.entries.values()]
        pointers = [item.backup for item in replaced if item]
        pointers += [record.original for record in self.shared.values() if record.original]
        return frozenset(pointer.split("/", 1)[0] for pointer in pointers)


def _fold(table: dict[str, _R], change: Change) -> None:
    """Change one table; a record that moved leaves its old place."""
    if change.old is not None:
        table.pop(name_of(change.old), None)
    if change.new is not None:
        table[name_of(change.new)] = cast("_R", change.new)
