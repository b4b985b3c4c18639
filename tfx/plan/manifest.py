"""Read and write manifest.json, and the changes of records as a journal line holds them.

Knows neither targets nor decisions. An unreadable or newer manifest is refused, never treated
as empty (S-39).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from tfx.core.files import read_plain, replace_atomically
from tfx.errors import JsonValue, StateConflict
from tfx.plan.records import Change, EntryRecord, FileRecord, Manifest, SharedRecord

SCHEMA = 1

_R = TypeVar("_R")


def load(path: Path) -> Manifest:
    """Read the manifest; a missing one is a first run (S-39).

    Raises StateConflict when it is unreadable, truncated, not ours or of a newer tfx.
    """
    try:
        raw = read_plain(path)
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


def written_by(path: Path) -> str | None:
    """Return the version of the tfx that wrote the manifest, or None where it does not tell."""
    try:
        loose = json.loads(read_plain(path))
    except (OSError, ValueError, RecursionError):
        return None
    version = loose.get("tfx") if isinstance(loose, dict) else None
    return version if isinstance(version, str) else None


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
