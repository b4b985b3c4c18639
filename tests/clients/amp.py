"""Amp as an oracle: for its configuration only, skills need a login."""

from __future__ import annotations

from pathlib import Path

from tests.clients.running import Clients
from tests.clients.seen import (
    SeenServer,
    Servers,
    Variables,
    joined,
    prints,
    succeeded,
    warnings_in,
)


def amp_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`amp mcp list --json`: the configuration as it is parsed."""
    output, _ = clients.run(["amp", "mcp", "list", "--json"], home, variables)
    servers = []
    for server in succeeded(output).json():
        spec = server["spec"]
        servers.append(
            SeenServer(
                server["name"],
                command=joined(spec["command"], spec.get("args")) if "command" in spec else None,
                url=spec.get("url"),
                headers=prints(spec.get("headers")) if "url" in spec else None,
            )
        )
    return Servers(tuple(servers), warnings_in(output.err))
