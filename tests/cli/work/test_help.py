"""The help of `tfx task` and `tfx lease`: complete, short lines, and examples that work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.architecture.test_startup import HEAVY, modules_after
from tests.support import tfx
from tfx.cli.work.commands import EXAMPLES
from tfx.hub.operations_work import WORK_ROWS

COMMANDS = {
    "work_add": "task add",
    "work_list": "task list",
    "work_show": "task show",
    "work_next": "task next",
    "work_update": "task update",
    "work_attach": "task attach",
    "work_delete": "task delete",
    "work_claim": "lease claim",
    "work_renew": "lease renew",
    "work_release": "lease release",
    "work_handoff": "lease handoff",
    "work_status": "lease status",
    "work_beat": "lease beat",
    "work_force_release": "lease force-release",
    "work_review_claim": "lease review claim",
    "work_review_release": "lease review release",
    "work_lock": "lease lock",
    "work_unlock": "lease unlock",
}


def test_every_operation_about_work_has_its_command() -> None:
    assert set(COMMANDS) == {row.name for row in WORK_ROWS}
    assert {*COMMANDS.values(), "task board"} == set(EXAMPLES)


@pytest.mark.parametrize("command", ["task", "lease", "lease review", *EXAMPLES])
def test_the_help_fits_its_lines(home: Path, command: str) -> None:
    ran = tfx(home, *command.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line]
    assert max(map(len, lines)) <= 80
    assert not re.search(r"<(str|int|float|text)", ran.out), "each value has a name"


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_help_teaches_with_an_example_that_uses_known_options(home: Path, command: str) -> None:
    text = " ".join(tfx(home, *command.split(), "--help").out.split())
    assert f"Example: {EXAMPLES[command]}" in text
    words = shlex.split(EXAMPLES[command])
    assert " ".join(words[1:]).startswith(command)
    known = set(re.findall(r"--[a-z][a-z-]*", text.partition("Example:")[0]))
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("command", EXAMPLES)
def test_h_7_without_a_hub_each_example_exits_4_with_the_way_out(home: Path, command: str) -> None:
    words = shlex.split(EXAMPLES[command])[1:]
    ran = tfx(home, *(word for word in words if word != "--watch"), "--json")
    assert ran.code == 4, ran.out
    assert ran.document["command"] == command
    [problem] = ran.document["problems"]
    assert (problem["code"], problem["hint"]) == ("hub-not-running", "tfx hub start")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("arguments", [("task", "--help"), ("lease", "review", "claim", "--help")])
def test_the_help_imports_no_feature(arguments: tuple[str, ...]) -> None:
    loaded = modules_after(*arguments)
    assert not loaded & set(HEAVY)
    assert not {name for name in loaded if name.startswith("tfx.hub")}


@pytest.mark.parametrize("words", [("task", "bogus"), ("lease", "bogus"), ("lease", "review", "x")])
def test_h_7_no_unknown_sub_command_exits_0(home: Path, words: tuple[str, ...]) -> None:
    assert tfx(home, *words).code == 2
