"""A run that ends at any line of its journal, or anywhere at all, is finished by the next."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.plan.machine import Machine, only_files, write
from tests.plan.test_targets import NoRename
from tests.support import bare_env
from tfx.plan.actions import Desired, OutcomeStatus
from tfx.plan.disk import Disk, Spare
from tfx.plan.engine import Engine

OWN_SETTINGS = '{\n  "own": [1, 2]\n}\n'
OWN_CODEX = "# mine\nmodel = 'x'\n"
OWN_SKILL = "my own skill"


def users_home(machine: Machine) -> None:
    write(machine.settings, OWN_SETTINGS, 0o600)
    write(machine.codex, OWN_CODEX)
    write(machine.skills / "own" / "SKILL.md", OWN_SKILL)


def crash(machine: Machine, operation: str, version: str, after_lines: int) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "tests.plan.crashing", str(machine.top), operation, version,
         str(after_lines)],
        cwd=Path(__file__).parents[2],
        env=bare_env(machine.home),
        capture_output=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode in {0, 9}, done.stderr.decode()
    return done.returncode


def wanted_state(machine: Machine, version: str) -> None:
    """The next setup ends in the wanted state, and what is the user's is there."""
    machine.apply(machine.desired(version))
    assert machine.plan(machine.desired(version)).actions == ()
    assert f"tfx-{version}" in machine.settings.read_text()
    assert f"tfx-{version}" in machine.codex.read_text()
    assert machine.skill.read_text() == f"skill version {version}\n"
    no_spares(machine)


def no_spares(machine: Machine) -> None:
    assert list(machine.home.rglob(".tfx-*")) == []


LINES = 28


@pytest.mark.parametrize("after_lines", range(1, LINES))
def test_s43_setup_that_ends_after_any_line_of_its_journal_is_finished(
    machine: Machine, after_lines: int
) -> None:
    users_home(machine)
    before = machine.contents()
    stopped(machine, lambda engine: engine.apply(machine.desired()), after_lines)
    report = machine.engine().apply(machine.desired("2"))
    assert {outcome.status for outcome in report.outcomes} <= {
        OutcomeStatus.CHANGED,
        OutcomeStatus.UNCHANGED,
    }
    wanted_state(machine, "2")
    machine.remove()
    assert machine.contents() == before


@pytest.mark.parametrize("after_lines", range(1, LINES))
def test_s43_remove_that_ends_after_any_line_of_its_journal_is_finished(
    machine: Machine, after_lines: int
) -> None:
    users_home(machine)
    before = machine.contents()
    machine.apply(machine.desired())
    stopped(machine, lambda engine: engine.remove(), after_lines)
    machine.remove()
    assert machine.contents() == before
    no_spares(machine)


def stopped(machine: Machine, call: Callable[[Engine], object], after_lines: int) -> None:
    """Run in a fork that ends without any clean-up after a line of the journal."""
    pid = os.fork()
    if pid == 0:
        lines = 0

        def checkpoint(_: str) -> None:
            nonlocal lines
            lines += 1
            if lines == after_lines:
                os._exit(9)

        machine.checkpoint = checkpoint
        try:
            call(machine.engine())
        except BaseException:  # noqa: BLE001  (the parent sees the status)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in {0, 9}


class _StopAfter(Disk):
    """The process ends right after its n-th call that changes a target or a spare file."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def _count(self) -> None:
        self.calls -= 1
        if self.calls == 0:
            os._exit(9)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._count()

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self._count()

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data)
        self._count()


CALLS = 13


@pytest.mark.parametrize("calls", range(1, CALLS))
@pytest.mark.parametrize("operation", ["setup", "update", "remove"])
def test_s43_a_run_that_ends_between_a_change_and_its_line_is_finished(
    machine: Machine, operation: str, calls: int
) -> None:
    users_home(machine)
    before = machine.contents()
    if operation != "setup":
        machine.apply(machine.desired())
    machine.disk = _StopAfter(calls)
    if operation == "remove":
        stopped(machine, lambda engine: engine.remove(), -1)
    else:
        stopped(machine, lambda engine: engine.apply(machine.desired("2")), -1)
    machine.disk = None
    if operation != "remove":
        report = machine.apply(machine.desired("3"))
        assert report.count(OutcomeStatus.CHANGED) == len(report.outcomes)
        assert report.recovered or calls > CALLS - 1
        wanted_state(machine, "3")
    machine.remove()
    assert machine.contents() == before
    no_spares(machine)


@pytest.mark.parametrize("calls", [1, 2])
def test_s43_a_client_that_rewrites_its_file_after_the_crash_hides_nothing(
    machine: Machine, calls: int
) -> None:
    """The entry stands although the bytes differ: it is ours, and so are the parents we made."""
    desired = Desired((), machine.desired().entries[:2], frozenset({"claude"}))
    machine.disk = _StopAfter(calls)
    stopped(machine, lambda engine: engine.apply(desired), -1)
    machine.disk = None
    if machine.settings.exists():
        text = machine.settings.read_text()
        machine.settings.write_text(text.replace("{", '{"theirs": 1,', 1))
    else:
        write(machine.settings, '{"theirs": 1}')
    machine.apply(desired)
    assert machine.plan(desired).actions == ()
    machine.remove()
    assert json.loads(machine.settings.read_text()) == {"theirs": 1}


def test_s43_the_crash_tests_reach_every_line(machine: Machine) -> None:
    users_home(machine)
    lines: list[str] = []
    machine.checkpoint = lines.append
    machine.apply(machine.desired())
    assert lines[0] == "begin"
    assert lines[-1] == "commit"
    assert len(lines) < LINES


def test_s43_a_real_process_that_ends_in_the_middle_is_finished(machine: Machine) -> None:
    users_home(machine)
    assert crash(machine, "setup", "1", 6) == 9
    (run,) = (path.stem for path in (machine.state / "journal").iterdir())
    report = machine.apply(machine.desired())
    assert report.recovered == (run,)
    wanted_state(machine, "1")
    assert [item.run for item in machine.engine().runs()][-1] == run


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
        started_s = time.monotonic()
        was_killed = _kill(machine, operation, random_.uniform(0, longest_s))
        if not was_killed:
            longest_s = max(0.02, min(longest_s, time.monotonic() - started_s))
        killed += was_killed
        if operation == "setup":
            wanted_state(machine, "1")
        machine.remove()
        assert machine.contents() == before
        no_spares(machine)
    assert killed > 30


def _kill(machine: Machine, operation: str, after_s: float) -> bool:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.plan.crashing", str(machine.top), operation, "1", "-1"],
        cwd=Path(__file__).parents[2],
        env=bare_env(machine.home),
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        readable, _, _ = select.select([child.stdout], [], [], after_s)
        child.kill()
        child.wait()
        return not readable and child.returncode != 0


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
