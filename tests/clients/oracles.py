"""All oracles by agent name: what to ask of any client.

The end-to-end tests go through this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.clients.amp import amp_mcp
from tests.clients.claude import claude_mcp, claude_skills
from tests.clients.codex import codex_connections, codex_mcp, codex_skills
from tests.clients.copilot import copilot_mcp, copilot_prompt, copilot_skills
from tests.clients.gemini import gemini_mcp, gemini_skills, qwen_mcp
from tests.clients.opencode import opencode_connections, opencode_mcp, opencode_skills
from tests.clients.running import Clients
from tests.clients.seen import Servers, Skills, Variables

MCP_ORACLES: Mapping[str, Callable[[Clients, Path, Variables], Servers]] = {
    "claude": claude_mcp,
    "codex": codex_mcp,
    "gemini": gemini_mcp,
    "copilot": copilot_mcp,
    "opencode": opencode_mcp,
    "amp": amp_mcp,
    "qwen": qwen_mcp,
}
SKILL_ORACLES: Mapping[str, Callable[[Clients, Path, Variables], Skills]] = {
    "claude": claude_skills,
    "codex": codex_skills,
    "gemini": gemini_skills,
    "copilot": copilot_skills,
    "opencode": opencode_skills,
}


def connect(
    clients: Clients, name: str, home: Path, model_url: str, variables: Variables = None
) -> None:
    """Make a client contact its MCP servers; Amp does so only after a login and is left out."""
    if name == "codex":
        codex_connections(clients, home, variables)
    elif name == "opencode":
        opencode_connections(clients, home, variables)
    elif name == "copilot":
        copilot_prompt(clients, home, model_url, variables)
    elif name != "amp":
        MCP_ORACLES[name](clients, home, variables)
