"""Several runs at once, and a lock that somebody else holds (S-46, S-102)."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.plan.machine import AGENTS, Machine, value, write
from tests.support import bare_env
from tfx.core.files import make_private_dir
from tfx.core.locks import try_lock
from tfx.errors import LockHeld
from tfx.plan.actions import Desired, OutcomeStatus
from tfx.plan.manifest import load


def test_s102_two_runs_at_once_both_succeed_and_the_manifest_is_complete(
    machine: Machine,
) -> None:
    write(machine.settings, '{"a": 1}')
    before = machine.contents()
    command = [sys.executable, "-m", "tests.plan.crashing", str(machine.top), "setup", "1", "-1"]
    children = [
        subprocess.Popen(
            command, cwd=Path(__file__).parents[2], env=bare_env(machine.home), stdout=-3
        )
        for _ in range(3)
    ]
    assert [child.wait(150) for child in children] == [0, 0, 0]
    assert machine.plan(machine.desired()).actions == ()
    manifest = load(machine.state / "manifest.json")
    assert (len(manifest.files), len(manifest.entries)) == (3, 3)
    assert len(machine.engine().runs()) == 1
    machine.remove()
    assert machine.contents() == before


def test_s102_different_wants_at_once_lose_no_record(machine: Machine) -> None:
    """Threads stand for processes: each opens the lock file for itself."""
    names = [f"tfx-{number}" for number in range(6)]

    def run(name: str) -> None:
        path = machine.skills / name / "SKILL.md"
        wanted = machine.file(path, name.encode())
        others = tuple(
            machine.file(machine.skills / other / "SKILL.md", other.encode()) for other in names
        )
        machine.engine(60).apply(Desired((wanted, *others), agents_in_scope=AGENTS))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, names))
    assert len(load(machine.state / "manifest.json").files) == len(names)


def test_s46_a_lock_that_somebody_holds_is_refused_after_the_time_out(machine: Machine) -> None:
    make_private_dir(machine.state)
    lock = try_lock(machine.state / "lock", "setup")
    assert lock is not None
    with lock:
        before = machine.contents()
        with pytest.raises(LockHeld) as caught:
            machine.engine(lock_timeout_s=0).apply(machine.desired())
        assert caught.value.exit == 5
        assert str(machine.state / "lock") in caught.value.message
        assert machine.contents() == before
    assert machine.apply(machine.desired()).count(OutcomeStatus.CHANGED) == 6


def test_a_run_that_has_nothing_to_do_needs_no_lock(machine: Machine) -> None:
    machine.apply(machine.desired())
    lock = try_lock(machine.state / "lock", "setup")
    assert lock is not None
    with lock:
        report = machine.engine(lock_timeout_s=0).apply(machine.desired())
    assert report.run is None
    assert value(machine.settings)
