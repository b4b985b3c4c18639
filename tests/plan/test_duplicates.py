"""An element of ours that stands in its array more than once: one is left, all go with us."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.plan.machine import AGENTS, Machine, value, write
from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue
from tfx.plan.actions import ActionKind, Desired, Reason, WantedEntry

THEIRS: JsonValue = {"hooks": [{"type": "command", "command": "theirs"}]}
OURS: JsonValue = {"hooks": [{"type": "command", "command": "/x/tfx", "v": "1"}]}
NEWER: JsonValue = {"hooks": [{"type": "command", "command": "/x/tfx", "v": "2"}]}
PLACE: KeyPath = ("hooks", "SessionStart")


def want(*entries: WantedEntry) -> Desired:
    return Desired((), entries, AGENTS)


def copied(machine: Machine, *elements: JsonValue) -> bytes:
    """What some other program made of our file; its bytes."""
    document = value(machine.settings)
    document["hooks"]["SessionStart"] = list(elements)
    return write(machine.settings, json.dumps(document, indent=1) + "\n")


def elements(machine: Machine) -> JsonValue:
    found: JsonValue = value(machine.settings)["hooks"]["SessionStart"]
    return found


def test_s56_s64_one_of_several_copies_of_ours_is_left(machine: Machine) -> None:
    desired = want(machine.hook(OURS))
    machine.apply(desired)
    copied(machine, OURS, THEIRS, OURS, THEIRS, OURS)
    [action] = machine.plan(desired).actions
    assert (action.kind, action.reason) == (ActionKind.UPDATE, Reason.DOUBLED)
    machine.apply(desired)
    assert elements(machine) == [THEIRS, THEIRS, OURS]
    assert machine.plan(desired).actions == ()


def test_s44_undo_brings_back_the_very_bytes(machine: Machine) -> None:
    desired = want(machine.hook(OURS))
    machine.apply(desired)
    before = copied(machine, OURS, OURS)
    run = machine.apply(desired).run
    assert run is not None
    machine.engine().undo(run)
    assert machine.settings.read_bytes() == before


def test_a_new_version_takes_the_place_of_every_copy_of_the_old_one(machine: Machine) -> None:
    machine.apply(want(machine.hook(OURS)))
    copied(machine, OURS, THEIRS, OURS)
    machine.apply(want(machine.hook(NEWER)))
    assert elements(machine) == [THEIRS, NEWER]


def test_s88_remove_leaves_no_copy_behind_that_would_lead_to_nothing(machine: Machine) -> None:
    machine.apply(want(machine.hook(OURS)))
    copied(machine, OURS, THEIRS, OURS)
    machine.remove()
    assert elements(machine) == [THEIRS]


def test_s56_an_array_of_copies_alone_goes_with_its_parents(machine: Machine) -> None:
    machine.apply(want(machine.hook(OURS)))
    copied(machine, OURS, OURS)
    machine.remove()
    assert not machine.settings.exists() or value(machine.settings) == {}


def test_d125_one_entry_of_a_file_can_be_repaired_without_the_others(machine: Machine) -> None:
    hook, line = machine.hook(OURS), machine.json_entry({"command": "x"})
    machine.apply(want(hook, line))
    copied(machine, OURS, OURS)
    desired = want(hook, replace(line, value={"command": "y"}))
    [chosen] = [a for a in machine.plan(desired).actions if a.reason is Reason.DOUBLED]
    report = machine.engine().repair(desired, [chosen])
    assert [outcome.action.target for outcome in report.outcomes] == [chosen.target]
    assert elements(machine) == [OURS]
    assert value(machine.settings)["mcpServers"]["tfx-hub"] == {"command": "x"}
    [left] = machine.plan(desired).actions
    assert left.reason is Reason.NEW_VERSION
