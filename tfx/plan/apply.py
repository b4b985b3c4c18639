"""Carry out the steps of one run: backup, intent, change, done; what really happened comes back.

Knows neither why a step is wanted nor where it came from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tfx.core.files import fsync_dir
from tfx.errors import OperationFailed
from tfx.plan.actions import (
    CHANGES,
    Action,
    ActionKind,
    Outcome,
    OutcomeStatus,
    Progress,
    Reason,
    State,
    WantedEntry,
)
from tfx.plan.disk import READ_ONLY, Disk, Moved, ReadOnly, Spare, Unverified, Write, Writer
from tfx.plan.journal import Fate, Intent, Journal, ModeChange
from tfx.plan.look import Obstacle, look, mode_of, state_of
from tfx.plan.outcomes import outcome_of, snippet, with_inactive_scripts
from tfx.plan.records import Change, Manifest
from tfx.plan.state import StateDir
from tfx.plan.steps import Chmod, Step

ATTEMPTS = 4  # the first one and three more (S-46)


class Run:
    """One run being written. `changes` is what the manifest learns from it."""

    def __init__(self, name: str, state: StateDir, journal: Journal, disk: Disk) -> None:
        self.name = name
        self.changes: list[Change] = []
        self.touched = False
        self._state = state
        self._journal = journal
        self._disk = disk
        self._number = 0

    def carry_out(
        self, steps: Sequence[Step], progress: Progress, *, removing: bool
    ) -> tuple[Outcome, ...]:
        """Carry out every step; one that fails does not stop the others (S-7)."""
        outcomes: list[Outcome] = []
        entries: dict[str, WantedEntry] = {}
        for step in steps:
            for action in step.actions:
                progress(action)
            entries.update(step.entries)
            outcomes += self._step(step, removing=removing)
        return with_inactive_scripts(tuple(outcomes), entries)

    def _step(self, step: Step, *, removing: bool) -> list[Outcome]:
        for _ in range(ATTEMPTS):
            try:
                failure, backup = self._write(step)
            except Moved:
                step = step.again()
                continue
            staged = self._stage(step)
            self._note(step.notes)
            outcomes = [outcome_of(a, removing=removing) for a in (*step.actions, *step.settled)]
            return [
                replace(failure(outcome, step) if failure else outcome, backup=backup)
                if outcome.action.kind in CHANGES
                else replace(outcome, staged=staged)
                for outcome in outcomes
            ]
        return [_moving(action) for action in step.actions]

    def _stage(self, step: Step) -> Path | None:
        if step.staging is None or step.staging.there is not None:
            return step.staging.there if step.staging else None
        self.touched = True
        return self._state.stage(self.name, step.staging.place, step.staging.data)

    def _note(self, notes: tuple[Change, ...]) -> None:
        if notes:
            stamped = tuple(change.stamped(self.name, None) for change in notes)
            self._journal.record(stamped)
            self.changes += stamped

    def _write(self, step: Step) -> tuple[_Failure | None, Path | None]:
        """Carry out the write of a step. Raises Moved."""
        write = step.write
        if step.chmod is not None:
            return self._change_mode(step.chmod), None
        if write is None:
            if step.base is not None:
                self._state.keep_base(step.base)
            return None, None
        self._number += 1
        number = self._number
        try:
            backup = self._back_up(number, write)
            if step.base is not None:
                self._state.keep_base(step.base)
        except OSError as error:
            return _Failure(OutcomeStatus.FAILED, _words(error)), None
        dirs = _missing_dirs(write)
        intent = Intent(
            number,
            write.target,
            write.before,
            write.after,
            backup,
            dirs,
            (
                *(change.stamped(self.name, backup) for change in step.changes),
                *(Change(None, directory) for directory in dirs),
            ),
        )
        self._journal.intend(intent)
        failure = self._attempt(intent, write)
        path = self._state.backup(f"{self.name}/{backup}") if backup else None
        return failure, path

    def _change_mode(self, chmod: Chmod) -> _Failure | None:
        """Change permission bits in place, written down first. Raises Moved."""
        if mode_of(chmod.path) != chmod.before:
            raise Moved(str(chmod.path))
        self._journal.change_mode(ModeChange(chmod.path, chmod.before, chmod.after))
        self.touched = True
        try:
            chmod.path.chmod(chmod.after)
        except OSError as error:
            return _Failure(OutcomeStatus.FAILED, _words(error))
        if mode_of(chmod.path) != chmod.after:
            return _Failure(OutcomeStatus.FAILED, f"{chmod.path} keeps its mode")
        return None

    def _back_up(self, number: int, write: Write) -> str | None:
        """Keep the bytes before the change (S-59). Raises Moved or OSError."""
        if write.before is None:
            return None
        try:
            found = look(write.target)
        except Obstacle as error:
            raise Moved(error.detail) from error
        if found.data is None or found.state != write.before:
            raise Moved(str(write.target))
        return self._state.keep(self.name, number, write.target, found.data)

    def _attempt(self, intent: Intent, write: Write) -> _Failure | None:
        """Make the change and write down how it ended. Raises Moved.

        What nobody expected (Control-C, a bug) leaves the intent open, for recovery to judge.
        """
        writer = Writer(self._disk, lambda data: self._tear(intent, data))
        spare = Spare.beside(write.target, self.name, intent.number)
        failure: _Failure | None = None
        try:
            _make_dirs(intent.dirs, private=not write.mode & 0o077)
            writer.carry_out(write, spare)
        except Moved:
            self._end(intent, write)
            raise
        except ReadOnly as error:
            failure = _Failure(OutcomeStatus.PARTIAL, str(error))
        except (Unverified, OperationFailed) as error:
            failure = _Failure(OutcomeStatus.FAILED, str(error))
        except OSError as error:
            failure = _Failure(OutcomeStatus.FAILED, _words(error))
        self._end(intent, write)
        return failure

    def _tear(self, intent: Intent, data: bytes) -> None:
        name = self._state.keep(self.name, intent.number, Path(f"{intent.target.name}.new"), data)
        self._journal.tear(intent.number, name)

    def _end(self, intent: Intent, write: Write) -> None:
        fate = Fate.DONE if _holds(write.target, intent.after) else Fate.DROPPED
        if fate is Fate.DONE:
            self.changes += intent.changes
            self.touched = True
        else:
            remove_empty(intent.dirs)
        self._journal.end(intent.number, fate)

    def prune_dirs(self, manifest: Manifest) -> None:
        """Remove the directories of ours that this run has emptied."""
        gone = prune_dirs(manifest.after(self.changes))
        if gone:
            self._journal.record(gone)
            self.changes += gone


def prune_dirs(manifest: Manifest) -> tuple[Change, ...]:
    """Remove directories of ours that hold nothing; what others use is theirs from now on.

    Return what the manifest has to learn of it.
    """
    used = [record.target or record.key for record in manifest.files.values()]
    used += [record.file for record in manifest.entries.values()]
    gone = []
    for directory in sorted(manifest.dirs, key=len, reverse=True):
        if not any(path.startswith(f"{directory}/") for path in used):
            remove_empty((directory,))
            gone.append(Change(directory, None))
    return tuple(gone)


class _Failure:
    """Turns the outcomes of the changes of a step into what became of them."""

    def __init__(self, status: OutcomeStatus, reason: str) -> None:
        self._status = status
        self._reason = reason

    def __call__(self, outcome: Outcome, step: Step) -> Outcome:
        entry = step.entries.get(outcome.action.target)
        text = snippet(entry) if entry and self._status is OutcomeStatus.PARTIAL else None
        hint = f"add this to {outcome.action.path} by hand" if text else None
        return replace(outcome, status=self._status, reason=self._reason, snippet=text, hint=hint)


def _moving(action: Action) -> Outcome:
    moving = replace(action, kind=ActionKind.CONFLICT, reason=Reason.MOVING)
    reason = f"{action.path} changed each time it was about to be written"
    return Outcome(moving, OutcomeStatus.CONFLICT, reason, hint="run `tfx setup` again")


def _words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _holds(target: Path, state: State | None) -> bool:
    try:
        return state_of(target) == state
    except OSError:
        return False


def _missing_dirs(write: Write) -> tuple[str, ...]:
    """Return the directories to be made for a target, the outermost first."""
    if write.data is None:
        return ()
    missing = []
    for parent in write.target.parents:
        if parent.exists():
            break
        missing.append(str(parent))
    return tuple(reversed(missing))


def _make_dirs(dirs: tuple[str, ...], *, private: bool) -> None:
    mode = 0o700 if private else 0o755
    for directory in dirs:
        path = Path(directory)
        try:
            path.mkdir(mode=mode)
            path.chmod(mode)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno in READ_ONLY:
                raise ReadOnly(f"{directory} cannot be made: {error.strerror}") from error
            raise
        fsync_dir(path.parent)


def remove_empty(dirs: Iterable[str]) -> None:
    """Remove those of the directories that are empty, the innermost first (S-34)."""
    for directory in sorted(dirs, key=len, reverse=True):
        with contextlib.suppress(OSError):
            Path(directory).rmdir()
