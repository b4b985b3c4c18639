"""`Engine.repair`: exactly the chosen actions, own files closed or removed, all of it undone."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.machine import Machine
from tfx.plan.actions import Action, ActionKind, Desired, OutcomeStatus, Reason, State
from tfx.plan.journal import read
from tfx.plan.look import look
from tfx.plan.recovery import interrupted
from tfx.plan.state import StateDir


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def closing(path: Path, before: int, after: int = 0o600) -> Action:
    return Action(
        ActionKind.UPDATE, Reason.LOOSE_MODE, str(path), path,
        disk=State("", before), new=State("", after),
    )  # fmt: skip


def removing(path: Path) -> Action:
    return Action(ActionKind.DELETE, Reason.LEFT_BEHIND, str(path), path, disk=look(path).state)


@pytest.fixture
def own(machine: Machine) -> Path:
    path = machine.top / "own"
    path.write_text("secret")
    path.chmod(0o644)
    return path


def test_d118_only_the_chosen_actions_are_carried_out(machine: Machine) -> None:
    plan = machine.engine().plan(machine.desired())
    [first, *others] = [action for action in plan.actions if not action.is_entry]
    report = machine.engine().repair(machine.desired(), [first])
    assert [outcome.action.path for outcome in report.outcomes] == [first.path]
    assert first.path.exists()
    assert not any(action.path.exists() for action in others)


def test_d120_an_action_whose_target_changed_is_left_out(machine: Machine) -> None:
    plan = machine.engine().plan(machine.desired())
    first = next(action for action in plan.actions if not action.is_entry)
    first.path.parent.mkdir(parents=True, exist_ok=True)
    first.path.write_text("mine")
    report = machine.engine().repair(machine.desired(), [first])
    assert (report.run, report.outcomes) == (None, ())
    assert first.path.read_text() == "mine"


def test_d126_a_mode_is_changed_in_place_and_taken_back(machine: Machine, own: Path) -> None:
    inode = own.stat().st_ino
    report = machine.engine().repair(Desired(), [closing(own, 0o644)])
    assert report.count(OutcomeStatus.CHANGED) == 1
    assert (mode(own), own.stat().st_ino) == (0o600, inode)
    assert report.run is not None
    assert machine.engine().runs()[0].targets == (str(own),)
    assert not (machine.state / "backup" / report.run).exists()
    machine.engine().undo(report.run)
    assert mode(own) == 0o644


def test_d126_a_mode_that_changed_since_is_a_conflict_of_undo(machine: Machine, own: Path) -> None:
    run = machine.engine().repair(Desired(), [closing(own, 0o644)]).run
    assert run is not None
    own.chmod(0o640)
    report = machine.engine().undo(run)
    assert report.count(OutcomeStatus.CONFLICT) == 1
    assert mode(own) == 0o640


def test_d120_a_mode_that_is_not_as_planned_is_left(machine: Machine, own: Path) -> None:
    assert machine.engine().repair(Desired(), [closing(own, 0o666)]).run is None
    assert mode(own) == 0o644


def test_a_link_is_never_closed(machine: Machine, own: Path) -> None:
    link = machine.top / "link"
    link.symlink_to(own)
    assert machine.engine().repair(Desired(), [closing(link, 0o644)]).run is None
    assert mode(own) == 0o644


def test_d126_a_removed_file_comes_back_by_undo(machine: Machine, own: Path) -> None:
    run = machine.engine().repair(Desired(), [removing(own)]).run
    assert not own.exists()
    assert run is not None
    machine.engine().undo(run)
    assert (own.read_text(), mode(own)) == ("secret", 0o644)


def test_d120_a_file_that_was_written_since_stays(machine: Machine, own: Path) -> None:
    action = removing(own)
    own.write_text("new")
    assert machine.engine().repair(Desired(), [action]).run is None
    assert own.read_text() == "new"


def test_s43_a_crash_around_a_mode_is_recovered(machine: Machine, own: Path) -> None:
    class Killed(BaseException):
        pass

    def dies(word: str) -> None:
        if word == "mode":
            raise Killed

    crashing = replace(machine, checkpoint=dies)
    with pytest.raises(Killed):
        crashing.engine().repair(Desired(), [closing(own, 0o644)])
    state = StateDir(machine.state)
    report = machine.engine().repair(Desired(), [closing(own, 0o644)])
    assert report.run is not None
    assert mode(own) == 0o600
    assert interrupted(state) == ()
    assert [change.after for change in read(state.journal(report.run)).modes] == [0o600]


def test_a_directory_can_be_closed_too(machine: Machine) -> None:
    directory = machine.top / "dir"
    directory.mkdir(mode=0o755)
    machine.engine().repair(Desired(), [closing(directory, 0o755, 0o700)])
    assert mode(directory) == 0o700
