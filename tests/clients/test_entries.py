from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.claude import claude_doctor
from tests.clients.endpoint import Endpoint
from tests.clients.homes import (
    moved,
    paths_in,
    write_document,
    write_entry,
)
from tests.clients.oracles import MCP_ORACLES, connect
from tests.clients.running import Clients, fingerprint
from tests.clients.seen import SeenServer, Servers
from tfx.agents.catalogue import AGENTS, find
from tfx.agents.entries import entry_by_variable, mcp_entry
from tfx.agents.model import Agent, FileFormat, Http, Stdio
from tfx.errors import JsonValue

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]

WRITABLE = [agent for agent in AGENTS if agent.writes.mcp]
TOKEN = "tok_A-1b2C3d4"  # noqa: S105  (of the test)
BEARER = fingerprint(f"Bearer {TOKEN}")

WORK = ("--tools", "bus,work")
"""The longest arguments that setup writes; test_setup.py has the usual ones."""

# What the clients tell of the headers; Gemini and Qwen show none, opencode hides the values.
SHOWN: dict[str, dict[str, str | None] | None] = {
    "gemini": None,
    "qwen": None,
    "opencode": {"Authorization": None},
}
# These contact the server when they are asked for their list, the others need `connect`.
CONNECTS_BY_ITSELF = ("claude", "gemini", "qwen")


@pytest.mark.parametrize("agent", WRITABLE, ids=lambda agent: agent.name)
def test_s20_s114_the_http_entry_is_read_and_its_header_sent(
    agent: Agent, clients: Clients, endpoint: Endpoint, home: Path
) -> None:
    write_entry(agent, paths_in(home), mcp_entry(agent, Http(endpoint.url, TOKEN)))
    seen = MCP_ORACLES[agent.name](clients, home, None)
    connected = True if agent.name in CONNECTS_BY_ITSELF else None
    headers = SHOWN.get(agent.name, {"Authorization": BEARER})
    assert seen.servers == (
        SeenServer("tfx-hub", url=endpoint.url, headers=headers, connected=connected),
    )
    assert seen.warnings == ()
    if agent.name not in CONNECTS_BY_ITSELF:
        connect(clients, agent.name, home, endpoint.model_url)
    requests = endpoint.take()
    if agent.name != "amp":  # it connects only after a login
        assert requests
    assert {(request.path, request.authorization) for request in requests} <= {("/mcp", BEARER)}


@pytest.mark.parametrize("agent", WRITABLE, ids=lambda agent: agent.name)
def test_s20_s17_the_stdio_entry_in_a_moved_place_is_read_and_its_command_started(
    agent: Agent, clients: Clients, endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    # S-94: quotes, a space, other letters, and variables that are not set
    bridge = tmp_path / 'it\'s a "t f x" ü $NOBODY ${NOBODY}' / "tfx"
    bridge.parent.mkdir()
    bridge.write_text('#!/bin/sh\nprintf "%s|" "$TFX_PROBE" "$@" > "${0%/*}/started"\n', "utf-8")
    bridge.chmod(0o755)
    variables = moved(agent.name, home)
    connection = Stdio(str(bridge), ("hub", "bridge", *WORK), {"TFX_PROBE": "yes"})
    write_entry(agent, paths_in(home, variables), mcp_entry(agent, connection, env={}))
    seen = MCP_ORACLES[agent.name](clients, home, variables)
    connected = False if agent.name in CONNECTS_BY_ITSELF else None
    assert seen.servers == (
        SeenServer("tfx-hub", command=f"{bridge} hub bridge --tools bus,work", connected=connected),
    )
    if agent.name not in CONNECTS_BY_ITSELF:
        connect(clients, agent.name, home, endpoint.model_url, variables)
    started = bridge.with_name("started")
    if agent.name != "amp":
        assert started.read_text("utf-8") == "yes|hub|bridge|--tools|bus,work|"


@pytest.mark.parametrize("name", [a.name for a in WRITABLE if a.mcp and a.mcp.by_variable])
def test_s23_the_token_is_taken_from_the_variable_that_the_entry_names(
    name: str, clients: Clients, endpoint: Endpoint, home: Path
) -> None:
    write_entry(find(name), paths_in(home), entry_by_variable(find(name), endpoint.url, "TFX_T"))
    connect(clients, name, home, endpoint.model_url, {"TFX_T": TOKEN})
    assert {request.authorization for request in endpoint.take()} == {BEARER}


@pytest.mark.parametrize("agent", WRITABLE, ids=lambda agent: agent.name)
def test_s115_in_an_empty_home_no_server_is_seen(
    agent: Agent, clients: Clients, home: Path
) -> None:
    assert MCP_ORACLES[agent.name](clients, home, None) == Servers(())


def names_seen(clients: Clients, name: str, home: Path) -> list[str]:
    return [server.name for server in MCP_ORACLES[name](clients, home, None).servers]


def server(name: str, key: str = "mcpServers") -> dict[str, JsonValue]:
    return {key: {name: {"type": "stdio", "command": "/bin/false", "args": []}}}


def test_s19_opencode_reads_both_files_and_jsonc_wins(clients: Clients, home: Path) -> None:
    directory = home / ".config/opencode"
    for name in ("opencode.json", "opencode.jsonc"):
        both: JsonValue = {"type": "local", "command": [name]}
        own: JsonValue = {"type": "local", "command": ["x"]}
        document: dict[str, JsonValue] = {"mcp": {"both": both, f"in-{name[9:]}": own}}
        write_document(directory / name, document, FileFormat.JSONC)
    seen = {s.name: s.command for s in MCP_ORACLES["opencode"](clients, home, None).servers}
    assert seen == {"both": "opencode.jsonc", "in-json": "x", "in-jsonc": "x"}


def test_claude_reads_its_old_state_file_instead_of_the_new_one(
    clients: Clients, home: Path
) -> None:
    write_document(home / ".claude.json", server("new"), FileFormat.JSON)
    write_document(home / ".claude/.config.json", server("tfx-hub"), FileFormat.JSON)
    assert names_seen(clients, "claude", home) == ["tfx-hub"]


def test_amp_reads_settings_jsonc_only_without_settings_json(clients: Clients, home: Path) -> None:
    directory = home / ".config/amp"
    write_document(
        directory / "settings.jsonc", server("jsonc", "amp.mcpServers"), FileFormat.JSONC
    )
    assert names_seen(clients, "amp", home) == ["jsonc"]
    write_document(directory / "settings.json", server("json", "amp.mcpServers"), FileFormat.JSON)
    assert names_seen(clients, "amp", home) == ["json"]


def test_s68_claude_knows_exactly_the_hook_events_of_its_row(clients: Clients, home: Path) -> None:
    hooks = find("claude").hooks
    assert hooks is not None
    registered: JsonValue = [{"hooks": [{"type": "command", "command": "true"}]}]
    document: dict[str, JsonValue] = {
        "hooks": dict.fromkeys((*hooks.events, "NoSuchEvent"), registered)
    }
    write_document(home / ".claude/settings.json", document, FileFormat.JSON)
    (problem,) = claude_doctor(clients, home)
    assert 'Unknown hook event "NoSuchEvent"' in problem
    assert problem.partition("Valid events: ")[2].split(", ") == list(hooks.events)
