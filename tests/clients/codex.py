"""Codex as an oracle; its app server answers without a login and calls no model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

_CODEX_HELLO = (
    {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}},
    {"method": "initialized"},
)


def codex_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`codex mcp list --json`: the configuration as it is parsed."""
    output, _ = clients.run(["codex", "mcp", "list", "--json"], home, variables)
    servers = []
    for server in succeeded(output).json():
        transport = server["transport"]
        is_stdio = transport["type"] == "stdio"
        servers.append(
            SeenServer(
                server["name"],
                command=joined(transport["command"], transport["args"]) if is_stdio else None,
                url=transport.get("url"),
                headers=None if is_stdio else prints(transport["http_headers"]),
            )
        )
    return Servers(tuple(servers), warnings_in(output.err))


def codex_skills(clients: Clients, home: Path, variables: Variables = None) -> Skills:
    """`codex app-server`, which lists skills with scope and path."""
    ask = {"id": 1, "method": "skills/list", "params": {}}
    heard, session = clients.converse(
        ["codex", "app-server"], home, [*_CODEX_HELLO, ask], variables
    )
    (listed,) = _codex_answer(heard, 1)["data"]
    mine = [skill for skill in listed["skills"] if skill["scope"] != "system"]
    problems = [json.dumps(problem) for problem in listed.get("errors", [])]
    return Skills(
        tuple(SeenSkill(skill["name"], session.rebased(skill["path"])) for skill in mine),
        warnings_in(*_codex_warnings(heard)) + tuple(problems),
    )


def codex_connections(
    clients: Clients, home: Path, variables: Variables = None
) -> Mapping[str, bool]:
    """Let `codex app-server` start every MCP server; return which ones answered."""
    ask = {"id": 1, "method": "mcpServerStatus/list", "params": {}}
    heard, _ = clients.converse(["codex", "app-server"], home, [*_CODEX_HELLO, ask], variables)
    return {
        server["name"]: server["serverInfo"] is not None
        for server in _codex_answer(heard, 1)["data"]
    }


def _codex_answer(heard: list[dict[str, Any]], number: int) -> Any:  # noqa: ANN401  (JSON)
    (answer,) = (message for message in heard if message.get("id") == number)
    return answer["result"]


def _codex_warnings(heard: list[dict[str, Any]]) -> list[str]:
    return [
        f"warning: {message['params']['summary']}"
        for message in heard
        if message.get("method") == "configWarning"
    ]
