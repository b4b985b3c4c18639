"""All agents, one row each, and the look-up by name; the rows themselves are in rows/.

Knows nothing of what is installed.
"""

from __future__ import annotations

import difflib

from tfx.agents.model import Agent
from tfx.agents.rows.amp import AMP
from tfx.agents.rows.claude import CLAUDE
from tfx.agents.rows.codex import CODEX
from tfx.agents.rows.copilot import COPILOT
from tfx.agents.rows.gemini import GEMINI, QWEN
from tfx.agents.rows.opencode import OPENCODE
from tfx.agents.rows.reported import AIDER, ANTIGRAVITY, CURSOR, GOOSE, GROK, KIMI
from tfx.errors import InvalidRequest, JsonValue

AGENTS: tuple[Agent, ...] = (
    CLAUDE,
    CODEX,
    GEMINI,
    ANTIGRAVITY,
    COPILOT,
    CURSOR,
    OPENCODE,
    AMP,
    GOOSE,
    QWEN,
    KIMI,
    GROK,
    AIDER,
)


def find(name: str) -> Agent:
    """Return the row of a name; case and the binary's name count too (`agy`, `Claude`).

    Raises InvalidRequest that lists the known names, the nearest first.
    """
    wanted = name.strip().casefold()
    for agent in AGENTS:
        if wanted == agent.name or wanted in agent.binaries:
            return agent
    nearest = nearest_names(wanted)
    known: list[JsonValue] = list(nearest)
    raise InvalidRequest(
        f"no agent is called {name!r}; known: {', '.join(nearest)}",
        code="unknown-agent",
        hint=f"tfx setup --agent {nearest[0]}",
        details={"agent": name, "known": known},
    )


def nearest_names(name: str) -> tuple[str, ...]:
    """Return all agent names, the ones most like `name` first."""
    likeness = {
        agent.name: max(
            difflib.SequenceMatcher(None, name, other).ratio()
            for other in (agent.name, *agent.binaries, agent.label.casefold())
        )
        for agent in AGENTS
    }
    return tuple(sorted(likeness, key=lambda known: -likeness[known]))
