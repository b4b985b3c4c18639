"""Finish what an interrupted run left behind (S-43).

Knows the journal and the disk; decides nothing about ownership: what is neither as before nor as
after is left alone, and the next plan sees it as it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tfx.core.files import fsync_dir, read_plain
from tfx.errors import OperationFailed
from tfx.plan.apply import prune_dirs, remove_empty
from tfx.plan.disk import Disk, Moved, Spare, overwrite, settle_held
from tfx.plan.documents import Document
from tfx.plan.entry_edits import EntryItem, disk_state
from tfx.plan.journal import Fate, Intent, Journal, Story, is_committed, read
from tfx.plan.look import Obstacle, look, state_of
from tfx.plan.records import Change, EntryRecord, Manifest
from tfx.plan.state import StateDir


def interrupted(state: StateDir) -> tuple[str, ...]:
    """Return the runs whose journal has no commit line, oldest first."""
    return tuple(run for run in state.journals() if not is_committed(state.journal(run)))


def as_if_recovered(state: StateDir, manifest: Manifest) -> Manifest:
    """Return what `recover` would make of the manifest; writes nothing (S-3)."""
    for run in interrupted(state):
        manifest = manifest.after(_learned(_judged(read(state.journal(run)))), run)
    return manifest


def foreseen(state: StateDir, run: str) -> tuple[tuple[Path, Fate], ...]:
    """Return how `recover` would end each change of an interrupted run that is still open.

    Raises StateConflict when its journal cannot be read.
    """
    story = read(state.journal(run))
    pairs = zip(story.intents, _judged(story).intents, strict=True)
    return tuple((new.target, new.fate) for old, new in pairs if old.fate is Fate.OPEN)


def recover(
    state: StateDir,
    manifest: Manifest,
    save: Callable[[Manifest], None],
    checkpoint: Callable[[str], None],
) -> tuple[Manifest, tuple[str, ...]]:
    """Finish every interrupted run; return the manifest after that and the runs."""
    runs = interrupted(state)
    for run in runs:
        _end_line(state.journal(run))
        story = read(state.journal(run))
        with Journal(state.journal(run), checkpoint) as journal:
            for intent in story.intents:
                if intent.fate is Fate.OPEN:
                    _clean(state, run, intent)
            judged = _judged(story)
            for old, new in zip(story.intents, judged.intents, strict=True):
                if old.fate is Fate.OPEN:
                    journal.end(new.number, new.fate)
                    if new.fate is Fate.DROPPED:
                        remove_empty(new.dirs)
            manifest = manifest.after(_learned(judged), run)
            if gone := prune_dirs(manifest):
                journal.record(gone)
                manifest = manifest.after(gone)
            save(manifest)
            journal.commit()
    return manifest, runs


def _end_line(path: Path) -> None:
    """Cut off a torn last line, so that what is appended stands on lines of its own."""
    data = read_plain(path)
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        os.truncate(path, whole)


def _judged(story: Story) -> Story:
    intents = tuple(
        replace(intent, fate=_judge(intent)) if intent.fate is Fate.OPEN else intent
        for intent in story.intents
    )
    return replace(story, intents=intents)


def _judge(intent: Intent) -> Fate:
    try:
        state = state_of(intent.target)
    except OSError:
        return Fate.DROPPED
    if state == intent.after:
        return Fate.DONE
    if state == intent.before or not _entries_stand(intent):
        return Fate.DROPPED
    return Fate.DONE


def _entries_stand(intent: Intent) -> bool:
    """Say whether a shared file that its client rewrote since says what we had made it say."""
    changes = [change for change in intent.changes if isinstance(change.record, EntryRecord)]
    try:
        return bool(changes) and all(_stands(intent.target, change) for change in changes)
    except Obstacle:
        return False


def _stands(target: Path, change: Change) -> bool:
    record = change.record
    if not isinstance(record, EntryRecord):
        return False
    document = Document.read(record.format, look(target).data or b"")
    disk = disk_state(document.value, EntryItem(None, record))
    return disk == (None if change.new is None else record.state)


def _learned(story: Story) -> list[Change]:
    done = [change for intent in story.done for change in intent.changes]
    return [*story.records, *done]


def _clean(state: StateDir, run: str, intent: Intent) -> None:
    """Remove the spare names of an intent; nothing that somebody else wrote is lost with them."""
    spare = Spare.beside(intent.target, run, intent.number)
    with contextlib.suppress(OSError):
        spare.fresh.unlink()
    with contextlib.suppress(OSError):
        _let_go(state, run, intent, spare.held)
    with contextlib.suppress(OSError, OperationFailed):
        _complete_torn(state, run, intent)
    with contextlib.suppress(OSError):
        fsync_dir(intent.target.parent)


def _let_go(state: StateDir, run: str, intent: Intent, held: Path) -> None:
    if not held.is_file() or held.is_symlink():
        return
    try:
        settle_held(intent.target, intent.before, intent.after, held)
    except Moved:
        if held.exists():  # the target was rewritten as well: keep both
            state.keep(run, intent.number, held, read_plain(held))
            held.unlink()


def _complete_torn(state: StateDir, run: str, intent: Intent) -> None:
    """Finish a write in place that was cut off: a first part of new, then the rest of old."""
    if intent.torn is None or intent.backup is None or intent.after is None:
        return
    old = state.kept(f"{run}/{intent.backup}")
    new = state.kept(f"{run}/{intent.torn}", intent.after.sha256)
    now = read_plain(intent.target)
    common = next((i for i, (a, b) in enumerate(zip(now, new, strict=False)) if a != b), None)
    common = min(len(now), len(new)) if common is None else common
    if now in {old, new} or now[common:] != old[common:]:
        return
    descriptor = os.open(intent.target, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        overwrite(descriptor, new, now, Disk().write)
    finally:
        os.close(descriptor)
