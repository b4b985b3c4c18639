"""The way into the plan engine: plan, apply, remove, undo, list runs, show a conflict.

Knows no agent and no asset; what is wanted comes in as a Desired.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tfx.core.clock import Clock, SystemClock
from tfx.plan.actions import Action, Desired, Diff, Flags, Plan, Progress, Report, Run


class Engine:
    """One STATE directory and all that may be done through it.

    `git` is the absolute path of git, for the merge command of a conflict (S-36).
    `sleep` waits between reads of a file that is being rewritten (S-73).
    """

    def __init__(
        self,
        state_dir: Path,
        clock: Clock | None = None,
        *,
        lock_timeout_s: float = 10,
        git: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._state_dir = state_dir
        self._clock = clock or SystemClock()
        self._lock_timeout_s = lock_timeout_s
        self._git = git
        self._sleep = sleep

    def plan(self, desired: Desired, flags: Flags | None = None) -> Plan:
        """Return what is not so yet; writes nothing, not even a lock (S-3).

        Raises StateConflict for an unreadable or newer manifest (S-39), UnsafeEnvironment when
        STATE lies inside a root (S-30).
        """
        raise NotImplementedError

    def apply(
        self, desired: Desired, flags: Flags | None = None, progress: Progress | None = None
    ) -> Report:
        """Finish an interrupted run, plan under the lock, apply, record, re-read.

        Raises LockHeld (S-46) and what `plan` raises, before any write.
        """
        raise NotImplementedError

    def plan_removal(self, agents: frozenset[str] | None = None) -> Plan:
        """Return what `remove` would do; None = all agents that are recorded."""
        raise NotImplementedError

    def remove(
        self, agents: frozenset[str] | None = None, progress: Progress | None = None
    ) -> Report:
        """Take back all that the manifest records (S-37), limited to `agents` when given."""
        raise NotImplementedError

    def plan_undo(self, run: str) -> Plan:
        """Return what `undo` would do. Raises NotFound for an unknown run."""
        raise NotImplementedError

    def undo(self, run: str, progress: Progress | None = None) -> Report:
        """Revert one run where the disk still holds its result (S-44); a run of its own."""
        raise NotImplementedError

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that `undo` can take back, newest first; writes nothing."""
        raise NotImplementedError

    def diff(self, desired: Desired, action: Action) -> Diff:
        """Return the three versions behind a conflict of a plan of this Desired."""
        raise NotImplementedError
