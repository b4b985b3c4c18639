"""opencode, tried with 1.18.33; knows nothing of the other agents."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    XDG_CONFIG_HOME,
    XDG_DATA_HOME,
    Agent,
    Auth,
    Expansion,
    FileFormat,
    HttpShape,
    McpTarget,
    Place,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import SHARED_SKILLS, TESTED, fixed, login, movable, npm


def _in_config(name: str) -> Place:
    return movable(f".config/opencode/{name}", XDG_CONFIG_HOME, f"opencode/{name}")


_JSONC = _in_config("opencode.jsonc")

# The variables of the providers that most people have; opencode reads those of many more.
_PROVIDERS = (
    "OPENCODE_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "MISTRAL_API_KEY",
    "XAI_API_KEY",
)

OPENCODE = Agent(
    name="opencode",
    label="opencode",
    binaries=("opencode",),
    packages=(npm("opencode-ai"),),
    version=VersionRule(evidence=TESTED),
    config=movable(".config/opencode", XDG_CONFIG_HOME, "opencode"),
    skills=SHARED_SKILLS,
    skills_read=(
        SHARED_SKILLS,
        _in_config("skill"),
        _in_config("skills"),
        fixed(".claude/skills"),
    ),
    mcp=McpTarget(
        files=(_JSONC, _in_config("opencode.json")),
        fresh=_JSONC,
        reads=Reads.MERGED,
        format=FileFormat.JSONC,
        key=("mcp",),
        stdio=StdioShape(entries.opencode_stdio, TESTED),
        http=HttpShape(entries.opencode_http, TESTED, wire=TESTED),
        by_variable=entries.opencode_reference,
        expansion=Expansion(
            re.compile(r"\{(?:env|file):(?P<name>[^}]*)(?P<default>)\}"),
            keeps_unset=False,
            evidence=TESTED,
        ),
    ),
    auth=Auth(
        files=(
            login(
                movable(".local/share/opencode/auth.json", XDG_DATA_HOME, "opencode/auth.json"),
            ),
        ),
        variables=_PROVIDERS,
        elsewhere="the configuration, or the variable of a rare provider",
        config_key="provider",
    ),
    writes=Writes(mcp=True, skills=True),
)
