"""Setup, setup again, remove: what a user sees of the engine."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.machine import (
    AGENTS,
    HUB,
    KEEP_MINE,
    RESTORE,
    TAKE_NEW,
    Machine,
    one,
    only_files,
    statuses,
    value,
    write,
)
from tfx.errors import StateConflict, UnsafeEnvironment
from tfx.plan.actions import ActionKind, Desired, Flags, OutcomeStatus, Reason
from tfx.plan.manifest import load

S = OutcomeStatus


def test_s1_a_plan_is_computed_without_a_trace_and_says_what_apply_does(machine: Machine) -> None:
    before = machine.snapshot()
    plan = machine.plan(machine.desired())
    assert machine.snapshot() == before
    report = machine.apply(machine.desired())
    done = [outcome.action for outcome in report.outcomes if outcome.status is S.CHANGED]
    assert done == list(plan.actions)
    assert [action.kind for action in plan.actions] == [ActionKind.CREATE] * 6


def test_s3_a_plan_makes_neither_state_nor_lock(machine: Machine) -> None:
    engine = machine.engine()
    engine.plan(machine.desired())
    engine.plan_removal()
    assert engine.runs() == ()
    assert not machine.state.exists()


def test_s4_the_second_run_is_empty_and_moves_no_mtime(machine: Machine) -> None:
    first = machine.apply(machine.desired())
    assert first.count(S.CHANGED) == 6
    before = machine.snapshot()
    second = machine.apply(machine.desired())
    assert machine.plan(machine.desired()).actions == ()
    assert (second.run, second.count(S.UNCHANGED)) == (None, 6)
    assert machine.snapshot() == before


def test_s5_remove_leaves_nothing_of_ours_in_an_empty_home(machine: Machine) -> None:
    machine.apply(machine.desired())
    report = machine.remove()
    assert {outcome.status for outcome in report.outcomes} == {S.CHANGED}
    assert machine.contents() == {}
    assert machine.remove().run is None


def test_s5_remove_gives_back_every_byte_of_the_files_of_others(machine: Machine) -> None:
    write(machine.settings, '{"model": "x",\r\n\t"hooks": {"SessionStart": [ 1 ]}}', 0o600)
    write(machine.codex, 'model = "y" # mine\n\n[mcp_servers]\n', 0o640)
    write(machine.skills / "own" / "SKILL.md", "own")
    before = machine.contents()
    machine.apply(machine.desired())
    machine.apply(machine.desired("2"))
    assert machine.contents() != before
    machine.remove()
    assert machine.contents() == before


def test_s5_remove_keeps_what_others_added_to_a_shared_file_meanwhile(machine: Machine) -> None:
    write(machine.settings, '{\n  "a": 1\n}\n')
    machine.apply(machine.desired())
    text = machine.settings.read_text().replace('"a": 1', '"a": 2')
    machine.settings.write_text(text)
    machine.remove()
    assert machine.settings.read_text() == '{\n  "a": 2\n}\n'


def test_s6_what_is_skipped_kept_and_refused_is_listed_one_by_one(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "mine")
    machine.apply(machine.desired(), KEEP_MINE)
    write(machine.codex, "not [ toml")
    report = machine.apply(machine.desired())
    assert one(report, machine.skill).status is S.SKIPPED
    assert one(report, machine.codex).status is S.REFUSED
    assert report.run is None


def test_s7_a_refused_target_does_not_stop_the_others(machine: Machine) -> None:
    write(machine.settings, "{ broken")
    report = machine.apply(machine.desired())
    assert report.count(S.REFUSED) == 2
    assert report.count(S.CHANGED) == 4
    assert machine.settings.read_text() == "{ broken"
    assert machine.codex.exists()


def test_s31_skill_md_is_last_in_and_first_out(machine: Machine) -> None:
    order = [action.path.name for action in machine.plan(only_files(machine.desired())).actions]
    assert order.index("SKILL.md") > order.index("more.md")
    machine.apply(machine.desired())
    order = [action.path.name for action in machine.engine().plan_removal().actions]
    assert order.index("SKILL.md") < order.index("more.md")
    assert order.index("settings.json") < order.index("route.sh")


def test_s34_files_that_the_user_added_stay_and_so_does_their_folder(machine: Machine) -> None:
    machine.apply(machine.desired())
    own = write(machine.skill.with_name("notes.md"), "mine")
    machine.remove()
    assert [path.name for path in machine.skill.parent.iterdir()] == ["notes.md"]
    assert machine.skill.with_name("notes.md").read_bytes() == own


def test_s37_a_drifted_item_is_kept_listed_and_forgotten_at_remove(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "mine")
    report = machine.remove()
    assert one(report, machine.skill).status is S.CONFLICT
    assert machine.skill.read_text() == "mine"
    assert not machine.skill.with_name("more.md").exists()
    assert load(machine.state / "manifest.json").files == {}


def test_s37_remove_of_one_agent_leaves_what_others_use(machine: Machine) -> None:
    shared = machine.file(machine.skill, b"x", agents=("codex", "copilot"))
    desired = Desired((shared,), machine.desired().entries, AGENTS)
    machine.apply(desired)
    machine.remove(frozenset({"codex"}))
    assert machine.skill.exists()
    assert not machine.codex.exists()
    assert "tfx-hub" in machine.settings.read_text()
    machine.remove(frozenset({"copilot"}))
    assert not machine.skill.exists()


def test_k12_an_edited_file_is_a_conflict_until_one_of_the_options(machine: Machine) -> None:
    machine.apply(machine.desired())
    write(machine.skill, "mine")
    report = machine.apply(machine.desired())
    outcome = one(report, machine.skill)
    assert (outcome.status, outcome.action.reason) == (S.CONFLICT, Reason.EDITED)
    assert "--take-new" in (outcome.hint or "")
    assert report.run is None
    machine.apply(machine.desired(), KEEP_MINE)
    assert machine.plan(machine.desired()).actions == ()
    assert machine.skill.read_text() == "mine"
    again = one(machine.apply(machine.desired("2")), machine.skill)
    assert (again.status, again.action.reason) == (S.CONFLICT, Reason.DIVERGED)
    machine.apply(machine.desired("2"), TAKE_NEW)
    assert machine.skill.read_text() == "skill version 2\n"
    assert b"mine" in machine.backups()


def test_k12_a_deleted_file_stays_away_until_restore(machine: Machine) -> None:
    machine.apply(machine.desired())
    machine.skill.unlink()
    outcome = one(machine.apply(machine.desired(), TAKE_NEW), machine.skill)
    assert (outcome.status, outcome.action.reason) == (S.CONFLICT, Reason.DELETED)
    assert "--restore" in (outcome.hint or "")
    assert not machine.skill.exists()
    machine.apply(machine.desired(), RESTORE)
    assert machine.skill.exists()


def test_k13_an_agent_that_is_left_out_is_untouched(machine: Machine) -> None:
    machine.apply(machine.desired())
    before = machine.contents()
    less = replace(
        machine.desired(),
        entries=machine.desired().entries[:2],
        agents_in_scope=frozenset({"claude"}),
        places=frozenset({machine.codex}),
    )
    report = machine.apply(less)
    assert one(report, machine.codex).status is S.SKIPPED
    assert machine.contents() == before
    assert machine.plan(less).actions == ()


def test_k13_a_shared_file_stays_until_its_last_agent_lets_go(machine: Machine) -> None:
    both = machine.file(machine.skill, b"x", agents=("codex", "copilot"))
    machine.apply(Desired((both,), agents_in_scope=AGENTS))
    only = replace(both, agents=("codex",))
    machine.apply(Desired((only,), agents_in_scope=frozenset({"codex"})))
    record = next(iter(load(machine.state / "manifest.json").files.values()))
    assert record.agents == ("codex", "copilot")
    machine.apply(Desired((only,), agents_in_scope=AGENTS))
    record = next(iter(load(machine.state / "manifest.json").files.values()))
    assert record.agents == ("codex",)
    machine.apply(Desired((), agents_in_scope=AGENTS, places=frozenset({machine.skills})))
    assert not machine.skill.exists()


def test_k14_take_new_backs_up_and_remove_gives_it_back(machine: Machine) -> None:
    foreign = write(machine.skill, "of another tool", 0o600)
    report = machine.apply(machine.desired())
    assert one(report, machine.skill).action.reason is Reason.FOREIGN
    taken = one(machine.apply(machine.desired(), TAKE_NEW), machine.skill)
    assert taken.backup is not None
    assert taken.backup.read_bytes() == foreign
    machine.apply(machine.desired("2"))
    machine.remove()
    assert machine.skill.read_bytes() == foreign
    assert stat.S_IMODE(machine.skill.stat().st_mode) == 0o600


def test_s9_an_entry_of_others_is_kept_until_take_new_and_given_back(machine: Machine) -> None:
    original = write(machine.settings, '{"mcpServers": {"tfx-hub": {"url": "mine"}}, "x": 1}')
    report = machine.apply(machine.desired())
    hub = f"{machine.settings}:mcpServers.tfx-hub"
    assert statuses(report)[hub] is S.CONFLICT
    assert value(machine.settings)["mcpServers"] == {"tfx-hub": {"url": "mine"}}
    machine.apply(machine.desired(), TAKE_NEW)
    assert "tfx-1" in machine.settings.read_text()
    assert original in machine.backups()
    machine.settings.write_text(machine.settings.read_text().replace('"x": 1', '"x": 2'))
    machine.remove()
    assert value(machine.settings) == {"mcpServers": {"tfx-hub": {"url": "mine"}}, "x": 2}


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


def test_two_wants_that_contradict_each_other_are_a_mistake_of_the_caller(
    machine: Machine,
) -> None:
    one_, other = machine.file(machine.skill, b"x"), machine.file(machine.skill, b"y")
    with pytest.raises(ValueError, match="both wanted"):
        machine.plan(Desired((one_, other)))
    with pytest.raises(ValueError, match="two values"):
        machine.plan(Desired((), (machine.json_entry(1), machine.json_entry(2))))


def test_an_entry_keeps_what_others_added_inside_it(machine: Machine) -> None:
    machine.apply(machine.desired())
    text = machine.settings.read_text().replace('"command": "tfx-1"', '"x": 1, "command": "tfx-1"')
    machine.settings.write_text(text)
    assert machine.plan(machine.desired()).actions == ()
    machine.apply(machine.desired("2"))
    servers = value(machine.settings)["mcpServers"]
    assert servers[HUB[1]] == {"x": 1, "command": "tfx-2", "args": ["hub", "bridge"]}


def test_k5_a_plan_says_whether_an_existing_shared_file_would_change(machine: Machine) -> None:
    assert not machine.plan(machine.desired()).changes_shared_files
    write(machine.settings, "{}")
    assert machine.plan(machine.desired()).changes_shared_files
    machine.apply(machine.desired())
    assert not machine.plan(machine.desired()).changes_shared_files


def test_s6_progress_names_each_action_before_it_is_carried_out(machine: Machine) -> None:
    seen: list[str] = []
    plan = machine.plan(machine.desired())
    machine.engine().apply(machine.desired(), progress=lambda action: seen.append(action.target))
    assert seen == [action.target for action in plan.actions]
