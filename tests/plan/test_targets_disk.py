"""Disks that refuse, fill up or change under a write (S-46, S-51, S-52, S-92)."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.disks import NoRename
from tests.plan.machine import (
    AGENTS,
    ORIGINAL,
    Machine,
    hub_only,
    one,
    only_files,
    value,
    write,
)
from tfx.plan.actions import Desired, OutcomeStatus, Reason
from tfx.plan.disk import Disk

S = OutcomeStatus


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EBUSY])
def test_s92_exdev_falls_back_to_a_copy_in_place(machine: Machine, code: int) -> None:
    write(machine.settings, ORIGINAL)
    inode = machine.settings.stat().st_ino
    disk = NoRename(code)
    machine.disk = disk
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.CHANGED
    assert disk.renames == 1
    assert machine.settings.stat().st_ino == inode
    assert "tfx-hub" in machine.settings.read_text()
    assert ORIGINAL.encode() in machine.backups()
    assert sorted(path.name for path in machine.settings.parent.iterdir()) == ["settings.json"]


class Full(Disk):
    """A disk that is full after some bytes of a target."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data[: self.room])
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_fails_that_action_and_loses_nothing(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)
    before = machine.contents()
    machine.disk = Full(10)
    report = machine.apply(machine.desired())
    assert {outcome.status for outcome in report.outcomes} == {S.FAILED}
    assert "No space left" in report.outcomes[0].reason
    assert machine.contents() == before
    machine.disk = None
    assert machine.apply(machine.desired()).count(S.CHANGED) == 6


class FullInPlace(NoRename):
    """No rename, and in place the disk is full once."""

    def __init__(self) -> None:
        super().__init__(errno.EXDEV)
        self.failed = False

    def write(self, descriptor: int, data: bytes) -> None:
        if self.renames and not self.failed:
            self.failed = True
            super().write(descriptor, data[:40])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)


def test_s51_a_disk_that_fills_up_in_place_gets_the_old_bytes_back(machine: Machine) -> None:
    content = write(machine.settings, '{"mcpServers": {}, "long": "' + "x" * 99 + '"}')
    machine.disk = FullInPlace()
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.FAILED
    assert machine.settings.read_bytes() == content


class NoLinks(Disk):
    def link(self, source: Path, target: Path) -> None:
        del source
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(target))


def test_a_file_system_without_hard_links_works(machine: Machine) -> None:
    machine.disk = NoLinks()
    machine.apply(machine.desired())
    assert machine.apply(machine.desired("2")).count(S.CHANGED) == 6
    machine.remove()
    assert machine.contents() == {}


def test_s49_owner_and_extended_attributes_stay(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)
    try:
        os.setxattr(machine.settings, "user.mine", b"x")
    except OSError:
        pytest.skip("this file system has no user attributes")
    if os.geteuid() == 0:
        os.chown(machine.settings, 12345, 12346)
    owner = (machine.settings.stat().st_uid, machine.settings.stat().st_gid)
    machine.apply(hub_only(machine))
    assert os.getxattr(machine.settings, "user.mine") == b"x"
    assert (machine.settings.stat().st_uid, machine.settings.stat().st_gid) == owner


def test_s52_a_file_that_nothing_can_change_is_partial_with_a_snippet(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)
    _immutable(machine.settings, on=True)
    try:
        entry = replace(
            machine.json_entry({"headers": {"Authorization": "Bearer T0ken"}}, secret=True),
            activates=("route.sh",),
        )
        desired = replace(machine.desired(), entries=(entry,))
        report = machine.apply(desired)
    finally:
        _immutable(machine.settings, on=False)
    outcome = one(report, machine.settings)
    assert outcome.status is S.PARTIAL
    assert outcome.snippet is not None
    assert "Bearer <token>" in outcome.snippet
    assert "T0ken" not in repr(report)
    assert "not active" in one(report, machine.script).reason
    assert machine.settings.read_text() == ORIGINAL


