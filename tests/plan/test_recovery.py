"""A run that ended at any line of its journal is finished by the next one (S-43)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plan.crashes import crash, no_spares, users_home, wanted_state
from tests.plan.machine import Machine, write
from tfx.plan.actions import Desired, OutcomeStatus
from tfx.plan.disk import Disk
from tfx.plan.engine import Engine

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
