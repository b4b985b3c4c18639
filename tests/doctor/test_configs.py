"""`settings.json`, `skills`: the agents' own files, only looked at."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.world import PROFILES, Clinic, commands, texts
from tfx.doctor.model import Status

SETTINGS = ".claude/settings.json"


def hooks(*elements: object, event: str = "PreToolUse") -> str:
    return json.dumps({"hooks": {event: list(elements)}})


def hook(command: str, *args: str) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "command", "command": command}
    if args:
        inner["args"] = list(args)
    return {"matcher": "*", "hooks": [inner]}


@pytest.fixture
def claude(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path, "claude").everywhere()


@pytest.mark.parametrize(
    ("text", "place"),
    [('{\n  "a": 1,\n}', ":3:1"), ('{"a": 1', ":1:"), ('{\n "a" 1}', ":2:6")],
)
def test_d104_d124_d165_a_broken_file_fails_with_line_and_column(
    claude: Clinic, text: str, place: str
) -> None:
    claude.write(SETTINGS, text)
    found = claude.rows("settings.json")[f"~/{SETTINGS}"]
    assert found.status is Status.FAIL
    assert f"{SETTINGS}{place}" in texts(found)
    assert "ignores the whole file" in texts(found)
    assert isinstance(found.details["line"], int)
    assert (claude.home / SETTINGS).read_text() == text


def test_d174_the_settings_of_a_shells_own_variable_are_looked_at(clinic: Clinic) -> None:
    clinic.write("cc/settings.json", "{ broken")
    with (clinic.home / ".bash_profile").open("a") as file:
        file.write("export CLAUDE_CONFIG_DIR=$HOME/cc CANARY=canary-4711\n")
    looked = clinic.look("settings.json").data
    found = {row.target: row for row in looked.rows}
    moved = found["claude CLAUDE_CONFIG_DIR"]
    assert moved.status is Status.WARN
    assert moved.summary.startswith("is ~/cc in bash -lc")
    assert commands(moved) == ["export CLAUDE_CONFIG_DIR=~/cc"]
    assert found["~/cc/settings.json"].status is Status.FAIL
    assert "canary" not in repr(looked)

    clinic.env["CLAUDE_CONFIG_DIR"] = str(clinic.home / "cc")
    for name in PROFILES:
        with (clinic.home / name).open("a") as file:
            file.write("export CLAUDE_CONFIG_DIR=$HOME/cc\n")
    assert "claude CLAUDE_CONFIG_DIR" not in clinic.rows("settings.json")
    clinic.env["CLAUDE_CONFIG_DIR"] = str(clinic.home / "other")
    assert clinic.rows("settings.json")["claude CLAUDE_CONFIG_DIR"].status is Status.WARN
    clinic.everywhere()
    assert clinic.rows("settings.json")["claude CLAUDE_CONFIG_DIR"].status is Status.INFO


def test_d104_each_agents_file_is_read_in_its_own_dialect(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "codex", "gemini").everywhere()
    clinic.write(".codex/config.toml", "model = 'x'\nbroken\n")
    clinic.write(".gemini/settings.json", '{ // note\n "a": 1, }')
    rows = clinic.rows("settings.json")
    assert rows["~/.codex/config.toml"].status is Status.FAIL
    assert rows["~/.codex/config.toml"].details["line"] == 2
    assert rows["~/.gemini/settings.json"].status is Status.OK


def test_d104_a_duplicate_key_is_told(claude: Clinic) -> None:
    claude.write(SETTINGS, '{\n "x": {"model": "a", "model": "b"}}')
    found = claude.rows("settings.json")[f"~/{SETTINGS}:2:7"]
    assert found.status is Status.WARN
    assert "twice" in found.summary


def test_d104_a_bom_is_mentioned(claude: Clinic) -> None:
    claude.write(SETTINGS, b"\xef\xbb\xbf{}")
    assert "byte order mark" in claude.rows("settings.json")[f"~/{SETTINGS}"].summary


@pytest.mark.parametrize(
    "element",
    [
        hook("/no/such/script.sh"),
        hook("python3 /no/such/script.py"),
        hook("/usr/bin/python3", "-I", "/no/such/script.py"),
        hook("~/gone.sh --x"),
        hook("no-such-program --x"),
    ],
)
def test_d104_d164_d180_a_hook_to_a_missing_file_fails(claude: Clinic, element: object) -> None:
    claude.write(SETTINGS, hooks(element))
    rows = claude.rows("settings.json")
    found = rows[f"~/{SETTINGS}:hooks.PreToolUse[0].hooks[0]"]
    assert found.status is Status.FAIL
    assert "block every tool call" in texts(found)


def test_d164_a_hook_without_its_exec_bit_or_interpreter_fails(claude: Clinic) -> None:
    claude.write("plain.sh", "#!/bin/sh\n", 0o644)
    claude.write("lost.sh", "#!/no/such/sh\n", 0o755)
    claude.write(SETTINGS, hooks(hook("~/plain.sh"), hook("~/lost.sh")))
    rows = claude.rows("settings.json")
    told = [texts(row) for row in rows.values() if row.status is Status.FAIL]
    assert any("cannot be run" in text for text in told)
    assert any("without its interpreter" in text for text in told)


@pytest.mark.parametrize(
    "element",
    [
        hook("/bin/echo hi"),
        hook("test -f /no/such || echo fine"),
        hook("jq -r .x | sh"),
        {"matcher": "*", "hooks": [{"type": "prompt", "prompt": "x"}]},
        hook("touch /tmp/no-such/new.flag"),
        hook("mkdir -p /no/such/dir"),
        hook("FOO=1 /bin/true"),
        hook("FOO=1 no-such-program"),
        hook("exit 0"),
        hook("test -f /no/such"),
        hook("[ -d /no/such ]"),
        hook("source /no/such"),
        hook(". ~/.no-such"),
        hook("grep -q /nothing/ README.md"),
        hook("curl -s http://x /p*"),
        hook("sh -c true /no/such"),
        hook("python3 -m json.tool /no/such"),
        hook("sh ./relative.sh /no/such"),
        hook("./relative.sh"),
        hook("$TOOL /no/such"),
        hook("/no/such/*/x"),
        hook("echo a\n/no/such"),
        hook("cat < /no/such"),
        hook("/no/such & true"),
        hook("only-of-the-agent --x"),
        {"hooks": [{"type": "command", "command": "/bin/echo", "args": ["/no/such", "a;b"]}]},
    ],
)
def test_d164_a_hook_that_works_or_that_only_a_shell_can_judge_is_fine(
    claude: Clinic, element: object
) -> None:
    tool = claude.bin / "only-of-the-agent"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    claude.env["PATH"] = "/usr/bin:/bin"
    claude.write(SETTINGS, hooks(element))
    assert claude.rows("settings.json")[f"~/{SETTINGS}"].status is Status.OK


@pytest.mark.parametrize(
    ("element", "word"),
    [
        (hook("sh /no/such.sh --x"), "/no/such.sh"),
        (hook("python3 -u ~/gone.py"), "gone.py"),
        (hook("no-such-program --x"), "no-such-program"),
        (hook('/no/such "$CLAUDE_PROJECT_DIR"'), "/no/such"),
        ({"hooks": [{"type": "command", "command": "exit", "args": ["0"]}]}, "exit"),
    ],
)
def test_d164_the_first_word_and_the_script_of_an_interpreter_are_judged(
    claude: Clinic, element: object, word: str
) -> None:
    claude.write(SETTINGS, hooks(element))
    found = claude.rows("settings.json")[f"~/{SETTINGS}:hooks.PreToolUse[0].hooks[0]"]
    assert (found.status, word in texts(found)) == (Status.FAIL, True)


def test_d104_a_program_is_sought_where_the_agent_is_started(claude: Clinic) -> None:
    claude.write(SETTINGS, hooks(hook("only-of-tfx")))
    tool = claude.write("tools/only-of-tfx", "#!/bin/sh\n", 0o755)
    claude.env["PATH"] = f"{tool.parent}:{claude.env['PATH']}"
    found = claude.rows("settings.json")[f"~/{SETTINGS}:hooks.PreToolUse[0].hooks[0]"]
    assert (found.status, "PATH" in found.summary) == (Status.FAIL, True)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"hooks": ["x"]}, "hooks"),
        ({"hooks": {"PreToolUse": "x"}}, "hooks.PreToolUse"),
        ({"hooks": {"PreToolUse": ["x"]}}, "hooks.PreToolUse[0]"),
        ({"hooks": {"PreToolUse": [{"hooks": "x"}]}}, "hooks.PreToolUse[0].hooks"),
        ({"hooks": {"PreToolUse": [{"hooks": ["x"]}]}}, "hooks.PreToolUse[0].hooks[0]"),
        (
            {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": 1}]}]}},
            "hooks.PreToolUse[0].hooks[0].command",
        ),
    ],
)
def test_d104_hooks_of_another_shape_than_the_client_reads_are_told(
    claude: Clinic, document: object, place: str
) -> None:
    claude.write(SETTINGS, json.dumps(document))
    rows = claude.rows("settings.json")
    assert rows[f"~/{SETTINGS}:{place}"].status is Status.WARN
    assert len(rows) == 1


@pytest.mark.parametrize("text", ["[1]", '"x"', "null", "7"])
def test_d104_a_settings_file_that_is_no_object_fails(claude: Clinic, text: str) -> None:
    claude.write(SETTINGS, text)
    found = claude.rows("settings.json")[f"~/{SETTINGS}"]
    assert (found.status, "no object" in found.summary) == (Status.FAIL, True)


def test_d104_the_same_hook_twice_is_a_warning(claude: Clinic) -> None:
    claude.write(SETTINGS, hooks(hook("/bin/true"), hook("/bin/true")))
    found = claude.rows("settings.json")[f"~/{SETTINGS}:hooks.PreToolUse[1]"]
    assert found.status is Status.WARN
    assert "twice" in found.summary
    assert found.fix == {"class": "M"}


def test_d104_a_status_line_that_leads_nowhere_fails(claude: Clinic) -> None:
    claude.write(SETTINGS, json.dumps({"statusLine": {"type": "command", "command": "/no/x"}}))
    rows = claude.rows("settings.json")
    assert rows[f"~/{SETTINGS}:statusLine"].status is Status.FAIL


def test_d104_an_unknown_event_is_information(claude: Clinic) -> None:
    claude.write(SETTINGS, hooks(hook("/bin/true"), event="NoSuchEvent"))
    assert claude.rows("settings.json")[f"~/{SETTINGS}:hooks.NoSuchEvent"].status is Status.INFO


def test_d174_the_live_directory_is_resolved_by_the_hosts_own_rules(claude: Clinic) -> None:
    claude.write(SETTINGS, "{broken")
    other = claude.write("elsewhere/settings.json", "{}").parent
    claude.env["CLAUDE_CONFIG_DIR"] = str(other)
    rows = claude.rows("settings.json")
    assert set(rows) == {"~/elsewhere/settings.json", "claude CLAUDE_CONFIG_DIR"}
    assert rows["claude CLAUDE_CONFIG_DIR"].status is Status.INFO


# skills -----------------------------------------------------------------------------------


def test_s27_each_skill_once_is_ok(clinic: Clinic) -> None:
    rows = clinic.rows("skills")
    assert {target: row.status for target, row in rows.items()} == {
        "claude": Status.OK,
        "codex": Status.OK,
    }


def test_s101_one_skill_in_two_roots_is_a_warning(clinic: Clinic) -> None:
    clinic.write(".codex/skills/tfx-setup/SKILL.md", "x")
    found = clinic.rows("skills")["codex tfx-setup"]
    assert found.status is Status.WARN
    assert ".codex/skills" in found.summary


def test_s29_one_root_behind_two_names_is_one(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "codex").everywhere()
    clinic.write(".agents/skills/mine/SKILL.md", "x")
    (clinic.home / ".codex").mkdir()
    (clinic.home / ".codex/skills").symlink_to(clinic.home / ".agents/skills")
    assert clinic.rows("skills")["codex"].status is Status.OK


@pytest.mark.parametrize("name", ["mine.bak", ".hidden", "mine~"])
def test_s91_a_copy_in_a_root_is_a_second_skill(clinic: Clinic, name: str) -> None:
    clinic.write(f".claude/skills/{name}/SKILL.md", "x")
    found = clinic.rows("skills")[f"claude {name}"]
    assert found.status is Status.WARN
    assert commands(found)[0].startswith("mv ~/")
    done = subprocess.run(
        ["sh", "-c", commands(found)[0]], env={"HOME": str(clinic.home)}, check=True
    )
    assert done.returncode == 0
    assert (clinic.home / name / "SKILL.md").is_file()
