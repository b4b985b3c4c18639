"""Entries of shared files: ownership by key path and by recorded value (S-54 … S-64)."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

from tests.plan.machine import AGENTS, KEEP_MINE, RESTORE, TAKE_NEW, Machine, value, write
from tfx.errors import JsonValue
from tfx.plan.actions import Desired, Format, OutcomeStatus, Reason, WantedEntry
from tfx.plan.manifest import load

S = OutcomeStatus
THEIRS: JsonValue = {"hooks": [{"type": "command", "command": "tfx lookalike"}]}


def want(*entries: WantedEntry) -> Desired:
    return Desired((), entries, AGENTS)


def hook_value(version: str) -> JsonValue:
    return {"hooks": [{"type": "command", "command": "/x/tfx", "v": version}]}


def test_s88_remove_takes_the_exact_recorded_element_only(machine: Machine) -> None:
    write(machine.settings, json.dumps({"hooks": {"SessionStart": [THEIRS]}}))
    machine.apply(want(machine.hook(hook_value("1"))))
    assert value(machine.settings)["hooks"]["SessionStart"] == [THEIRS, hook_value("1")]
    document = value(machine.settings)
    document["hooks"]["SessionStart"].append({"later": "one"})
    machine.settings.write_text(json.dumps(document))
    machine.remove()
    assert value(machine.settings)["hooks"]["SessionStart"] == [THEIRS, {"later": "one"}]


def test_s89_other_elements_keep_their_value_and_order(machine: Machine) -> None:
    write(machine.settings, json.dumps({"hooks": {"SessionStart": [1, THEIRS, 2]}}))
    machine.apply(want(machine.hook(hook_value("1"))))
    machine.apply(want(machine.hook(hook_value("2"))))
    assert value(machine.settings)["hooks"]["SessionStart"] == [1, THEIRS, 2, hook_value("2")]


def test_two_elements_of_one_array_are_told_apart_by_their_asset(machine: Machine) -> None:
    one, two = machine.hook(hook_value("1"), "one"), machine.hook(hook_value("2"), "two")
    machine.apply(want(one, two))
    machine.apply(want(replace(one, value=hook_value("3")), two))
    assert value(machine.settings)["hooks"]["SessionStart"] == [hook_value("2"), hook_value("3")]
    machine.apply(want(two))
    assert value(machine.settings)["hooks"]["SessionStart"] == [hook_value("2")]
    machine.remove()
    assert not machine.settings.exists()


def test_a_deleted_element_stays_away_until_restore(machine: Machine) -> None:
    machine.apply(want(machine.hook(hook_value("1"))))
    write(machine.settings, "{}")
    (outcome,) = machine.apply(want(machine.hook(hook_value("2")))).outcomes
    assert (outcome.status, outcome.action.reason) == (S.CONFLICT, Reason.DELETED)
    machine.apply(want(machine.hook(hook_value("2"))), KEEP_MINE)
    assert machine.plan(want(machine.hook(hook_value("2")))).actions == ()
    assert value(machine.settings) == {}
    machine.apply(want(machine.hook(hook_value("2"))), RESTORE)
    assert value(machine.settings)["hooks"]["SessionStart"] == [hook_value("2")]


def test_s56_parents_go_only_when_we_made_them_and_they_are_empty(machine: Machine) -> None:
    write(machine.settings, '{"mcpServers": {}}')
    machine.apply(want(machine.json_entry({"command": "x"}), machine.hook(hook_value("1"))))
    document = value(machine.settings)
    document["x"] = 1
    machine.settings.write_text(json.dumps(document))
    machine.remove()
    assert value(machine.settings) == {"mcpServers": {}, "x": 1}


def test_s56_a_parent_that_others_use_meanwhile_stays(machine: Machine) -> None:
    machine.apply(want(machine.json_entry({"command": "x"})))
    document = value(machine.settings)
    document["mcpServers"]["other"] = {"command": "y"}
    machine.settings.write_text(json.dumps(document))
    machine.remove()
    assert value(machine.settings) == {"mcpServers": {"other": {"command": "y"}}}


def test_s56_a_parent_of_two_entries_goes_with_the_last_of_them(machine: Machine) -> None:
    write(machine.settings, '{"x": 1}')
    other = replace(machine.json_entry({"b": 1}), key=("mcpServers", "two"), agent="codex")
    machine.apply(want(machine.json_entry({"a": 1}), other))
    write(machine.settings, machine.settings.read_text() + "\n")
    machine.remove(frozenset({"claude"}))
    assert value(machine.settings) == {"x": 1, "mcpServers": {"two": {"b": 1}}}
    machine.remove()
    assert value(machine.settings) == {"x": 1}


def test_s56_a_leaf_that_is_no_longer_wanted_goes_with_its_container(machine: Machine) -> None:
    machine.apply(want(machine.json_entry({"command": "x", "env": {"A": "1", "B": "2"}})))
    document = value(machine.settings)
    document["mcpServers"]["tfx-hub"]["env"]["THEIRS"] = "3"
    machine.settings.write_text(json.dumps(document))
    machine.apply(want(machine.json_entry({"command": "y"})))
    assert value(machine.settings)["mcpServers"]["tfx-hub"] == {
        "command": "y",
        "env": {"THEIRS": "3"},
    }
    machine.remove()
    assert not machine.settings.exists() or value(machine.settings) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": {"b": 1}}, {"a": 2}),
        ({"a": 2}, {"a": {"b": 1}}),
        ("text", {"a": 1}),
        ({"a": 1}, "text"),
        ({"a": {"b": {"c": 1}}, "d": 1}, {"d": 1}),
        ({"a": [1, 2]}, {"a": [2]}),
        ({"a": {}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}),
        ({}, {"a": 1}),
        (1, True),
        (None, 0),
    ],
)
def test_any_value_can_follow_any_other(machine: Machine, old: JsonValue, new: JsonValue) -> None:
    write(machine.settings, '{"x": 1}')
    machine.apply(want(machine.json_entry(old)))
    assert machine.plan(want(machine.json_entry(old))).actions == ()
    report = machine.apply(want(machine.json_entry(new)))
    assert report.count(S.CHANGED) == 1, report
    assert value(machine.settings) == {"x": 1, "mcpServers": {"tfx-hub": new}}
    assert machine.plan(want(machine.json_entry(new))).actions == ()
    machine.remove()
    assert machine.settings.read_text() == '{"x": 1}'


def test_s80_a_client_that_writes_the_same_again_in_other_bytes_is_no_drift(
    machine: Machine,
) -> None:
    write(machine.codex, "# mine\nmodel = 'x'\n")
    entry = machine.toml_entry({"command": "tfx", "args": ["hub"], "env": {"A": "1"}})
    machine.apply(want(entry))
    machine.codex.write_text(
        'model = "x"\r\n\r\n[mcp_servers]\r\ntfx-hub = { args = ["hub"], env = { A = "1" }, '
        'command = "tfx" }\r\n'
    )
    assert machine.plan(want(entry)).actions == ()
    machine.apply(want(machine.toml_entry({"command": "tfx2", "args": ["hub"], "env": {"A": "1"}})))
    parsed = tomllib.loads(machine.codex.read_text())
    assert parsed["mcp_servers"]["tfx-hub"]["command"] == "tfx2"
    machine.remove()
    assert tomllib.loads(machine.codex.read_text()) in (
        {"model": "x"},
        {"model": "x", "mcp_servers": {}},
    )


def test_an_identical_entry_is_adopted_without_a_write(machine: Machine) -> None:
    content = write(machine.settings, '{"mcpServers": {"tfx-hub": {"command": "x"}}}')
    (outcome,) = machine.apply(want(machine.json_entry({"command": "x"}))).outcomes
    assert outcome.status is S.UNCHANGED
    assert machine.settings.read_bytes() == content
    (record,) = load(machine.state / "manifest.json").entries.values()
    assert record.value_sha256


def test_s5_remove_after_take_new_gives_back_the_very_bytes(machine: Machine) -> None:
    content = write(machine.settings, '{"mcpServers":{ "tfx-hub" :{"url"  :"mine"} }}')
    machine.apply(want(machine.json_entry({"command": "x"})), TAKE_NEW)
    machine.apply(want(machine.json_entry({"command": "y"})))
    machine.remove()
    assert machine.settings.read_bytes() == content


def test_s5_a_file_that_tfx_made_goes_when_nothing_else_is_in_it(machine: Machine) -> None:
    entries = (
        machine.json_entry({"command": "x"}),
        machine.toml_entry({"command": "x"}),
        replace(machine.json_entry({"a": 1}), file=machine.home / "x.jsonc", format=Format.JSONC),
    )
    machine.apply(want(*entries))
    assert len([path for path in machine.home.rglob("*") if path.is_file()]) == 3
    machine.remove()
    assert machine.contents() == {}


def test_s5_a_file_that_tfx_made_stays_when_somebody_added_a_comment(machine: Machine) -> None:
    entry = replace(machine.json_entry({"a": 1}), format=Format.JSONC)
    machine.apply(want(entry))
    machine.settings.write_text("// mine\n" + machine.settings.read_text())
    machine.remove()
    assert machine.settings.read_text().startswith("// mine\n{")
    assert "tfx-hub" not in machine.settings.read_text()


def test_s95_bom_and_crlf_stay(machine: Machine) -> None:
    content = write(machine.settings, b'\xef\xbb\xbf{\r\n\t"a": 1\r\n}\r\n')
    machine.apply(want(machine.json_entry({"command": "x"})))
    after = machine.settings.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf{\r\n\t")
    assert b"\n" not in after.replace(b"\r\n", b"")
    machine.remove()
    assert machine.settings.read_bytes() == content


def test_s49_a_shared_file_keeps_its_mode(machine: Machine) -> None:
    write(machine.settings, "{}", 0o604)
    machine.apply(want(machine.json_entry({"command": "x"}, secret=True)))
    assert machine.settings.stat().st_mode & 0o777 == 0o604
