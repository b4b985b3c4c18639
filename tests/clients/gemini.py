"""Gemini CLI and Qwen Code, which print the same lists, as oracles."""

from __future__ import annotations

import re
from pathlib import Path

from tests.clients.running import Clients, OracleError, Output
from tests.clients.seen import (
    SeenServer,
    SeenSkill,
    Servers,
    Skills,
    Variables,
    succeeded,
    warnings_in,
)


def gemini_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`gemini mcp list` in a trusted folder: connects, or starts the command; on stderr."""
    output, _ = clients.run(
        ["gemini", "mcp", "list"], home, variables, trusts_work_in=_trust_file(home, variables)
    )
    return _listed_by_lines(output, output.err)


def qwen_mcp(clients: Clients, home: Path, variables: Variables = None) -> Servers:
    """`qwen mcp list`: connects, or starts the command."""
    output, _ = clients.run(["qwen", "mcp", "list"], home, variables)
    return _listed_by_lines(output, output.out)


def gemini_skills(clients: Clients, home: Path, variables: Variables = None) -> Skills:
    """`gemini skills list`; it also connects to the MCP servers and complains about those."""
    output, session = clients.run(["gemini", "skills", "list"], home, variables)
    pairs = re.findall(
        r"^(\S+) \[Enabled\]\n(?:  .*\n)*?  Location: +(.*)$",
        succeeded(output).out,
        re.MULTILINE,
    )
    about_skills = [line for line in output.err.splitlines() if "skill" in line.lower()]
    return Skills(
        tuple(SeenSkill(name, session.rebased(path)) for name, path in pairs),
        warnings_in("\n".join(about_skills)),
    )


def _trust_file(home: Path, variables: Variables) -> str:
    moved = (variables or {}).get("GEMINI_CLI_HOME")
    inside = "" if moved is None else f"{Path(moved).relative_to(home)}/"
    return f"{inside}.gemini/trustedFolders.json"


def _listed_by_lines(output: Output, text: str) -> Servers:
    if "MCP servers" not in succeeded(output).out + output.err:
        raise OracleError(output)
    line = re.compile(r"^\S (?P<name>[\w-]+): (?P<what>.*) \((?P<type>\w+)\) - (?P<status>\w+)$")
    servers, rest = [], []
    for found, plain in ((line.match(plain), plain) for plain in text.splitlines()):
        if found is None:
            rest.append(plain)
            continue
        is_stdio = found["type"] == "stdio"
        servers.append(
            SeenServer(
                found["name"],
                command=found["what"] if is_stdio else None,
                url=None if is_stdio else found["what"],
                connected=found["status"] == "Connected",
            )
        )
    return Servers(tuple(servers), warnings_in("\n".join(rest)))
