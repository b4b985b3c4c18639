"""`tfx setup` as a user runs it: real HOMEs, stand-ins for the agents on PATH."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Machine, Ran, listing, tfx

SKILL = ".claude/skills/tfx-setup/SKILL.md"
SCRIPT = ".claude/scripts/tfx-route.sh"
SETTINGS = ".claude/settings.json"
CLAUDE = ".claude.json"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "claude", "codex", "gemini")


def rows(ran: Ran, status: str) -> list[str]:
    return [row["target"] for row in ran.data["actions"] if row["status"] == status]


def test_empty_home_is_the_desired_state(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    ran = machine.setup()
    assert ran.code == 0, ran.err
    assert list(ran.data) == ["run", "mode", "agents", "actions", "counts", "notes"]
    assert ran.data["counts"]["changed"] == 0
    assert list(machine.home.iterdir()) == []


def test_s4_second_run_writes_nothing(machine: Machine) -> None:
    first = machine.setup()
    assert first.code == 0, first.err
    assert first.data["counts"]["changed"] > 0
    before = listing(machine.home)
    again = machine.setup()
    assert again.code == 0
    assert again.data["counts"]["changed"] == 0
    assert again.data["run"] is None
    assert listing(machine.home) == before


@pytest.mark.parametrize("name", ["python", "python3"])
def test_s4_entries_are_the_same_however_tfx_is_started(machine: Machine, name: str) -> None:
    machine.setup()
    interpreter = Path(sys.executable).parent / name
    again = tfx(
        machine.home,
        "setup",
        "--check",
        "--json",
        env=machine.env,
        command=(str(interpreter), "-m", "tfx"),
    )
    assert again.code == 0, again.out


def test_first_run_installs_scripts_and_one_copy_of_each_skill(machine: Machine) -> None:
    machine.setup()
    assert (machine.home / SCRIPT).stat().st_mode & 0o777 == 0o755
    assert (machine.home / SKILL).is_file()
    assert (machine.home / ".agents/skills/tfx-setup/SKILL.md").is_file()
    for twice in (".codex/skills", ".gemini/skills", ".copilot"):
        assert not (machine.home / twice).exists()
    assert b"@TFX@" not in (machine.home / SKILL).read_bytes()


@pytest.mark.parametrize("path", [SKILL, SCRIPT, ".agents/skills/tfx-doctor/SKILL.md"])
def test_check_fails_after_an_asset_is_edited(machine: Machine, path: str) -> None:
    machine.setup()
    assert machine.setup("--check").code == 0
    with (machine.home / path).open("ab") as file:
        file.write(b"mine\n")
    ran = machine.setup("--check")
    assert ran.code == 1
    assert [Path(name).name for name in rows(ran, "conflict")] == [Path(path).name]


@pytest.mark.parametrize("option", ["--dry-run", "--check"])
def test_s3_preview_creates_nothing(machine: Machine, option: str) -> None:
    machine.write(SETTINGS, '{"a": 1}')
    before = listing(machine.home)
    ran = machine.setup(option, "--mcp-transport", "http")
    assert ran.code == (0 if option == "--dry-run" else 1)
    assert ran.data["counts"]["pending"] > 0
    assert ran.data["counts"]["changed"] == 0
    assert listing(machine.home) == before


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_s5_remove_leaves_the_home_as_it_was(machine: Machine, transport: str) -> None:
    machine.write(CLAUDE, '{\r\n\t"numStartups": 3 \r\n}')
    machine.write(".codex/config.toml", '# mine\nmodel = "x" # why\n')
    machine.write(".gemini/settings.json", '{ // note\n "theme": "가", }\n')
    before = machine.users_files()
    done = machine.setup("--mcp-transport", transport)
    assert done.code == 0, done.err
    assert "tfx-hub" in (machine.home / CLAUDE).read_text("utf-8")
    assert machine.setup("--mcp-transport", transport).data["counts"]["changed"] == 0
    assert machine.setup("--remove").code == 0
    assert machine.users_files() == before
    leftover = {path.name for path in machine.home.iterdir()}
    assert leftover == {".claude.json", ".codex", ".gemini", ".local"}


def test_users_edit_is_kept_until_he_says_otherwise(machine: Machine) -> None:
    machine.setup()
    skill = machine.home / SKILL
    skill.write_bytes(b"my own words\n")
    ran = machine.setup()
    assert (ran.code, ran.document["status"]) == (1, "conflict")
    assert skill.read_bytes() == b"my own words\n"
    assert "--take-new" in ran.out
    kept = machine.setup("--keep-mine")
    assert kept.code == 0, kept.out
    assert machine.setup().code == 0
    assert machine.setup("--check").code == 0
    assert skill.read_bytes() == b"my own words\n"


def test_take_new_backs_up_and_undo_gives_back(machine: Machine) -> None:
    machine.setup()
    skill = machine.home / SKILL
    skill.write_bytes(b"my own words\n")
    skill.chmod(0o600)
    ran = machine.setup("--take-new")
    assert ran.code == 0, ran.out
    assert skill.read_bytes() != b"my own words\n"
    backups = (machine.home / ".local/state/tfx/setup/backup" / ran.data["run"]).rglob("*")
    assert b"my own words\n" in [path.read_bytes() for path in backups if path.is_file()]
    assert machine.setup("--undo", ran.data["run"]).code == 0
    assert skill.read_bytes() == b"my own words\n"
    assert skill.stat().st_mode & 0o777 == 0o600


def test_s97_users_skill_of_our_name_is_a_conflict(machine: Machine) -> None:
    machine.write(SKILL, "mine")
    machine.write(".claude/skills/tfx-setup/notes.txt", "mine too")
    ran = machine.setup()
    assert ran.code == 1
    assert len(rows(ran, "conflict")) == 1
    assert (machine.home / SKILL).read_text() == "mine"
    machine.setup("--remove")
    assert (machine.home / SKILL).read_text() == "mine"
    assert (machine.home / ".claude/skills/tfx-setup/notes.txt").read_text() == "mine too"


def test_s34_users_file_beside_ours_survives_remove(machine: Machine) -> None:
    machine.setup()
    machine.write(".claude/skills/tfx-setup/notes.txt", "mine")
    assert machine.setup("--remove").code == 0
    assert not (machine.home / SKILL).exists()
    assert (machine.home / ".claude/skills/tfx-setup/notes.txt").read_text() == "mine"


def test_s9_users_status_line_is_kept_as_a_conflict(machine: Machine) -> None:
    text = '{"statusLine": {"type": "command", "command": "mine"}}'
    machine.write(SETTINGS, text)
    ran = machine.setup()
    assert ran.code == 1
    assert any("statusLine" in name for name in rows(ran, "conflict"))
    settings = json.loads((machine.home / SETTINGS).read_bytes())
    assert settings["statusLine"] == {"type": "command", "command": "mine"}
    assert machine.setup("--keep-mine").code == 0
    assert machine.setup().code == 0


def test_k14_files_of_triflux_get_a_message_of_their_own(machine: Machine) -> None:
    machine.write(SCRIPT, "#!/usr/bin/env bash\n# tfx-route.sh v2.0 (triflux)\n", 0o755)
    hud = "node ~/.claude/hud/hud-qos-status.mjs"
    machine.write(SETTINGS, json.dumps({"statusLine": {"type": "command", "command": hud}}))
    ran = machine.setup()
    assert ran.code == 1
    told = [row for row in ran.data["actions"] if row["status"] == "conflict"]
    assert len(told) == 2
    assert all("triflux" in row["reason"] for row in told), told
    assert machine.setup("--take-new").code == 0
    assert machine.setup().code == 0
    assert machine.setup("--remove").code == 0
    assert b"triflux" in (machine.home / SCRIPT).read_bytes()
    assert hud in (machine.home / SETTINGS).read_text("utf-8")


def test_k12_what_the_user_deleted_stays_away_until_restore(machine: Machine) -> None:
    machine.setup()
    (machine.home / SCRIPT).unlink()
    ran = machine.setup()
    assert ran.code == 1
    assert not (machine.home / SCRIPT).exists()
    assert "--restore" in ran.out
    assert machine.setup("--restore").code == 0
    assert (machine.home / SCRIPT).is_file()


def test_k13_absent_agent_is_left_as_it_is(machine: Machine) -> None:
    machine.setup()
    (machine.bin / "claude").unlink()
    assert machine.setup("--agent", "codex").code == 0
    assert (machine.home / ".agents/skills/tfx-setup/SKILL.md").is_file()
    assert (machine.home / SKILL).is_file()


def test_new_settings_file_is_tidy(machine: Machine) -> None:
    machine.setup("--mcp-transport", "stdio")
    text = (machine.home / CLAUDE).read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_named_agents(machine: Machine) -> None:
    ran = machine.setup("--agent", "codex")
    assert ran.code == 0
    assert not (machine.home / ".claude").exists()
    assert machine.setup("--agent", "opencode").code == 4
    unknown = machine.setup("--agent", "claud")
    assert unknown.code == 2
    assert "claude" in unknown.out


@pytest.mark.parametrize(
    "options",
    [
        ("--remove", "--undo", "x"),
        ("--remove", "--runs"),
        ("--remove", "--restore"),
        ("--undo", "x", "--runs"),
        ("--undo", "x", "--restore"),
        ("--runs", "--restore"),
        ("--dry-run", "--check"),
        ("--take-new", "--keep-mine"),
        ("--take-new", "--remove"),
        ("--keep-mine", "--undo", "x"),
        ("--take-new", "--runs"),
        ("--keep-mine", "--check"),
        ("--keep-mine", "--restore"),
        ("--purge",),
        ("--mcp-transport", "carrier-pigeon"),
    ],
)
def test_s8_contradictions_are_usage_errors(machine: Machine, options: tuple[str, ...]) -> None:
    before = listing(machine.home)
    assert machine.setup(*options).code == 2
    assert listing(machine.home) == before


def test_runs_are_listed_newest_first_and_undone(machine: Machine) -> None:
    first = machine.setup().data["run"]
    second = machine.setup("--mcp-transport", "http").data["run"]
    listed = machine.setup("--runs").data["runs"]
    assert [run["run"] for run in listed] == [second, first]
    assert machine.setup("--undo", second).code == 0
    assert b"Bearer" not in (machine.home / CLAUDE).read_bytes()
    assert (machine.home / SKILL).is_file()
    assert machine.setup("--undo", "no-such-run").code == 1


def test_preview_of_a_removal_exits_as_the_removal_would(machine: Machine) -> None:
    machine.setup()
    (machine.home / SKILL).write_text("edited")
    preview, done = machine.setup("--remove", "--dry-run"), machine.setup("--remove")
    assert (preview.code, done.code) == (1, 1)
    assert rows(preview, "conflict") == rows(done, "conflict")
    assert (machine.home / SKILL).read_text() == "edited"


def test_k6_purge_lists_first_and_needs_a_yes(machine: Machine) -> None:
    machine.setup("--mcp-transport", "http")
    token = machine.home / ".local/state/tfx/hub/token"
    asked = machine.tfx("setup", "--remove", "--purge")
    assert asked.code == 1
    assert "tfx setup --remove --purge --yes" in asked.err
    assert "pending, 0 as they should be" in asked.out
    assert token.is_file()
    preview = machine.setup("--remove", "--purge", "--dry-run")
    assert str(token) in rows(preview, "pending")
    assert token.is_file()
    done = machine.setup("--remove", "--purge", "--yes")
    assert done.code == 0, done.out
    assert not token.parent.exists()
    assert machine.users_files() == {}


def test_k6_purge_says_what_stays_and_what_does_not_come_back(machine: Machine) -> None:
    machine.setup("--mcp-transport", "http")
    assert machine.tfx("hub", "start", "--json", TFX_HUB_PORT="0").code == 0
    assert machine.tfx("backup", "create").code == 0
    said = machine.tfx("setup", "--remove", "--purge", "--yes").out
    assert "the backups of the hub's database stay: ~/.local/share/tfx/backups" in said
    assert "; what was purged does not come back" in said
    assert len(list((machine.home / ".local/share/tfx/backups").iterdir())) == 1


def test_no_agent_is_a_remark_of_setup_and_not_of_a_removal(tmp_path: Path) -> None:
    bare = Machine(tmp_path)
    assert "no agent CLI was found on PATH" in bare.tfx("setup").out
    assert "no agent CLI" not in bare.tfx("setup", "--remove").out


def test_k6_purge_stops_the_hub_first(machine: Machine) -> None:
    assert machine.tfx("hub", "start", "--json", TFX_HUB_PORT="0").code == 0
    done = machine.setup("--remove", "--purge", "--yes")
    assert done.code == 0, done.out
    assert "hub" in rows(done, "changed")
    assert machine.tfx("hub", "status").code == 4
    assert not (machine.home / ".local/state/tfx/hub").exists()


def test_list_tells_the_state_of_each_skill(machine: Machine) -> None:
    machine.setup()
    machine.write(".claude/skills/own/SKILL.md", "mine")
    (machine.home / SKILL).write_text("edited")
    (machine.home / ".agents/skills/tfx-doctor/SKILL.md").unlink()
    listed = machine.tfx("list", "--json").data["roots"]
    states = {(r["root"], s["name"]): s["state"] for r in listed for s in r["skills"]}
    assert states["~/.claude/skills", "own"] == "foreign"
    assert states["~/.claude/skills", "tfx-setup"] == "modified"
    assert states["~/.claude/skills", "tfx-doctor"] == "installed"
    assert states["~/.agents/skills", "tfx-doctor"] == "deleted"
    assert machine.tfx("list").code == 0


def test_version_names_every_part(machine: Machine) -> None:
    before = machine.tfx("version", "--json").data["assets"]
    changed = machine.setup().data["counts"]["changed"]
    assert before == {"installed": 0, "pending": changed, "conflicts": 0}
    data = machine.tfx("version", "--json").data
    assert data["assets"] == {"installed": changed, "pending": 0, "conflicts": 0}
    assert {row["name"]: row["version"] for row in data["agents"]} == {
        "claude": "2.1.332",
        "codex": "0.171.0",
        "gemini": "0.61.0",
    }


def test_s36_merge_of_an_edited_file_that_was_renewed_is_offered(machine: Machine) -> None:
    machine.setup()
    script = machine.home / SCRIPT
    manifest = machine.home / ".local/state/tfx/setup/manifest.json"
    older = b"#!/bin/sh\n# an older version\n"
    sha256 = hashlib.sha256(older).hexdigest()
    (machine.home / ".local/state/tfx/setup/base" / sha256).write_bytes(older)
    document = json.loads(manifest.read_bytes())
    record = next(row for row in document["files"] if row["path"] == Path(SCRIPT).name)
    record["sha256"] = sha256
    manifest.write_text(json.dumps(document), "utf-8")
    script.write_bytes(older + b"# mine\n")
    for option in ([], ["--check"]):
        row = next(r for r in machine.setup(*option).data["actions"] if r["status"] == "conflict")
        words = shlex.split(row["detail"]["merge"])
        done = subprocess.run(words, capture_output=True, check=False)
        assert done.returncode in {0, 1}
        assert b"# mine" in done.stdout
        assert f"merge: {row['detail']['merge']}" in machine.tfx("setup", *option).out.replace(
            "~", str(machine.home)
        )
    assert script.read_bytes() == older + b"# mine\n"


def test_k20_plain_setup_writes_the_bridge_and_keeps_the_form_that_is_recorded(
    machine: Machine,
) -> None:
    assert machine.setup().code == 0
    entry = json.loads((machine.home / CLAUDE).read_bytes())["mcpServers"]["tfx-hub"]
    assert entry["type"] == "stdio"
    assert entry["args"][-2:] == ["hub", "bridge"]
    assert Path(entry["command"]).is_absolute()
    assert machine.setup("--agent", "claude", "--mcp-transport", "http").code == 0
    again = machine.setup()
    assert (again.code, again.data["counts"]["changed"]) == (0, 0)
    assert machine.setup("--check").code == 0
    entry = json.loads((machine.home / CLAUDE).read_bytes())["mcpServers"]["tfx-hub"]
    assert entry["type"] == "http"
    assert b"Bearer" not in (machine.home / ".gemini/settings.json").read_bytes()
    assert machine.setup("--mcp-transport", "stdio").code == 0
    assert b"Bearer" not in (machine.home / CLAUDE).read_bytes()


def test_h70_k17_hooks_are_registered_for_claude_only_and_removed(machine: Machine) -> None:
    own = {"hooks": [{"type": "command", "command": "mine"}]}
    before = json.dumps({"hooks": {"SessionStart": [own], "Stop": [own]}})
    machine.write(SETTINGS, before)
    assert machine.setup().code == 0
    hooks = json.loads((machine.home / SETTINGS).read_bytes())["hooks"]
    assert hooks["Stop"] == [own]
    assert hooks["SessionStart"][0] == own
    [added] = hooks["SessionStart"][1:]
    assert hooks["UserPromptSubmit"] == [added]
    [run] = added["hooks"]
    assert str(machine.home / ".claude/hooks/tfx-inbox.py") in run["command"]
    assert not (machine.home / ".codex/hooks.json").exists()
    assert "hooks" not in json.loads((machine.home / ".gemini/settings.json").read_bytes())
    machine.write(".config/tfx/config.toml", '[setup]\nskip = ["hooks"]\n')
    assert machine.setup().code == 0
    assert json.loads((machine.home / SETTINGS).read_bytes())["hooks"] == {
        "SessionStart": [own],
        "Stop": [own],
    }
    assert not (machine.home / ".claude/hooks").exists()
    assert machine.setup("--remove").code == 0
    assert (machine.home / SETTINGS).read_text("utf-8") == before
