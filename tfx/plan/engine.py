"""The way into the plan engine: plan, apply, remove, undo, list runs, show a conflict.

Knows no agent and no asset; what is wanted comes in as a Desired.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tfx import __version__
from tfx.core.clock import Clock, SystemClock
from tfx.errors import OperationFailed, TfxError, UnsafeEnvironment
from tfx.plan.actions import (
    Action,
    Desired,
    Diff,
    Flags,
    Marks,
    Outcome,
    Plan,
    Progress,
    Report,
    Run,
    State,
)
from tfx.plan.apply import Run as Writing
from tfx.plan.diffs import diff_of
from tfx.plan.disk import Disk
from tfx.plan.journal import Journal, Story, read
from tfx.plan.manifest import load, save
from tfx.plan.outcomes import outcome_of
from tfx.plan.planner import make_removal, make_steps
from tfx.plan.preview import file_states
from tfx.plan.records import Manifest
from tfx.plan.recovery import as_if_recovered, interrupted, recover
from tfx.plan.state import LOCK_TIMEOUT_S, StateDir
from tfx.plan.steps import Context, Patience, Step, is_chosen, mark_of, plan_of, staging_place
from tfx.plan.undo import make_undo
from tfx.plan.upkeep import upkeep_steps

_Build = Callable[[Manifest], tuple[Step, ...]]


class Engine:
    """One STATE directory and all that may be done through it.

    `git` is the absolute path of git, for the merge command of a conflict (S-36).
    `sleep` waits between reads of a file that is being rewritten (S-73). `disk` is the door to
    the targets and `checkpoint` is called with its word after each line of the journal: both are
    where tests inject their faults.
    """

    def __init__(
        self,
        state_dir: Path,
        clock: Clock | None = None,
        *,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        git: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
        disk: Disk | None = None,
        checkpoint: Callable[[str], None] | None = None,
    ) -> None:
        self._state = StateDir(state_dir)
        self._clock = clock or SystemClock()
        self._lock_timeout_s = lock_timeout_s
        self._git = git
        self._sleep = sleep
        self._disk = disk or Disk()
        self._checkpoint = checkpoint or _no_checkpoint

    def plan(self, desired: Desired, flags: Flags | None = None) -> Plan:
        """Return what is not so yet; writes nothing, not even a lock (S-3).

        Raises StateConflict for an unreadable or newer manifest (S-39), UnsafeEnvironment when
        STATE lies inside a root (S-30).
        """
        return plan_of(self._setup(desired, flags)(self.manifest()))

    def apply(
        self, desired: Desired, flags: Flags | None = None, progress: Progress | None = None
    ) -> Report:
        """Finish an interrupted run, plan under the lock, apply, record, re-read.

        Raises LockHeld (S-46) and what `plan` raises, before any write.
        """
        return self._write("setup", self._setup(desired, flags), progress)

    def repair(
        self, desired: Desired, actions: Sequence[Action], progress: Progress | None = None
    ) -> Report:
        """Finish interrupted runs, then carry out these actions and no others.

        They are actions of a plan of this Desired, or upkeep of tfx's own files. One whose target
        is no longer as it says is left out (D-120). A run of its own, which `undo` takes back.
        Raises as `apply` does.
        """
        chosen = frozenset(map(mark_of, actions))
        planned = self._setup(desired, None, chosen)

        def build(manifest: Manifest) -> tuple[Step, ...]:
            steps = [step for step in planned(manifest) if is_chosen(step, chosen)]
            return (*steps, *upkeep_steps(actions))

        return self._write("doctor --fix", build, progress)

    def preview(self, desired: Desired, action: Action) -> tuple[State | None, State | None]:
        """Return the file of one action of a repair, before and after it; writes nothing.

        Raises what `plan` raises.
        """
        build = self._setup(desired, None, frozenset({mark_of(action)}))
        return file_states(build(self.manifest()), action)

    def plan_removal(self, agents: frozenset[str] | None = None) -> Plan:
        """Return what `remove` would do; None = all agents that are recorded."""
        return plan_of(self._removal(agents)(self.manifest()))

    def remove(
        self, agents: frozenset[str] | None = None, progress: Progress | None = None
    ) -> Report:
        """Take back all that the manifest records (S-37), limited to `agents` when given."""
        return self._write("remove", self._removal(agents), progress, removing=True)

    def plan_undo(self, run: str) -> Plan:
        """Return what `undo` would do. Raises NotFound for an unknown run."""
        return plan_of(self._undo(self._state.run_named(run))(self.manifest()))

    def undo(self, run: str, progress: Progress | None = None) -> Report:
        """Revert one run where the disk still holds its result (S-44); a run of its own.

        Raises NotFound for an unknown run.
        """
        named = self._state.run_named(run)
        return self._write(f"undo {named}", self._undo(named), progress)

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that `undo` can take back, newest first; writes nothing."""
        return tuple(
            _shown(story)
            for story in self._stories()
            if story.committed and (story.done or story.records or story.modes)
        )

    def has_edited_shared_files(self) -> bool:
        """Say whether a shared file that was there before us was ever edited (K-5)."""
        kept = self.manifest().shared.values()
        return any(not record.created for record in kept) or any(
            story.edited_shared_files for story in self._stories()
        )

    def _stories(self) -> list[Story]:
        return [read(self._state.journal(run)) for run in reversed(self._state.journals())]

    def diff(self, desired: Desired, action: Action) -> Diff:
        """Return the three versions behind a conflict of a plan of this Desired."""
        return diff_of(desired, action, self._state, self._git)

    def manifest(self) -> Manifest:
        """Return what is recorded, an interrupted run counted as if it were finished.

        Raises StateConflict (S-39).
        """
        return as_if_recovered(self._state, load(self._state.manifest))

    def _setup(self, desired: Desired, flags: Flags | None, only: Marks | None = None) -> _Build:
        self._refuse_state_in(
            [*desired.places, *desired.searched, *(wanted.root for wanted in desired.files)],
            desired,
        )

        patience = Patience(self._sleep)

        def build(manifest: Manifest) -> tuple[Step, ...]:
            context = Context(
                manifest,
                self._state,
                flags or Flags(),
                desired.agents_in_scope,
                desired.renames,
                patience,
                only,
            )
            return make_steps(desired, context)

        return build

    def _refuse_state_in(self, places: Iterable[Path], desired: Desired) -> None:
        """Refuse a STATE that a client would search for skills (S-30)."""
        own = Path(os.path.realpath(self._state.path))
        files = {wanted.file for wanted in desired.entries}
        for place in places:
            if place not in files and own.is_relative_to(os.path.realpath(place)):
                raise UnsafeEnvironment(
                    f"the state directory {own} lies inside {place}, which agents search",
                    hint="set XDG_STATE_HOME to a directory outside of it",
                    details={"state": str(own), "root": str(place)},
                )

    def _removal(self, agents: frozenset[str] | None) -> _Build:
        patience = Patience(self._sleep)

        def build(manifest: Manifest) -> tuple[Step, ...]:
            context = Context(manifest, self._state, Flags(), agents, patience=patience)
            return make_removal(context)

        return build

    def _undo(self, run: str) -> _Build:
        def build(manifest: Manifest) -> tuple[Step, ...]:
            path = self._state.journal(self._state.run_named(run))
            return make_undo(read(path), Context(manifest, self._state, Flags(), None))

        return build

    def _write(
        self, operation: str, build: _Build, progress: Progress | None, *, removing: bool = False
    ) -> Report:
        if not interrupted(self._state):
            steps = build(load(self._state.manifest))
            if all(step.idle for step in steps):
                return Report(None, _as_planned(steps, removing=removing))
        try:
            return self._write_locked(operation, build, progress, removing=removing)
        except OSError as error:
            where = error.filename or self._state.path
            raise OperationFailed(
                f"cannot write the state of setup, {where}: {error.strerror or error}",
                hint="make room or make it writable and run the command again: "
                "what was begun is finished first",
                details={"path": str(where)},
            ) from error

    def _write_locked(
        self, operation: str, build: _Build, progress: Progress | None, *, removing: bool
    ) -> Report:
        with self._state.lock(self._lock_timeout_s, self._sleep):
            manifest, recovered = recover(
                self._state, load(self._state.manifest), self._save, self._checkpoint
            )
            steps = build(manifest)
            if all(step.idle for step in steps):
                return Report(None, _as_planned(steps, removing=removing), recovered)
            try:
                return self._run(operation, steps, manifest, recovered, progress, removing=removing)
            except BaseException:  # Control-C, a full disk, a bug: what was begun ends now
                with contextlib.suppress(OSError, TfxError):
                    recover(self._state, load(self._state.manifest), self._save, _no_checkpoint)
                raise

    def _run(
        self,
        operation: str,
        steps: Sequence[Step],
        manifest: Manifest,
        recovered: tuple[str, ...],
        progress: Progress | None,
        *,
        removing: bool,
    ) -> Report:
        run = self._state.next_run(self._clock, manifest.run)
        with Journal(self._state.journal(run), self._checkpoint) as journal:
            journal.begin(operation, __version__, self._clock.now_ms())
            writing = Writing(run, self._state, journal, self._disk)
            outcomes = writing.carry_out(steps, progress or _no_progress, removing=removing)
            writing.prune_dirs(manifest)
            manifest = manifest.after(writing.changes, run)
            self._save(manifest)
            journal.commit()
        if not writing.touched and not writing.changes:
            self._state.discard(run)
            return Report(None, outcomes, recovered)
        staged = still_staged(self._state, manifest, outcomes)
        bases = {record.sha256 for record in manifest.files.values() if record.sha256}
        self._state.prune(manifest.pinned_runs, frozenset(bases), staged)
        return Report(run, outcomes, recovered)

    def _save(self, manifest: Manifest) -> None:
        save(self._state.manifest, manifest, __version__)


def still_staged(
    state: StateDir, manifest: Manifest, outcomes: Iterable[Outcome]
) -> frozenset[Path]:
    """Return the staged versions of conflicts that are still open (S-45)."""
    latest = {outcome.staged for outcome in outcomes if outcome.staged}
    places = {state.place_of(path) for path in latest}
    recorded = {
        staging_place(Path(record.root), record.path): record.sha256
        for record in manifest.files.values()
    }
    pending = {
        path
        for path, sha256 in state.all_staged()
        if (place := state.place_of(path)) not in places
        and place in recorded
        and recorded[place] != sha256
    }
    return frozenset(latest | pending)


def _shown(story: Story) -> Run:
    targets = tuple(str(intent.target) for intent in story.done)
    targets += tuple(str(change.target) for change in story.modes)
    count = story.items + len(story.modes)
    return Run(story.run, story.operation, story.at_ms, count, targets)


def _as_planned(steps: Iterable[Step], *, removing: bool) -> tuple[Outcome, ...]:
    return tuple(
        outcome_of(action, removing=removing)
        for step in steps
        for action in (*step.actions, *step.settled)
    )


def _no_progress(_: Action) -> None:
    return


def _no_checkpoint(_: str) -> None:
    return
