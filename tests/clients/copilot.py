"""Copilot CLI as an oracle."""

from __future__ import annotations

from pathlib import Path

from tests.clients.running import Clients
from tests.clients.seen import (
    SeenServer,
    SeenSkill,
    Servers,
    Skills,
    Variables,
    joined,
    prints,
    succeeded,
    warnings_in,
)


def copilot_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`copilot mcp list --json`: the configuration as it is parsed."""
    output, _ = clients.run(["copilot", "mcp", "list", "--json"], home, variables)
    servers = tuple(
        SeenServer(
            name,
            command=joined(entry["command"], entry.get("args")) if "command" in entry else None,
            url=entry.get("url"),
            headers=prints(entry.get("headers")) if "url" in entry else None,
        )
        for name, entry in succeeded(output).json()["mcpServers"].items()
    )
    return Servers(servers, warnings_in(output.err))


def copilot_prompt(
    clients: Clients, home: Path, model_url: str, variables: Variables = None
) -> None:
    """Let Copilot start its MCP servers for a prompt to a model provider that fails."""
    offline = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": model_url,
        "COPILOT_MODEL": "none",
    }
    clients.run(["copilot", "-p", "x"], home, {**(variables or {}), **offline})


def copilot_skills(clients: Clients, home: Path, variables: Variables = None) -> Skills:
    """`copilot skill list --json`, without those Copilot brings along."""
    output, session = clients.run(["copilot", "skill", "list", "--json"], home, variables)
    listed = [skill for skill in succeeded(output).json() if skill["source"] != "builtin"]
    return Skills(
        tuple(SeenSkill(s["name"], session.rebased(s["path"]) / "SKILL.md") for s in listed),
        warnings_in(output.err),
    )
