"""What may lie between a crash and the run that finishes it (S-42, S-43, S-51)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.plan.crashes import crash, no_spares, users_home, wanted_state
from tests.plan.disks import NoRename
from tests.plan.machine import Machine, only_files, write
from tests.support import bare_env
from tfx.plan.actions import OutcomeStatus
from tfx.plan.disk import Disk, Spare
from tfx.plan.engine import Engine


def test_s3_a_plan_after_a_crash_counts_what_was_done_and_writes_nothing(
    machine: Machine,
) -> None:
    crash(machine, "setup", "1", 6)
    before = machine.snapshot()
    plan = machine.plan(machine.desired())
    assert len(plan.actions) == 4
    assert len(plan.settled) == 2
    assert machine.snapshot() == before


def test_s42_a_torn_last_line_was_never_acted_on(machine: Machine) -> None:
    crash(machine, "setup", "1", 6)
    (journal,) = (machine.state / "journal").iterdir()
    with journal.open("ab") as file:
        file.write(b'{"op":"intent","n":99,"tar')
    wanted_state(machine, "1")
    for line in journal.read_bytes().splitlines():
        json.loads(line)


def test_s43_what_changed_after_the_crash_is_left_alone(machine: Machine) -> None:
    crash(machine, "setup", "1", 2)
    write(machine.script, "typed in between", 0o755)
    report = machine.apply(machine.desired())
    assert machine.script.read_text() == "typed in between"
    assert report.count(OutcomeStatus.CONFLICT) == 1


def test_s43_only_spare_files_that_the_journal_names_are_removed(machine: Machine) -> None:
    crash(machine, "setup", "1", 2)
    (run,) = (path.stem for path in (machine.state / "journal").iterdir())
    machine.script.parent.mkdir(parents=True, exist_ok=True)
    ours = Spare.beside(machine.script, run, 1)
    theirs = machine.script.with_name(".tfx-other.new")
    for path in (ours.fresh, theirs):
        path.write_text("x")
    machine.apply(machine.desired())
    assert not ours.fresh.exists()
    assert theirs.exists()


def test_s43_a_late_write_to_the_old_file_of_a_crashed_replacement_comes_back(
    machine: Machine,
) -> None:
    """The process died between its replacement and the last look at the file it replaced."""
    machine.apply(only_files(machine.desired()))
    old = machine.script.read_bytes()
    crash(machine, "setup", "2", 2)
    (run,) = (
        path.stem
        for path in (machine.state / "journal").iterdir()
        if b"commit" not in path.read_bytes()
    )
    spare = Spare.beside(machine.script, run, 1)
    write(spare.held, old + b"and the user's last word", 0o755)
    write(machine.script, "script version 2\n", 0o755)
    machine.apply(machine.desired("2"))
    assert machine.script.read_bytes() == old + b"and the user's last word"
    assert not spare.held.exists()


@pytest.mark.parametrize("cut", [0, 20, 40, 70, 400])
def test_s51_a_copy_in_place_that_was_cut_off_is_completed(machine: Machine, cut: int) -> None:
    """The file then holds a first part of the new bytes and the rest of the old ones."""
    old = write(machine.settings, '{"mcpServers": {}, "long": "' + "x" * 300 + '"}\n')
    pid = os.fork()
    if pid == 0:
        machine.disk = _CutOff(cut)
        machine.apply(machine.desired())
        os._exit(1)
    os.waitpid(pid, 0)
    assert machine.settings.read_bytes() != old or cut < 40
    machine.disk = None
    wanted_state(machine, "1")
    assert old in machine.backups()
    machine.remove()
    assert machine.settings.read_bytes() == old


class _CutOff(NoRename):
    """Renames fail, and the process ends within the first write in place."""

    def __init__(self, cut: int) -> None:
        super().__init__(18)
        self.cut = cut

    def write(self, descriptor: int, data: bytes) -> None:
        if not self.renames:
            super().write(descriptor, data)
            return
        super().write(descriptor, data[: self.cut])
        os._exit(9)


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", ["setup", "remove"])
def test_s43_sigkill_at_a_hundred_random_moments(tmp_path: Path, operation: str) -> None:
    """Each round ends in the wanted state, and nothing of the user's is lost."""
    random_ = random.Random(20261129)
    killed = 0
    longest_s = 0.2
    for number in range(100):
        machine = Machine(tmp_path / str(number))
        users_home(machine)
        before = machine.contents()
        if operation == "remove":
            machine.apply(machine.desired())
        was_killed, took_s = _kill(machine, operation, random_.uniform(0, longest_s))
        if not was_killed:  # so long does it take here: the next moment lies within
            longest_s = max(0.002, min(longest_s, took_s))
        killed += was_killed
        if operation == "setup":
            wanted_state(machine, "1")
        machine.remove()
        assert machine.contents() == before
        no_spares(machine)
    assert killed > 30


def _kill(machine: Machine, operation: str, after_s: float) -> tuple[bool, float]:
    """Kill it so long after it began; say whether it had not ended yet, and how long it had."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.plan.crashing", str(machine.top), operation, "1", "-1"],
        cwd=Path(__file__).parents[2],
        env=bare_env(machine.home),
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        began_s = time.monotonic()
        readable, _, _ = select.select([child.stdout], [], [], after_s)
        took_s = time.monotonic() - began_s
        child.kill()
        child.wait()
        return not readable and child.returncode != 0, took_s


def test_an_interrupted_run_records_what_it_did(machine: Machine) -> None:
    """Control-C in the middle: what was written is ours, and the next run goes on from there."""
    users_home(machine)
    before = machine.contents()
    lines = 0

    def checkpoint(_: str) -> None:
        nonlocal lines
        lines += 1
        if lines == 6:
            raise KeyboardInterrupt

    machine.checkpoint = checkpoint
    with pytest.raises(KeyboardInterrupt):
        machine.apply(machine.desired())
    machine.checkpoint = None
    engine: Engine = machine.engine()
    assert len(engine.runs()) == 1
    wanted_state(machine, "1")
    machine.remove()
    assert machine.contents() == before


class _Interrupting(Disk):
    """Control-C at one call of the disk: before it is made or right after it."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._left = at
        self._after = after

    def _now(self) -> bool:
        self._left -= 1
        return self._left == 0

    def rename(self, source: Path, target: Path) -> None:
        now = self._now()
        if now and not self._after:
            raise KeyboardInterrupt
        super().rename(source, target)
        if now:
            raise KeyboardInterrupt

    def link(self, source: Path, target: Path) -> None:
        now = self._now()
        if now and not self._after:
            raise KeyboardInterrupt
        super().link(source, target)
        if now:
            raise KeyboardInterrupt

    def write(self, descriptor: int, data: bytes) -> None:
        if self._now():
            raise KeyboardInterrupt
        super().write(descriptor, data)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 25))
@pytest.mark.parametrize("operation", ["setup", "remove"])
def test_s43_control_c_inside_a_write_leaves_nothing_half_done(
    machine: Machine, operation: str, at: int, *, after: bool
) -> None:
    users_home(machine)
    before = machine.contents()
    if operation == "remove":
        machine.apply(machine.desired())
    machine.disk = _Interrupting(at, after=after)
    run = machine.remove if operation == "remove" else partial(machine.apply, machine.desired())
    with contextlib.suppress(KeyboardInterrupt):
        run()
    assert list(machine.home.rglob(".tfx-*")) == []
    machine.disk = None
    run()
    machine.remove()
    assert machine.contents() == before
