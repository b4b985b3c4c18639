"""The public reports of setup §6, as far as the engine answers for them."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.disks import NoRename
from tests.plan.machine import AGENTS, Machine, one, only_files, value, write
from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue
from tfx.plan.actions import Desired, Format, OutcomeStatus, Reason, WantedEntry
from tfx.plan.disk import Disk

S = OutcomeStatus
STDIO: JsonValue = {"command": "/opt/tfx", "args": ["hub", "bridge"]}


def jsonc(path: Path, value_: JsonValue = STDIO, key: KeyPath = ("mcp", "tfx-hub")) -> Desired:
    return Desired((), (WantedEntry("opencode", path, Format.JSONC, key, value_),), AGENTS)


def codex(machine: Machine, value_: JsonValue = STDIO) -> Desired:
    return Desired((), (machine.toml_entry(value_),), AGENTS)


@pytest.mark.parametrize("content", ['{"a": 1,}', '{"a": // x\n 1}', "{'a': 1}", '{"a": 1}}', "x"])
def test_s75_what_cannot_be_parsed_is_refused_and_stays(machine: Machine, content: str) -> None:
    write(machine.settings, content)
    (outcome,) = machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS)).outcomes
    assert outcome.status is S.REFUSED
    assert machine.settings.read_text() == content


def test_s76_s77_comments_and_trailing_commas_stay_in_jsonc(machine: Machine) -> None:
    path = machine.home / "opencode.jsonc"
    content = write(path, '{\n  // mine\n  "theme": "x", /* y */\n  "mcp": {\n  },\n}\n')
    machine.apply(jsonc(path))
    text = path.read_text()
    assert "// mine" in text
    assert '"theme": "x", /* y */' in text
    assert "tfx-hub" in text
    machine.remove()
    assert path.read_bytes() == content


def test_s78_s90_foreign_keys_stay_and_there_is_a_backup(machine: Machine) -> None:
    content = write(machine.settings, json.dumps({"a": [1], "mcpServers": {"own": {"x": 1}}}))
    report = machine.apply(machine.desired())
    document = value(machine.settings)
    assert (document["a"], document["mcpServers"]["own"]) == ([1], {"x": 1})
    (backup,) = {o.backup for o in report.outcomes if o.action.path == machine.settings}
    assert backup is not None
    assert backup.read_bytes() == content


def test_s79_s81_an_entry_in_another_spelling_is_found_not_doubled(machine: Machine) -> None:
    value_: JsonValue = {"url": "http://x", "http_headers": {"Authorization": "Bearer T"}}
    write(
        machine.codex,
        'mcp_servers."tfx-hub".url = "old"\n'
        'mcp_servers."tfx-hub".http_headers = { Authorization = "Bearer T" }\n',
    )
    (outcome,) = machine.apply(codex(machine, value_)).outcomes
    assert outcome.action.reason is Reason.FOREIGN
    machine.apply(codex(machine, {"url": "old", "http_headers": {"Authorization": "Bearer T"}}))
    machine.apply(codex(machine, value_))
    assert tomllib.loads(machine.codex.read_text())["mcp_servers"] == {"tfx-hub": value_}


def test_s82_all_bytes_outside_our_table_stay(machine: Machine) -> None:
    content = '# a\nmodel = "x"   # b\n\n[mcp_servers.own]   # c\nunknown = 1\n'
    write(machine.codex, content)
    machine.apply(codex(machine))
    assert machine.codex.read_text().startswith(content)
    machine.apply(codex(machine, {"command": "other"}))
    assert machine.codex.read_text().startswith(content)
    machine.remove()
    assert machine.codex.read_text() == content


def test_s84_an_entry_that_vanished_later_is_found_by_the_next_plan(machine: Machine) -> None:
    machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS))
    write(machine.settings, "{}")
    (action,) = machine.plan(Desired((), (machine.json_entry(STDIO),), AGENTS)).actions
    assert action.reason is Reason.DELETED


def test_s91_nothing_of_ours_lies_in_a_skills_root_but_the_skills(machine: Machine) -> None:
    for version in "123":
        machine.apply(machine.desired(version))
        write(machine.skill.with_name("more.md"), "mine " + version)
    found = {path.name for path in machine.skills.rglob("*")}
    assert found == {"tfx-a", "SKILL.md", "more.md"}


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "a$HOME", "a\\b", "é", "a\nb", "-a", "~"])
def test_s94_a_home_with_any_character_works(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path / name)
    machine.apply(machine.desired())
    assert machine.plan(machine.desired()).actions == ()
    machine.remove()
    assert machine.contents() == {}


def test_s96_text_of_others_is_not_escaped_anew(machine: Machine) -> None:
    write(machine.settings, '{"ä": "\\u00e9 é 日本"}'.encode())
    machine.apply(Desired((), (machine.json_entry({"command": "/h/é/tfx"}),), AGENTS))
    text = machine.settings.read_bytes().decode()
    assert '"ä": "\\u00e9 é 日本"' in text
    assert "/h/é/tfx" in text


def test_s99_two_config_directories_stay_apart(machine: Machine) -> None:
    machine.apply(only_files(machine.desired()))
    first = machine.contents()
    elsewhere = machine.home / "other-config" / "skills"
    moved = replace(machine.file(machine.skill, b"x"), root=elsewhere)
    machine.apply(Desired((moved,), agents_in_scope=AGENTS))
    assert first.items() <= machine.contents().items()
    machine.remove()
    assert machine.contents() == {}


def test_s100_a_renamed_skill_leaves_no_old_one(machine: Machine) -> None:
    machine.apply(only_files(machine.desired()))
    new = machine.file(machine.skills / "tfx-new" / "SKILL.md", b"x")
    machine.apply(Desired((new,), agents_in_scope=AGENTS, renames={"tfx-a": "tfx-new"}))
    assert [path.name for path in machine.skills.iterdir()] == ["tfx-new"]


def test_s105_remove_reverses_every_recorded_edit(machine: Machine) -> None:
    machine.apply(machine.desired())
    machine.apply(replace(machine.desired("2"), files=machine.desired("2").files[:1]))
    machine.remove()
    assert machine.contents() == {}


def test_s106_a_rewrite_with_other_line_ends_and_without_comments_is_no_drift(
    machine: Machine,
) -> None:
    write(machine.codex, "# c\nmodel = 'x'\n")
    machine.apply(codex(machine))
    text = machine.codex.read_text().replace("# c\n", "").replace("\n", "\r\n")
    machine.codex.write_bytes(text.encode())
    assert machine.plan(codex(machine)).actions == ()


class Garbled(Disk):
    """Somebody writes right after our file was published."""

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if source.suffix == ".new":
            target.write_text('{"late": 1}')


def test_s74_what_is_read_again_and_differs_is_a_failed_action(machine: Machine) -> None:
    write(machine.settings, "{}")
    machine.disk = Garbled()
    (outcome,) = machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS)).outcomes
    assert outcome.status is S.FAILED
    assert value(machine.settings) == {"late": 1}
    machine.disk = None
    machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS))
    assert set(value(machine.settings)) == {"late", "mcpServers"}


class Watched(Disk):
    """Notes each name that a new file has before it is published."""

    def __init__(self) -> None:
        self.names: list[Path] = []

    def create(self, path: Path) -> int:
        self.names.append(path)
        return super().create(path)


def test_s48_the_temporary_file_lies_beside_its_target_with_a_dot_name(machine: Machine) -> None:
    real = machine.home / "dotfiles" / "settings.json"
    write(real, "{}")
    machine.settings.parent.mkdir()
    machine.settings.symlink_to(real)
    disk = Watched()
    machine.disk = disk
    machine.apply(machine.desired())
    assert real.parent in {path.parent for path in disk.names}
    assert all(path.name.startswith(".tfx-") for path in disk.names)
    journal = next((machine.state / "journal").iterdir())
    assert all(path.name.removeprefix(".tfx-").startswith(journal.stem) for path in disk.names)


def test_s107_a_read_only_settings_file_is_left_and_the_snippet_is_given(
    machine: Machine,
) -> None:
    """Its directory would allow to replace it, but its mode says what the user wants."""
    content = write(machine.settings, "{}", 0o444)
    (outcome,) = machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS)).outcomes
    assert outcome.status is S.PARTIAL
    assert "read-only" in outcome.reason
    assert json.loads(outcome.snippet or "") == {"mcpServers": {"tfx-hub": STDIO}}
    assert machine.settings.read_bytes() == content
    machine.settings.chmod(0o644)
    (outcome,) = machine.apply(Desired((), (machine.json_entry(STDIO),), AGENTS)).outcomes
    assert outcome.status is S.CHANGED


def test_s59_each_edit_of_a_shared_file_is_backed_up(machine: Machine) -> None:
    write(machine.settings, '{"v": 0}')
    seen = set()
    for version in "12":
        seen.add(machine.settings.read_bytes())
        report = machine.apply(Desired((), (machine.json_entry({"command": version}),), AGENTS))
        backup = one(report, machine.settings).backup
        assert backup is not None
        assert backup.read_bytes() in seen
        assert os.fspath(backup).startswith(os.fspath(machine.state / "backup"))
    assert seen <= machine.backups()


def test_s92_a_new_file_on_another_device_than_it_seems_is_made(machine: Machine) -> None:
    machine.disk = NoRename(18)
    assert machine.apply(machine.desired()).count(S.CHANGED) == 6
