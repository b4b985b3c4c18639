"""S-115: what `tfx setup` wrote is what the real clients see, and `--remove` leaves no trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.homes import paths_in
from tests.clients.oracles import MCP_ORACLES, SKILL_ORACLES
from tests.clients.running import Clients, fingerprint
from tests.support import Machine
from tfx.agents.catalogue import AGENTS
from tfx.desired import skill_names

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1500)]

WRITABLE = [agent.name for agent in AGENTS if agent.writes.mcp]

# Files that people have before tfx comes, in their own spelling.
OWN = {
    ".claude.json": '{\n\t"numStartups": 7,\n\t"mcpServers": {"own": {"command": "true"}}\n}',
    ".claude/settings.json": '{"env": {"A": "가"}}\r\n',
    ".codex/config.toml": '# mine\nmodel = "gpt-5" # why\n\n[mcp_servers.own]\ncommand = "true"\n',
    ".gemini/settings.json": '{\n  // note\n  "mcpServers": {"own": {"command": "true"}}\n}\n',
    ".copilot/mcp-config.json": '{"mcpServers": {}}',
    ".config/opencode/opencode.jsonc": '{\n  /* mine */ "mcp": {},\n}',
    ".config/amp/settings.json": '{"amp.mcpServers": {"own": {"command": "true"}}}',
    ".qwen/settings.json": '{"mcpServers": {}}\r\n',
    ".agents/skills/own/SKILL.md": '---\nname: own\ndescription: "Mine."\n---\nText.\n',
}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_s115_every_client_sees_what_setup_wrote(
    tmp_path: Path, clients: Clients, transport: str
) -> None:
    machine = Machine(tmp_path)
    machine.env["PATH"] = f"{clients.installed.search_path}:/usr/bin:/bin"
    for path, text in OWN.items():
        machine.write(path, text)
    before = machine.users_files()

    done = machine.setup("--mcp-transport", transport)
    assert done.code == 0, done.out + done.err
    found = {row["name"] for row in done.data["agents"] if row["selected"]}
    assert found == set(WRITABLE)
    again = machine.setup("--mcp-transport", transport)
    assert (again.code, again.data["counts"]["changed"]) == (0, 0)

    for name in WRITABLE:
        seen = MCP_ORACLES[name](clients, machine.home, None)
        ours = [server for server in seen.servers if server.name == "tfx-hub"]
        assert len(ours) == 1, (name, seen)
        assert seen.warnings == (), (name, seen.warnings)
        if transport == "stdio":
            assert ours[0].command is not None, (name, ours)
            assert ours[0].command.endswith("hub bridge"), (name, ours)
        else:
            assert ours[0].url == "http://127.0.0.1:27888/mcp", (name, ours)
            shown = (ours[0].headers or {}).get("Authorization")
            assert shown in {None, fingerprint(bearer(machine))}, name
    for name, ask in SKILL_ORACLES.items():
        skills = ask(clients, machine.home, None)
        for skill in sorted(skill_names(paths_in(machine.home))):
            assert len(skills.named(skill)) == 1, (name, skill, skills)
        assert skills.warnings == (), (name, skills.warnings)

    assert machine.setup("--remove").code == 0
    assert machine.users_files() == before
    for name in ("claude", "codex"):
        seen = MCP_ORACLES[name](clients, machine.home, None)
        assert "tfx-hub" not in [server.name for server in seen.servers], name


def bearer(machine: Machine) -> str:
    document = json.loads((machine.home / ".claude.json").read_bytes())
    value = document["mcpServers"]["tfx-hub"]["headers"]["Authorization"]
    assert isinstance(value, str)
    return value
