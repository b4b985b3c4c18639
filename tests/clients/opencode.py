"""opencode as an oracle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.clients.running import Clients
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


def opencode_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`opencode debug config`: all files merged; header values are hidden."""
    output, _ = clients.run(["opencode", "debug", "config"], home, variables)
    servers = tuple(
        SeenServer(
            name,
            command=" ".join(entry["command"]) if entry["type"] == "local" else None,
            url=entry.get("url"),
            headers=prints(entry.get("headers")) if entry["type"] == "remote" else None,
        )
        for name, entry in succeeded(output).json().get("mcp", {}).items()
    )
    return Servers(servers, warnings_in(output.err))


def opencode_connections(
    clients: Clients, home: Path, variables: Variables = None
) -> Mapping[str, bool]:
    """`opencode mcp list`: starts every server; returns which ones answered."""
    output, _ = clients.run(["opencode", "mcp", "list"], home, variables)
    marks = re.findall(r"^●  (\S) (\S+) ", succeeded(output).out, re.MULTILINE)
    return {name: mark == "✓" for mark, name in marks}


def opencode_skills(clients: Clients, home: Path, variables: Variables = None) -> Skills:
    """`opencode debug skill`, without those opencode brings along."""
    output, session = clients.run(["opencode", "debug", "skill"], home, variables)
    listed = [s for s in succeeded(output).json() if not s["location"].startswith("<")]
    return Skills(
        tuple(SeenSkill(s["name"], session.rebased(s["location"])) for s in listed),
        warnings_in(output.err),
    )
