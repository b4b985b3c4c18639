"""Carry out upkeep alone, where the manifest or another run's journal cannot be read (D-125).

Reads and writes no manifest and finishes no other run: it needs neither.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tfx import __version__
from tfx.core.clock import SystemClock
from tfx.errors import OperationFailed
from tfx.plan.actions import Action, Progress, Report
from tfx.plan.apply import Run
from tfx.plan.disk import Disk
from tfx.plan.journal import Journal
from tfx.plan.state import LOCK_TIMEOUT_S, StateDir
from tfx.plan.upkeep import UPKEEP, upkeep_steps

UNREADABLE = frozenset({"manifest-unreadable", "journal-unreadable", "state-unreadable"})
"""Reasons of a refusal that upkeep does not mind."""


def is_upkeep(actions: Sequence[Action]) -> bool:
    """Say whether actions concern tfx's own small files only."""
    return all(action.reason in UPKEEP for action in actions)


def keep_up(state_dir: Path, operation: str, actions: Sequence[Action], say: Progress) -> Report:
    """Carry out upkeep actions in a run of their own, which `undo` takes back.

    Raises LockHeld, StateConflict when the journals cannot even be listed, OperationFailed.
    """
    state, clock = StateDir(state_dir), SystemClock()
    try:
        with state.lock(LOCK_TIMEOUT_S, time.sleep):
            steps = upkeep_steps(actions)
            if all(step.idle for step in steps):
                return Report(None, ())
            run = state.next_run(clock, "")
            with Journal(state.journal(run), lambda _: None) as journal:
                journal.begin(operation, __version__, clock.now_ms())
                writing = Run(run, state, journal, Disk())
                outcomes = writing.carry_out(steps, say, removing=False)
                journal.commit()
            if not writing.touched:
                state.discard(run)
                return Report(None, outcomes)
            return Report(run, outcomes)
    except OSError as error:
        raise OperationFailed(
            f"cannot write the state of setup, {error.filename or state_dir}: {error.strerror}",
            details={"path": str(error.filename or state_dir)},
        ) from error
