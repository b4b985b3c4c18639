"""The three versions behind a conflict, for people.

Knows no decision and writes nothing; a token is never shown (S-22).
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tfx.config.keypath import MISSING, value_digest
from tfx.errors import JsonValue, NotFound, TfxError
from tfx.plan.actions import Action, Desired, Diff, WantedEntry, WantedFile
from tfx.plan.documents import Document, array, lookup
from tfx.plan.look import Obstacle, look
from tfx.plan.outcomes import snippet
from tfx.plan.state import StateDir


def diff_of(desired: Desired, action: Action, state: StateDir, git: Path | None) -> Diff:
    """Return base, disk and new of an action. Raises NotFound when the Desired lacks it."""
    if action.is_entry:
        return _entry_diff(action, _wanted_entry(desired, action))
    wanted = _wanted_file(desired, action)
    base = state.base(action.base.sha256) if action.base else None
    try:
        disk = look(action.path).data
    except Obstacle:
        disk = None
    return Diff(
        base,
        disk,
        wanted.data,
        _unified(action, disk, wanted.data),
        _merge_command(action, state, git) if base is not None and disk is not None else None,
    )


def _wanted_file(desired: Desired, action: Action) -> WantedFile:
    for wanted in desired.files:
        if (wanted.root.resolve() / wanted.path) == action.path:
            return wanted
    raise NotFound(f"nothing is wanted at {action.target}")


def _wanted_entry(desired: Desired, action: Action) -> WantedEntry:
    for wanted in desired.entries:
        same = (wanted.file, wanted.key, wanted.asset) == (action.path, action.key, action.asset)
        if same and wanted.agent in action.agents:
            return wanted
    raise NotFound(f"nothing is wanted at {action.target}")


def _entry_diff(action: Action, wanted: WantedEntry) -> Diff:
    new = snippet(wanted).encode() + b"\n"
    disk: bytes | None = None
    try:
        document = Document.read(wanted.format, look(action.path).data or b"").value
        for value in _standing(document, action, wanted):
            disk = snippet(replace(wanted, value=value)).encode() + b"\n"
    except (Obstacle, TfxError):
        disk = None
    return Diff(None, disk, new, _unified(action, disk, new))


def _standing(document: JsonValue, action: Action, wanted: WantedEntry) -> Iterator[JsonValue]:
    """Yield what stands there now: the value at the key, or the element that is ours."""
    if not wanted.element:
        value = lookup(document, wanted.key)
        if value is not MISSING:
            yield value
        return
    for element in array(document, wanted.key):
        if action.disk is not None and value_digest(element) == action.disk.sha256:
            yield element
            return


def _unified(action: Action, disk: bytes | None, new: bytes) -> str:
    old_lines, new_lines = (
        (data or b"").decode("utf-8", "replace").splitlines(keepends=True) for data in (disk, new)
    )
    name = action.target
    return "".join(difflib.unified_diff(old_lines, new_lines, name, f"{name} (tfx)"))


def _merge_command(action: Action, state: StateDir, git: Path | None) -> str | None:
    """Return the three-way merge to look at (S-36); the staged version is there after a run."""
    if git is None or action.base is None or action.new is None:
        return None
    base = state.path / "base" / action.base.sha256
    new = action.new.sha256
    staged = next((path for path, sha256 in state.all_staged() if sha256 == new), None)
    if staged is None:
        return None
    words = [str(git), "merge-file", "-p", "--diff3", str(action.path), str(base), str(staged)]
    return shlex.join(words)
