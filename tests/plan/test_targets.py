"""What can stand at a target: links, other kinds of files, refusals, clients that write too."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.machine import AGENTS, TAKE_NEW, Machine, one, only_files, statuses, value, write
from tfx.plan.actions import ActionKind, Desired, OutcomeStatus, Reason
from tfx.plan.disk import Disk
from tfx.plan.manifest import load

S = OutcomeStatus
ORIGINAL = '{\n  "theme": "dark"\n}\n'


def hub_only(machine: Machine) -> Desired:
    return Desired((), (machine.json_entry({"command": "tfx"}),), AGENTS)


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


class NoRename(Disk):
    """A target on another device than its directory pretends to be: EXDEV."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.renames = 0

    def rename(self, source: Path, target: Path) -> None:
        if source.suffix == ".new":
            self.renames += 1
            raise OSError(self.code, os.strerror(self.code), str(target))
        super().rename(source, target)


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
