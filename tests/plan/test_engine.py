"""Plan, apply, remove: what is decided and that it is exactly that (S-1 … S-7, K-12 … K-14)."""

from __future__ import annotations

import stat
from dataclasses import replace

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
from tfx.plan.actions import ActionKind, Desired, OutcomeStatus, Reason
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