def _immutable(path: Path, *, on: bool) -> None:
    done = subprocess.run(
        ["chattr", "+i" if on else "-i", str(path)], capture_output=True, check=False
    )
    if done.returncode and on:
        pytest.skip("chattr +i is not possible here")


class Meanwhile(Disk):
    """Somebody else acts at the very last moment before a new file is published."""

    def __init__(self, act: Callable[[], None], times: int = 1) -> None:
        self.act = act
        self.times = times

    def _meanwhile(self, source: Path) -> None:
        if self.times and source.suffix == ".new":
            self.times -= 1
            self.act()

    def rename(self, source: Path, target: Path) -> None:
        self._meanwhile(source)
        super().rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self._meanwhile(source)
        super().link(source, target)


def test_s46_a_write_in_the_last_moment_is_seen_and_planned_again(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)

    def client() -> None:
        with machine.settings.open("r+b") as file:
            file.write(b'{"other": 1, "x": "dark"}  \n')
            file.truncate()

    machine.disk = Meanwhile(client)
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.CHANGED
    assert value(machine.settings) == {
        "other": 1,
        "x": "dark",
        "mcpServers": {"tfx-hub": {"command": "tfx"}},
    }
    assert [path.name for path in machine.settings.parent.iterdir()] == ["settings.json"]


class MeanwhileWithoutLinks(NoLinks):
    """Somebody writes while we fill our new file, and there are no hard links to tell."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def create(self, path: Path) -> int:
        act, self.act = self.act, None
        if act:
            act()
        return super().create(path)


def test_s46_the_target_is_hashed_again_right_before_its_replacement(machine: Machine) -> None:
    write(machine.settings, ORIGINAL)
    machine.disk = MeanwhileWithoutLinks(lambda: _put(machine.settings, '{"late": 1}'))
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert outcome.status is S.CHANGED
    assert value(machine.settings)["late"] == 1


def test_s46_a_file_that_appears_in_the_last_moment_is_not_replaced(machine: Machine) -> None:
    machine.disk = Meanwhile(lambda: None if machine.skill.exists() else _put(machine.skill))
    report = machine.apply(only_files(machine.desired()))
    assert machine.skill.read_text() == "theirs"
    assert one(report, machine.skill).status is S.CONFLICT


def _put(path: Path, text: str = "theirs") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_s46_after_three_more_attempts_it_is_a_conflict(machine: Machine) -> None:
    write(machine.settings, '{"n": 0}')
    count = iter(range(1, 100))

    def client() -> None:
        machine.settings.write_text(f'{{"n": {next(count)}}}')

    machine.disk = Meanwhile(client, 50)
    (outcome,) = machine.apply(hub_only(machine)).outcomes
    assert (outcome.status, outcome.action.reason) == (S.CONFLICT, Reason.MOVING)
    assert value(machine.settings) == {"n": 4}
    assert [path.name for path in machine.settings.parent.iterdir()] == ["settings.json"]


def test_s83_a_client_that_truncates_and_rewrites_all_the_time_loses_nothing(
    machine: Machine,
) -> None:
    """The client adds one key after the other, reading its own file as Claude does."""
    write(machine.settings, "{}")
    stop = threading.Event()
    lost: list[int] = []

    def client() -> None:
        number = 0
        while not stop.is_set() and number < 300:
            try:
                document = value(machine.settings)
            except ValueError:
                continue
            if number and document.get("n") != number:
                lost.append(number)
            number += 1
            document["n"] = number
            machine.settings.write_text("")
            machine.settings.write_text(json.dumps(document))
            stop.wait(0.002)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        engine = machine.engine()
        engine._sleep = lambda pause_s: time.sleep(pause_s / 20)
        for version in range(20):
            desired = Desired((), (machine.json_entry({"command": str(version)}),), AGENTS)
            engine.apply(desired)
    finally:
        stop.set()
        thread.join()
    assert lost == []
    assert value(machine.settings)["n"] > 0
