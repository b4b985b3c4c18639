"""Links, loops, broken and empty files: what a target may be (S-47, S-54, S-60)."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plan.machine import (
    AGENTS,
    ORIGINAL,
    TAKE_NEW,
    Machine,
    hub_only,
    one,
    only_files,
    statuses,
    value,
    write,
)
from tfx.plan.actions import ActionKind, Desired, OutcomeStatus, Reason
from tfx.plan.manifest import load

S = OutcomeStatus


def test_s87_a_chain_of_three_links_stays_and_its_final_target_changes(machine: Machine) -> None:
    real = machine.home / "dotfiles" / "settings.json"
    write(real, ORIGINAL, 0o640)
    one_, two = machine.home / "one", machine.home / "two"
    one_.symlink_to("dotfiles/settings.json")
    two.symlink_to(one_)
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("../two")
    links = {path: path.readlink() for path in (one_, two, machine.settings)}
    machine.apply(hub_only(machine))
    assert "tfx-hub" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert machine.plan(hub_only(machine)).actions == ()
    machine.remove()
    assert real.read_text() == ORIGINAL
    assert {path: path.readlink() for path in links} == links


def test_s47_a_dangling_link_is_created_through(machine: Machine) -> None:
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("../real.json")
    machine.apply(hub_only(machine))
    assert machine.settings.is_symlink()
    assert "tfx-hub" in (machine.home / "real.json").read_text()
    machine.remove()
    assert machine.settings.is_symlink()
    assert not (machine.home / "real.json").exists()


def test_s47_a_dangling_link_into_a_missing_directory_is_refused(machine: Machine) -> None:
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("../not/there.json")
    report = machine.apply(hub_only(machine))
    assert report.outcomes[0].action.reason is Reason.NO_DIRECTORY
    assert not (machine.home / "not").exists()


def test_s47_a_loop_is_refused(machine: Machine) -> None:
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("settings.json")
    report = machine.apply(hub_only(machine))
    assert (report.outcomes[0].status, report.outcomes[0].action.reason) == (
        S.REFUSED,
        Reason.LOOP,
    )
    assert machine.settings.is_symlink()


def test_s47_a_file_of_ours_that_became_a_link_is_not_deleted_through_it(machine: Machine) -> None:
    machine.apply(only_files(machine.desired()))
    moved = machine.script.with_name("mine.sh")
    machine.script.rename(moved)
    machine.script.symlink_to(moved)
    report = machine.remove()
    assert one(report, machine.script).status is S.CONFLICT
    assert moved.exists()
    assert machine.script.is_symlink()


def test_s85_moving_the_settings_behind_a_link_later_changes_nothing(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)
    machine.apply(hub_only(machine))
    real = machine.home / "dotfiles.json"
    shutil.move(machine.settings, real)
    machine.settings.symlink_to(real)
    (action,) = machine.plan(hub_only(machine)).actions
    assert action.kind is ActionKind.RECORD
    machine.apply(hub_only(machine))
    assert machine.plan(hub_only(machine)).actions == ()
    machine.apply(Desired((), (machine.json_entry({"command": "new"}),), AGENTS))
    assert value(real)["mcpServers"]["tfx-hub"] == {"command": "new"}
    machine.remove()
    assert real.read_text() == ORIGINAL
    assert machine.settings.is_symlink()


def test_s29_a_root_that_was_moved_behind_a_link_later_is_still_ours(machine: Machine) -> None:
    machine.apply(only_files(machine.desired()))
    real = machine.home / "dotfiles" / "skills"
    real.parent.mkdir()
    machine.skills.rename(real)
    machine.skills.symlink_to(real)
    machine.apply(only_files(machine.desired("2")))
    assert machine.plan(only_files(machine.desired("2"))).actions == ()
    records = load(machine.state / "manifest.json").files.values()
    assert {record.root for record in records} == {str(real), str(machine.script.parent)}
    machine.remove()
    assert [path for path in real.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["directory", "fifo"])
def test_something_else_in_place_of_a_file_is_refused_and_left(
    machine: Machine, make: Callable[[Path], None]
) -> None:
    for path in (machine.settings, machine.script):
        path.parent.mkdir(parents=True)
        make(path)
    report = machine.apply(machine.desired())
    assert one(report, machine.script).status is S.REFUSED
    assert statuses(report)[f"{machine.settings}:mcpServers.tfx-hub"] is S.REFUSED
    assert one(report, machine.skill).status is S.CHANGED
    assert not machine.settings.is_file()


def test_a_file_in_place_of_a_directory_is_refused(machine: Machine) -> None:
    write(machine.home / ".codex", "a file")
    report = machine.apply(machine.desired())
    assert one(report, machine.codex).action.reason is Reason.NOT_A_FILE


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1', 1),
        (b'{"mcpServers": []}', 0),
        (b'{"mcpServers": {"tfx-hub": 1, "tfx-hub": 2}}', 0),
        (b"{\n  // strict\n}", 2),
        (b'{"a": "\xff"}', 1),
        (b"[1]", 1),
    ],
)
def test_s54_a_file_that_cannot_be_edited_stays_byte_identical(
    machine: Machine, content: bytes, line: int
) -> None:
    write(machine.settings, content)
    report = machine.apply(hub_only(machine), TAKE_NEW)
    (outcome,) = report.outcomes
    assert outcome.status is S.REFUSED
    assert outcome.action.reason is Reason.UNPARSABLE
    assert str(machine.settings) in outcome.reason
    assert line in {0, outcome.action.line}
    assert machine.settings.read_bytes() == content
    assert report.run is None


def test_s54_a_broken_file_refuses_remove_and_keeps_the_record(machine: Machine) -> None:
    machine.apply(hub_only(machine))
    good = machine.settings.read_bytes()
    write(machine.settings, "{ broken")
    assert machine.remove().outcomes[0].status is S.REFUSED
    machine.settings.write_bytes(good)
    machine.remove()
    assert not machine.settings.exists()


def test_s110_a_file_above_the_limit_is_refused_unread(machine: Machine) -> None:
    write(machine.settings, "{}")
    with machine.settings.open("r+b") as file:
        file.truncate(33 * 1024 * 1024)
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.REFUSED
    assert machine.settings.stat().st_size == 33 * 1024 * 1024


def test_s60_an_empty_file_counts_as_an_empty_object_and_comes_back_empty(
    machine: Machine,
) -> None:
    write(machine.settings, b"", 0o640)
    machine.apply(hub_only(machine))
    assert sum(machine.sleeps) == pytest.approx(2.0)
    assert value(machine.settings) == {"mcpServers": {"tfx-hub": {"command": "tfx"}}}
    machine.remove()
    assert machine.settings.read_bytes() == b""


def test_s73_truncated_json_is_read_again_before_it_counts_as_broken(machine: Machine) -> None:
    write(machine.settings, '{"a": ')
    engine = machine.engine()
    reads: list[float] = []

    def sleep(pause_s: float) -> None:
        reads.append(pause_s)
        if len(reads) == 3:
            write(machine.settings, '{"a": 1}')

    engine._sleep = sleep
    (outcome,) = engine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.CHANGED
    assert value(machine.settings)["a"] == 1
    assert len(reads) == 3
