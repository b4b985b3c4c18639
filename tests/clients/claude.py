"""Claude Code as an oracle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.running import Clients, OracleError
from tests.clients.seen import (
    SeenServer,
    SeenSkill,
    Servers,
    Skills,
    Variables,
    prints,
    succeeded,
    warnings_in,
)


@dataclass(frozen=True, slots=True)
class ClaudeSession:
    """The `init` event of a Claude session: what was really loaded."""

    skills: tuple[str, ...]
    servers: Mapping[str, str]


def claude_mcp(
    clients: Clients, home: Path, variables: Variables = None, name: str = "tfx-hub"
) -> Servers:
    """`claude mcp get`: connects, or starts the command."""
    output, _ = clients.run(["claude", "mcp", "get", name], home, variables)
    if output.code == 1 and "No MCP server named" in output.err:
        return Servers(())
    succeeded(output)
    fields = dict(re.findall(r"^  (\w+): ?(.*)$", output.out, re.MULTILINE))
    headers = dict(re.findall(r"^    ([\w-]+): (.*)$", output.out, re.MULTILINE))
    is_stdio = fields["Type"] == "stdio"
    server = SeenServer(
        name,
        command=f"{fields['Command']} {fields['Args']}".rstrip() if is_stdio else None,
        url=fields.get("URL"),
        headers=None if is_stdio else prints(headers),
        connected="Connected" in fields["Status"],
    )
    return Servers((server,), warnings_in(output.err))


def claude_session(clients: Clients, home: Path, variables: Variables = None) -> ClaudeSession:
    """`claude -p` without a login: the `init` event, no model is called."""
    argv = ["claude", "-p", "x", "--output-format", "stream-json", "--verbose"]
    output, _ = clients.run(argv, home, variables)
    for line in output.out.splitlines():
        event: dict[str, Any] = json.loads(line)
        if event.get("subtype") == "init":
            servers = {server["name"]: server["status"] for server in event["mcp_servers"]}
            return ClaudeSession(tuple(event["skills"]), servers)
    raise OracleError(output)


def claude_skills(clients: Clients, home: Path, variables: Variables = None) -> Skills:
    """Return the skills of the `init` event; Claude's own are among them, paths are not told."""
    session = claude_session(clients, home, variables)
    return Skills(tuple(SeenSkill(name) for name in session.skills))


def claude_doctor(clients: Clients, home: Path, variables: Variables = None) -> tuple[str, ...]:
    """Return the lines of `claude doctor` about invalid settings; none means all are valid."""
    output, session = clients.run(["claude", "doctor"], home, variables)
    succeeded(output)
    if "Claude Code doctor" not in output.out:
        raise OracleError(output)
    section = re.search(r"^Invalid settings\n((?:- .*\n)+)", output.out, re.MULTILINE)
    lines = section[1].splitlines() if section else []
    return tuple(line[2:].replace(str(session.home), "~") for line in lines)
