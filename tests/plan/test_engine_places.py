"""Roots, modes, names and records: where things are put and how they are found again."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.machine import (
    AGENTS,
    KEEP_MINE,
    RESTORE,
    TAKE_NEW,
    Machine,
    one,
    only_files,
    write,
)
from tfx.errors import StateConflict, UnsafeEnvironment
from tfx.plan.actions import ActionKind, Desired, Flags, OutcomeStatus, Reason
from tfx.plan.manifest import load

S = OutcomeStatus


def test_s17_a_moved_directory_never_loses_anything_in_the_old_one(machine: Machine) -> None:
    machine.apply(machine.desired())
    old = machine.contents()
    other = Machine(machine.top / "home" / "elsewhere")
    files = tuple(
        replace(wanted, root=other.home / wanted.root.name) for wanted in machine.desired().files
    )
    machine.apply(Desired(files, agents_in_scope=AGENTS))
    assert old.items() <= machine.contents().items()


def test_s29_roots_that_are_one_directory_are_written_once(machine: Machine) -> None:
    machine.skills.mkdir(parents=True)
    link = machine.home / ".agents" / "skills"
    link.parent.mkdir()
    link.symlink_to(machine.skills)
    wanted = machine.file(machine.skill, b"x")
    other = replace(wanted, root=link, agents=("codex",))
    report = machine.apply(Desired((wanted, other), agents_in_scope=AGENTS))
    assert len(report.outcomes) == 1
    (record,) = load(machine.state / "manifest.json").files.values()
    assert record.agents == ("claude", "codex")
    assert record.root == str(machine.skills)


def test_s30_a_state_inside_a_skills_root_is_refused(machine: Machine) -> None:
    root = machine.top / "state" / ".."
    with pytest.raises(UnsafeEnvironment):
        machine.apply(Desired(agents_in_scope=AGENTS, places=frozenset({root})))
    assert not machine.state.exists()


@pytest.mark.parametrize("flags", [None, TAKE_NEW, RESTORE])
def test_s32_a_link_where_a_skill_folder_should_be_is_left(
    machine: Machine, flags: Flags | None
) -> None:
    elsewhere = machine.home / "dotfiles"
    write(elsewhere / "SKILL.md", "mine")
    machine.skills.mkdir(parents=True)
    (machine.skills / "tfx-a").symlink_to(elsewhere)
    before = machine.contents()
    report = machine.apply(
        replace(machine.desired(), files=machine.desired().files[:2], entries=()), flags
    )
    assert {outcome.action.reason for outcome in report.outcomes} == {Reason.LINK}
    assert {outcome.status for outcome in report.outcomes} == {S.CONFLICT}
    assert machine.contents() == before


def test_s35_a_renamed_skill_retires_and_an_edited_one_stays_beside(machine: Machine) -> None:
    machine.apply(only_files(machine.desired()))
    write(machine.skill, "mine")
    renamed = machine.file(machine.skills / "tfx-b" / "SKILL.md", b"new name")
    desired = Desired(
        (renamed,),
        agents_in_scope=AGENTS,
        renames={"tfx-a/SKILL.md": "tfx-b/SKILL.md"},
    )
    report = machine.apply(desired)
    kept = one(report, machine.skill)
    assert kept.action.kind is ActionKind.KEEP
    assert "tfx-b/SKILL.md" in kept.reason
    assert not machine.skill.with_name("more.md").exists()
    assert machine.skill.read_text() == "mine"


def test_s38_the_manifest_points_to_base_bytes_and_holds_only_the_hash_of_a_token(
    machine: Machine,
) -> None:
    entry = machine.json_entry({"headers": {"Authorization": "Bearer T0ken-x"}}, secret=True)
    machine.apply(Desired(machine.desired().files, (entry,), AGENTS))
    manifest = load(machine.state / "manifest.json")
    for record in manifest.files.values():
        assert (machine.state / "base" / str(record.sha256)).is_file()
    assert stat.S_IMODE(machine.settings.stat().st_mode) == 0o600
    machine.settings.write_text(machine.settings.read_text() + "\n")
    machine.apply(Desired(machine.desired().files, (machine.json_entry({"a": 1}),), AGENTS))
    for path in machine.state.rglob("*"):
        outside_backup = not path.is_relative_to(machine.state / "backup")
        assert not (path.is_file() and outside_backup and b"T0ken" in path.read_bytes()), path


def test_s23_a_token_in_a_file_that_others_read_is_reported(machine: Machine) -> None:
    write(machine.settings, "{}", 0o644)
    entry = machine.json_entry({"headers": {"Authorization": "Bearer T0ken-x"}}, secret=True)
    plan = machine.plan(Desired((), (entry,), AGENTS))
    assert "others can read" in (plan.actions[0].warning or "")
    assert "T0ken" not in repr(plan)


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"schema": 1}', b"[]", b'{"schema": 0}', b"\xff", b'{"schema": 2}']
)
def test_s39_an_unreadable_or_newer_manifest_is_refused_before_any_write(
    machine: Machine, content: bytes
) -> None:
    machine.apply(machine.desired())
    write(machine.state / "manifest.json", content)
    before = machine.snapshot()
    for call in (machine.apply, machine.plan):
        with pytest.raises(StateConflict) as caught:
            call(machine.desired("2"))
        assert caught.value.exit == 5
        assert str(machine.state / "manifest.json") in caught.value.message
    with pytest.raises(StateConflict):
        machine.remove()
    assert machine.snapshot() == before


def test_s39_a_missing_manifest_is_a_first_run(machine: Machine) -> None:
    machine.apply(machine.desired())
    (machine.state / "manifest.json").unlink()
    write(machine.script, "edited", 0o755)
    report = machine.apply(machine.desired())
    assert one(report, machine.skill).action.kind is ActionKind.RECORD
    assert one(report, machine.script).action.reason is Reason.FOREIGN
    assert machine.script.read_text() == "edited"


def test_s93_a_lost_exec_bit_is_set_again(machine: Machine) -> None:
    machine.apply(machine.desired())
    machine.script.chmod(0o644)
    report = machine.apply(machine.desired())
    assert one(report, machine.script).action.reason is Reason.EXEC_BIT
    assert stat.S_IMODE(machine.script.stat().st_mode) == 0o755


def test_s93_the_mode_does_not_depend_on_the_umask(machine: Machine) -> None:
    old = os.umask(0o077)
    try:
        machine.apply(machine.desired())
    finally:
        os.umask(old)
    assert stat.S_IMODE(machine.script.stat().st_mode) == 0o755
    assert stat.S_IMODE(machine.skill.stat().st_mode) == 0o644
    assert stat.S_IMODE(machine.state.stat().st_mode) == 0o700
    for path in machine.state.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("inside", ["SKILL.md", "one/SKILL.md", "readme"])
def test_s97_a_folder_of_the_user_with_our_name_is_untouched(machine: Machine, inside: str) -> None:
    write(machine.skills / "tfx-a" / inside, "mine")
    before = machine.contents()
    desired = replace(machine.desired(), files=machine.desired().files[:2], entries=())
    report = machine.apply(desired)
    assert {outcome.status for outcome in report.outcomes} == {S.CONFLICT}
    assert machine.contents() == before
    machine.apply(desired, KEEP_MINE)
    assert machine.plan(desired).actions == ()
    assert machine.contents() == before


def test_s98_remove_deletes_by_hash_never_by_name(machine: Machine) -> None:
    write(machine.skills / "tfx-own" / "SKILL.md", "mine")
    machine.apply(machine.desired())
    write(machine.script, "edited", 0o755)
    machine.remove()
    assert machine.script.read_text() == "edited"
    assert (machine.skills / "tfx-own" / "SKILL.md").exists()


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b", "a//b", "./a", ""])
def test_s53_a_path_that_leaves_its_root_is_refused(machine: Machine, path: str) -> None:
    wanted = replace(machine.file(machine.skill, b"x"), path=path)
    report = machine.apply(Desired((wanted,), agents_in_scope=AGENTS))
    (outcome,) = report.outcomes
    assert (outcome.status, outcome.action.reason) == (S.REFUSED, Reason.OUTSIDE)
    assert machine.contents() == {}


def test_s53_a_file_link_that_leads_out_of_the_root_is_refused(machine: Machine) -> None:
    outside = machine.home / "outside"
    write(outside, "mine")
    machine.script.parent.mkdir(parents=True)
    machine.script.symlink_to(outside)
    report = machine.apply(only_files(machine.desired()))
    assert one(report, machine.script).action.reason is Reason.OUTSIDE
    assert outside.read_text() == "mine"


def test_s109_names_that_are_not_utf8_are_kept_and_written(machine: Machine) -> None:
    machine.apply(machine.desired())
    odd = Path(os.fsdecode(os.fsencode(machine.skill.parent) + b"/\xff\xfe.md"))
    odd.write_bytes(b"mine")
    home = Path(os.fsdecode(os.fsencode(machine.home) + b"/caf\xe9"))
    wanted = replace(machine.file(machine.skill, b"x"), root=home)
    machine.apply(replace(machine.desired(), files=(*machine.desired().files, wanted)))
    assert (home / wanted.path).read_bytes() == b"x"
    machine.remove()
    assert odd.read_bytes() == b"mine"
    assert not home.exists()


def test_a_home_with_every_odd_character_works(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "a b'c\"d$e`f\\g\né")
    machine.apply(machine.desired())
    assert machine.plan(machine.desired()).actions == ()
    machine.remove()
    assert machine.contents() == {}
