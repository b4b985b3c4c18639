"""Take back one run (S-44), and what is kept for it (S-45)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.plan.machine import AGENTS, KEEP_MINE, TAKE_NEW, Machine, one, value, write
from tfx.errors import NotFound
from tfx.plan.actions import ActionKind, Desired, OutcomeStatus, Reason
from tfx.plan.manifest import load
from tfx.plan.state import KEPT_RUNS

S = OutcomeStatus


def last(machine: Machine) -> str:
    return machine.engine().runs()[0].run


def test_s44_the_first_run_is_taken_back_whole_and_can_be_redone(machine: Machine) -> None:
    write(machine.settings, '{"a": 1}', 0o600)
    before = machine.contents()
    machine.apply(machine.desired())
    after = machine.contents()
    report = machine.engine().undo(last(machine))
    assert {outcome.status for outcome in report.outcomes} == {S.CHANGED}
    assert machine.contents() == before
    assert load(machine.state / "manifest.json").files == {}
    machine.engine().undo(last(machine))
    assert machine.contents() == after
    assert machine.plan(machine.desired()).actions == ()
    machine.remove()
    assert machine.contents() == before


def test_s44_an_update_is_taken_back_and_comes_again(machine: Machine) -> None:
    machine.apply(machine.desired())
    before = machine.contents()
    machine.apply(machine.desired("2"))
    plan = machine.engine().plan_undo(last(machine))
    assert [action.kind for action in plan.actions] == [ActionKind.UPDATE] * 6
    machine.engine().undo(last(machine))
    assert machine.contents() == before
    assert machine.apply(machine.desired("2")).count(S.CHANGED) == 6


def test_s44_a_remove_is_taken_back(machine: Machine) -> None:
    write(machine.settings, '{"a": 1}')
    machine.apply(machine.desired())
    before = machine.contents()
    machine.remove()
    machine.engine().undo(last(machine))
    assert machine.contents() == before
    assert machine.plan(machine.desired()).actions == ()


def test_s44_take_new_is_taken_back_with_bytes_and_mode(machine: Machine) -> None:
    write(machine.skill, "mine", 0o640)
    machine.apply(machine.desired())
    before = machine.contents()
    machine.apply(machine.desired(), TAKE_NEW)
    machine.engine().undo(last(machine))
    assert machine.contents() == before
    assert one(machine.apply(machine.desired()), machine.skill).status is S.CONFLICT


def test_s44_what_changed_since_stays_and_is_a_conflict(machine: Machine) -> None:
    machine.apply(machine.desired())
    run = last(machine)
    write(machine.skill, "mine")
    report = machine.engine().undo(run)
    outcome = one(report, machine.skill)
    assert (outcome.status, outcome.action.reason) == (S.CONFLICT, Reason.EDITED)
    assert machine.skill.read_text() == "mine"
    assert not machine.script.exists()


def test_s44_of_a_shared_file_the_entry_goes_not_the_file(machine: Machine) -> None:
    write(machine.settings, '{\n  "a": 1\n}\n')
    machine.apply(machine.desired())
    run = last(machine)
    machine.settings.write_text(machine.settings.read_text().replace('"a": 1', '"a": 2'))
    machine.engine().undo(run)
    assert machine.settings.read_text() == '{\n  "a": 2\n}\n'


def test_s44_an_entry_that_was_updated_gets_its_old_value_among_new_neighbours(
    machine: Machine,
) -> None:
    write(machine.settings, '{"a": 1}')
    machine.apply(machine.desired())
    old = value(machine.settings)
    machine.apply(machine.desired("2"))
    run = last(machine)
    machine.settings.write_text(machine.settings.read_text().replace('"a": 1', '"a": 2'))
    machine.engine().undo(run)
    assert value(machine.settings) == old | {"a": 2}
    assert machine.apply(machine.desired()).count(S.CHANGED) == 0


def test_s44_an_entry_that_changed_since_is_a_conflict(machine: Machine) -> None:
    machine.apply(Desired((), (machine.json_entry({"command": "x"}),), AGENTS))
    run = last(machine)
    write(machine.settings, '{"mcpServers": {"tfx-hub": {"command": "mine"}}}')
    (outcome,) = machine.engine().undo(run).outcomes
    assert outcome.status is S.CONFLICT
    assert value(machine.settings)["mcpServers"]["tfx-hub"] == {"command": "mine"}


def test_s44_keep_mine_is_taken_back_too(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "mine")
    machine.apply(machine.desired(), KEEP_MINE)
    machine.engine().undo(last(machine))
    assert one(machine.apply(machine.desired()), machine.skill).status is S.CONFLICT


def test_s44_an_unknown_run_is_not_found_and_leaves_no_trace(machine: Machine) -> None:
    for call in (machine.engine().undo, machine.engine().plan_undo):
        with pytest.raises(NotFound):
            call("000009-x")
    assert not machine.state.exists()


@pytest.mark.parametrize("short", ["1", "000001"])
def test_s44_the_number_of_a_run_is_name_enough(machine: Machine, short: str) -> None:
    machine.apply(machine.desired())
    machine.engine().undo(short)
    assert not machine.skill.exists()
    with pytest.raises(NotFound):
        machine.engine().undo("0")


def test_s44_runs_tell_when_what_and_how_much(machine: Machine) -> None:
    machine.apply(machine.desired())
    machine.remove()
    newest, oldest = machine.engine().runs()
    assert (newest.operation, oldest.operation) == ("remove", "setup")
    assert oldest.changes == 6  # two entries of one file are two
    assert newest.changes >= 5
    assert str(machine.skill) in oldest.targets
    assert oldest.at_ms > 0


def test_s45_the_last_runs_are_kept_and_nothing_more(machine: Machine) -> None:
    for version in range(KEPT_RUNS + 5):
        machine.apply(machine.desired(str(version)))
    assert len(machine.engine().runs()) == KEPT_RUNS
    assert len(list((machine.state / "backup").iterdir())) <= KEPT_RUNS + 1
    assert len(list((machine.state / "base").iterdir())) == 3


def test_s45_a_backup_that_something_needs_is_kept_longer(machine: Machine) -> None:
    foreign = write(machine.skill, "mine")
    original = write(machine.settings, '{"a":1}')
    machine.apply(machine.desired(), TAKE_NEW)
    for version in range(KEPT_RUNS + 5):
        machine.apply(machine.desired(str(version)))
    machine.remove()
    assert machine.skill.read_bytes() == foreign
    assert machine.settings.read_bytes() == original


def test_s36_a_new_version_is_staged_once_and_offered_for_a_merge(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "skill mine\n")
    outcome = one(machine.apply(machine.desired("2")), machine.skill)
    assert outcome.staged is not None
    assert outcome.staged.is_relative_to(machine.state / "staged")
    assert outcome.staged.read_text() == "skill version 2\n"
    before = machine.snapshot()
    report = machine.apply(machine.desired("2"))
    assert report.run is None
    assert one(report, machine.skill).action.reason is Reason.DIVERGED
    assert machine.snapshot() == before
    diff = machine.engine().diff(machine.desired("2"), outcome.action)
    assert (diff.base, diff.disk, diff.new) == (
        b"skill version 1\n",
        b"skill mine\n",
        b"skill version 2\n",
    )
    assert "-skill mine" in diff.text
    machine.apply(machine.desired("2"), TAKE_NEW)
    assert list((machine.state / "staged").iterdir()) == []


def test_s36_with_git_the_merge_command_is_there(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "skill mine\n")
    outcome = one(machine.apply(machine.desired("2")), machine.skill)
    engine = machine.engine()
    engine._git = machine.home / "bin" / "git"
    command = engine.diff(machine.desired("2"), outcome.action).merge_command
    assert command is not None
    assert command.split()[1:4] == ["merge-file", "-p", "--diff3"]
    assert str(machine.skill) in command


def test_s22_a_diff_of_an_entry_shows_no_token(machine: Machine) -> None:
    write(machine.settings, '{"mcpServers": {"tfx-hub": {"h": "Bearer 0ld"}}}')
    entry = machine.json_entry({"headers": {"Authorization": "Bearer T0ken"}}, secret=True)
    desired = Desired((), (entry,), AGENTS)
    (action,) = machine.plan(desired).actions
    diff = machine.engine().diff(desired, action)
    assert "T0ken" not in repr(diff)
    assert "0ld" not in repr(diff)
    assert "Bearer <token>" in diff.text


def test_d5_the_diff_of_a_hook_shows_the_element_that_it_replaces(machine: Machine) -> None:
    old, new = (machine.hook({"command": f"{word} tfx"}) for word in ("older", "newer"))
    machine.apply(Desired((), (old,), AGENTS))
    desired = Desired((), (new,), AGENTS)
    (action,) = machine.plan(desired).actions
    changed = machine.engine().diff(desired, action).text.splitlines()[2:]
    assert [line[0] for line in changed if line[0] in "+-"] == ["-", "+"]


def test_undo_of_a_hook_removes_exactly_the_recorded_element(machine: Machine) -> None:
    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    write(machine.settings, '{"hooks": {"SessionStart": [{"x": 1}]}}')
    machine.apply(replace(machine.desired(), files=(), entries=machine.desired().entries[1:2]))
    run = last(machine)
    document = value(machine.settings)
    document["hooks"]["SessionStart"].append(theirs)
    machine.settings.write_text(json.dumps(document))
    machine.engine().undo(run)
    assert value(machine.settings) == {"hooks": {"SessionStart": [{"x": 1}, theirs]}}
