"""What a machine can throw at `tfx setup`: a clear message, the right status, not one lost byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import Machine, listing

SETTINGS = ".claude/settings.json"
CLAUDE = ".claude.json"
MANIFEST = ".local/state/tfx/setup/manifest.json"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "claude", "codex", "opencode")


BROKEN = [
    pytest.param(CLAUDE, b'{"a": 1,\n  oops}\n', (2, 3), id="json"),
    pytest.param(CLAUDE, b'{"a": 1, // note\n}\n', (1, 10), id="comment-in-strict-json"),
    pytest.param(CLAUDE, b'{"a": "\xff"}', (1, 8), id="not-utf8"),
    pytest.param(CLAUDE, b"[1]", (1, 1), id="not-an-object"),
    pytest.param(CLAUDE, b'{"mcpServers": {}, "mcpServers": {}}', None, id="duplicate-key"),
    pytest.param(CLAUDE, b'{"mcpServers": []}', None, id="wrong-container"),
    pytest.param(".codex/config.toml", b"a = 1\nb = \n", None, id="toml"),
    pytest.param(".config/opencode/opencode.jsonc", b'{"mcp": {', None, id="truncated-jsonc"),
]


@pytest.mark.parametrize(("path", "content", "position"), BROKEN)
def test_s54_unparsable_file_is_refused_and_the_rest_done(
    machine: Machine, path: str, content: bytes, position: tuple[int, int] | None
) -> None:
    target = machine.write(path, content)
    ran = machine.setup("--mcp-transport", "stdio")
    assert ran.code == 5, ran.out
    assert target.read_bytes() == content
    refused = [p for p in ran.document["problems"] if p["code"] == "refused"]
    assert len(refused) == 1
    assert Path(path).name in refused[0]["message"]
    if position:
        assert f"{position[0]}:{position[1]}" in refused[0]["message"]
        assert "column" not in refused[0]["message"]  # said once, and so is the path:
    assert refused[0]["message"].count(str(target)) == 1
    assert (machine.home / ".claude/skills/tfx-setup/SKILL.md").is_file()
    others = {CLAUDE, ".codex/config.toml"} - {path}
    assert all("tfx-hub" in (machine.home / name).read_text("utf-8") for name in others)


def test_directory_or_fifo_in_place_of_a_file_is_refused(machine: Machine) -> None:
    (machine.home / SETTINGS).mkdir(parents=True)
    os.mkfifo(machine.home / CLAUDE)
    ran = machine.setup("--mcp-transport", "stdio")
    assert ran.code == 5
    assert (machine.home / SETTINGS).is_dir()
    assert (machine.home / CLAUDE).is_fifo()


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"schema": 1}', b"[]", b'{"schema": 999, "files": []}', b"\xff"]
)
def test_s39_unreadable_or_newer_manifest_stops_everything(
    machine: Machine, content: bytes
) -> None:
    machine.setup()
    (machine.home / MANIFEST).write_bytes(content)
    before = machine.users_files()
    for arguments in ((), ("--check",), ("--remove",)):
        ran = machine.setup(*arguments)
        assert ran.code == 5, (arguments, ran.out)
        assert "manifest" in ran.document["problems"][0]["message"]
    assert machine.users_files() == before
    assert (machine.home / MANIFEST).read_bytes() == content


def test_settings_of_tfx_with_an_unknown_key_are_a_usage_error(machine: Machine) -> None:
    machine.write(".config/tfx/config.toml", '[setup]\nskipp = ["hooks"]\n')
    before = listing(machine.home)
    ran = machine.setup()
    assert ran.code == 2
    assert "skip" in ran.out
    assert listing(machine.home) == before


@pytest.mark.parametrize("name", ["a b", 'it\'s "q"', "$HOME `x`", "한글 é", "-dash"])
def test_s94_home_with_difficult_names(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, "claude", "codex", home=name)
    first = machine.setup("--mcp-transport", "stdio")
    assert first.code == 0, first.out
    command = json.loads((machine.home / SETTINGS).read_bytes())["statusLine"]["command"]
    line = subprocess.run(
        ["sh", "-c", command],
        input=b'{"model":{"display_name":"M"}}',
        env=machine.env,
        capture_output=True,
        check=True,
    )
    assert line.stdout == b"M\n"
    assert machine.setup("--remove").code == 0
    assert machine.users_files() == {}


def test_s102_two_runs_at_once_both_succeed(machine: Machine) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: machine.setup("--mcp-transport", "stdio"), range(2)))
    assert [ran.code for ran in both] == [0, 0], [ran.out for ran in both]
    assert machine.setup("--check", "--mcp-transport", "stdio").code == 0


def test_s99_moved_config_directories_stay_apart(machine: Machine) -> None:
    elsewhere = machine.home / "elsewhere"
    machine.setup("--mcp-transport", "stdio", CLAUDE_CONFIG_DIR=str(elsewhere))
    assert (elsewhere / "skills/tfx-setup/SKILL.md").is_file()
    assert "tfx-hub" in (elsewhere / ".claude.json").read_text("utf-8")
    assert not (machine.home / ".claude").exists()
    assert machine.setup("--mcp-transport", "stdio").code == 0
    assert (elsewhere / "skills/tfx-setup/SKILL.md").is_file()
    assert (machine.home / ".claude/skills/tfx-setup/SKILL.md").is_file()


def test_s22_token_is_in_targets_only(machine: Machine) -> None:
    ran = machine.setup("--mcp-transport", "http", "--verbose")
    assert ran.code == 0, ran.out
    config = json.loads((machine.home / CLAUDE).read_bytes())
    header = config["mcpServers"]["tfx-hub"]["headers"]["Authorization"]
    token = header.removeprefix("Bearer ")
    assert re.fullmatch(r"[A-Za-z0-9_-]{32,}", token)
    assert token not in ran.out + ran.err
    state = machine.home / ".local/state/tfx"
    allowed = {state / "hub" / "token"}
    leaks = [
        path
        for path in state.rglob("*")
        if path.is_file()
        and token.encode() in path.read_bytes()
        and path not in allowed
        and "backup" not in path.parts
    ]
    assert leaks == []
    assert (machine.home / CLAUDE).stat().st_mode & 0o777 == 0o600


def test_s85_symlinked_settings_are_written_through(machine: Machine) -> None:
    real = machine.write("dotfiles/claude.json", '{"a": 1}\n')
    (machine.home / CLAUDE).symlink_to(real)
    assert machine.setup("--mcp-transport", "stdio").code == 0
    assert (machine.home / CLAUDE).is_symlink()
    assert "tfx-hub" in real.read_text("utf-8")
    assert machine.setup("--remove").code == 0
    assert real.read_text("utf-8") == '{"a": 1}\n'


def test_state_directory_is_private(machine: Machine) -> None:
    machine.setup("--mcp-transport", "stdio")
    state = machine.home / ".local/state/tfx"
    for path in [state, *state.rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert path.stat().st_mode & 0o777 == wanted, path


def test_settings_leave_out_what_the_user_does_not_want(machine: Machine) -> None:
    machine.write(
        ".config/tfx/config.toml",
        '[setup]\nskip = ["statusline", "hooks", "skill:tfx-doctor", "agent:codex"]\n',
    )
    assert machine.setup().code == 0
    assert not (machine.home / SETTINGS).exists()
    assert not (machine.home / ".claude/skills/tfx-doctor").exists()
    assert (machine.home / ".claude/skills/tfx-setup").exists()


@pytest.mark.parametrize("place", [".agents/skills", ".copilot/skills", ".config/opencode/skills"])
def test_s30_state_in_a_skills_root_of_an_absent_agent_is_refused(
    tmp_path: Path, place: str
) -> None:
    machine = Machine(tmp_path, "claude")
    ran = machine.setup(XDG_STATE_HOME=str(machine.home / place))
    assert (ran.code, ran.document["status"]) == (5, "refused")
    assert list(machine.home.iterdir()) == []


def test_s23_token_in_a_file_that_others_can_read_is_told_with_the_way_out(
    machine: Machine,
) -> None:
    machine.write(CLAUDE, "{}", 0o644)
    machine.write(".codex/config.toml", "", 0o600)
    for option in ("--dry-run", "--yes"):
        shown = machine.tfx("setup", "--mcp-transport", "http", option).out
        warned = [line for line in shown.splitlines() if "others can read" in line]
        assert len(warned) == 1
        assert "chmod go-rwx" in warned[0]
        assert '"Bearer ${TFX_HUB_TOKEN}"' in warned[0]


def test_s23_a_settings_file_that_tfx_makes_is_private_before_any_token_comes(
    machine: Machine,
) -> None:
    assert machine.setup().code == 0
    made = [machine.home / CLAUDE, machine.home / SETTINGS, machine.home / ".codex/config.toml"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o600] * len(made)
    shown = machine.tfx("setup", "--mcp-transport", "http").out
    assert "others can read" not in shown


def test_s52_script_without_its_registration_is_shown_as_not_active(machine: Machine) -> None:
    machine.write(SETTINGS, '{"statusLine": {"type": "command", "command": "mine"}}')
    shown = machine.tfx("setup").out
    line = next(line for line in shown.splitlines() if "create ~/.claude/hud/tfx-hud.py" in line)
    assert "not active" in line
