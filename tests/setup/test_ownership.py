"""Only what the manifest records is ours, and only our keys go into shared files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support import PACKAGES, Machine, tfx


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, *PACKAGES)


def test_s41_names_and_words_of_ours_prove_nothing(machine: Machine) -> None:
    machine.setup("--mcp-transport", "stdio")
    mine = [
        machine.write(".claude/skills/tfx-mine/SKILL.md", "---\nname: tfx-mine\n---\n"),
        machine.write(".claude/skills/tfx-setup/tfx-notes.md", "tfx\n"),
        machine.write(".claude/scripts/tfx-own.sh", "#!/bin/sh\n# tfx\n"),
    ]
    claude = machine.home / ".claude.json"
    document = json.loads(claude.read_bytes())
    document["mcpServers"]["tfx-hub-mine"] = document["mcpServers"]["tfx-hub"]
    claude.write_text(json.dumps(document), "utf-8")
    assert machine.setup("--remove").code == 0
    assert all(path.is_file() for path in mine)
    assert list(json.loads(claude.read_bytes())["mcpServers"]) == ["tfx-hub-mine"]


def test_s58_no_key_of_ours_but_the_wanted_ones(machine: Machine) -> None:
    files = {
        ".claude.json": {"mcpServers"},
        ".claude/settings.json": {"statusLine", "hooks"},
        ".gemini/settings.json": {"mcpServers"},
        ".copilot/mcp-config.json": {"mcpServers"},
        ".config/opencode/opencode.jsonc": {"mcp"},
        ".config/amp/settings.json": {"amp.mcpServers"},
        ".qwen/settings.json": {"mcpServers"},
    }
    for path in files:
        machine.write(path, "{}")
    machine.setup("--mcp-transport", "http")
    for path, keys in files.items():
        document = json.loads((machine.home / path).read_bytes())
        assert document.keys() == keys, path
        if "statusLine" not in keys:
            assert list(document[min(keys)]) == ["tfx-hub"]


def test_s71_no_verb_of_a_client_is_run(machine: Machine) -> None:
    log = machine.root / "log"
    for package in (machine.root / "agents").rglob("package.json"):
        package.unlink()  # so that versions have to be asked for
    for program in (machine.root / "agents").rglob("bin/*"):
        if not program.is_symlink():
            program.write_text(f'#!/bin/sh\necho "$*" >> {shlex.quote(str(log))}\n', "utf-8")
    for command in (["setup", "--mcp-transport", "stdio"], ["version"], ["setup", "--remove"]):
        machine.tfx(*command)
    assert set(log.read_text("utf-8").splitlines()) == {"--version"}


def test_s13_a_version_that_is_not_asked_for_is_not_called_unknown(machine: Machine) -> None:
    for package in (machine.root / "agents").rglob("package.json"):
        package.unlink()
    machine.setup()
    said = machine.tfx("setup").out
    assert "Claude Code" in said
    assert "version unknown" not in said


def test_s18_status_line_names_interpreter_and_script_by_absolute_path(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "claude", home="my $HOME 가 'q'")
    assert machine.setup().code == 0
    settings = json.loads((machine.home / ".claude/settings.json").read_bytes())
    words = shlex.split(settings["statusLine"]["command"])
    assert all(Path(word).is_absolute() for word in (words[0], words[-1]))
    assert words[-1] == str(machine.home / ".claude/hud/tfx-hud.py")
    ran = tfx(
        machine.home,
        "-c",
        settings["statusLine"]["command"],
        env=machine.env,
        command=["/bin/sh"],
        stdin="{}",
    )
    assert ran.code == 0, ran.err
