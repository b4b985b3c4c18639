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
from tfx.core.files import digest
from tfx.errors import JsonValue, NotFound, TfxError
from tfx.plan.actions import Action, Desired, Diff, Reason, WantedEntry, WantedFile
from tfx.plan.documents import Document, array, lookup
from tfx.plan.look import Obstacle, look
from tfx.plan.outcomes import redacted, snippet
from tfx.plan.outlines import doubles_outline, entry_outline, lines_outline
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
    unified = _unified(action, disk, wanted.data)
    ours = [*_lines(base), *_lines(wanted.data)]
    if disk is not None and action.base is not None and digest(disk) == action.base.sha256:
        ours += _lines(disk)  # as tfx wrote it
    return Diff(
        base,
        disk,
        wanted.data,
        "".join(unified),
        _merge_command(action, state, git) if base is not None and disk is not None else None,
        lines_outline(unified, ours),
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
    shown = redacted(wanted.value) if wanted.secret else wanted.value
    outline = entry_outline(wanted.key, (), wanted.value, shown)
    try:
        document = Document.read(wanted.format, look(action.path).data or b"").value
        standing = list(_standing(document, action, wanted))
        outline = entry_outline(wanted.key, standing, wanted.value, shown)
        if action.reason is Reason.DOUBLED:
            outline = doubles_outline(wanted.key, array(document, wanted.key), wanted.value)
        for value in standing:
            disk = snippet(replace(wanted, value=value)).encode() + b"\n"
    except (Obstacle, TfxError):
        disk = None
    return Diff(None, disk, new, "".join(_unified(action, disk, new)), outline=outline)


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


def _unified(action: Action, disk: bytes | None, new: bytes) -> list[str]:
    old_lines, new_lines = _lines(disk), _lines(new)
    name = action.target
    return list(difflib.unified_diff(old_lines, new_lines, name, f"{name} (tfx)"))


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)


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
