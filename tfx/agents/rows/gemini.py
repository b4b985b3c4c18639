"""Gemini CLI (tried with 0.61.0) and Qwen Code (0.15.10), which grew from the same source."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    Agent,
    Auth,
    Expansion,
    FileFormat,
    HttpShape,
    McpTarget,
    NodeEngine,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import DOCUMENTED, TESTED, UNVERIFIED, login, movable, npm

_EXPANSION = Expansion(
    re.compile(r"\$(?P<open>\{)?(?P<name>\w+)(?(open)(?P<default>:-[^}]*)?\})"),
    keeps_unset=True,
    evidence=TESTED,
)

_GEMINI_SETTINGS = movable(".gemini/settings.json", "GEMINI_CLI_HOME", ".gemini/settings.json")
_GEMINI_SKILLS = movable(".agents/skills", "GEMINI_CLI_HOME", ".agents/skills")
_QWEN_SETTINGS = movable(".qwen/settings.json", "QWEN_HOME", "settings.json")

GEMINI = Agent(
    name="gemini",
    label="Gemini CLI",
    binaries=("gemini",),
    packages=(npm("@google/gemini-cli"),),
    version=VersionRule(evidence=TESTED),
    config=movable(".gemini", "GEMINI_CLI_HOME", ".gemini"),
    skills=_GEMINI_SKILLS,
    skills_read=(
        _GEMINI_SKILLS,
        movable(".gemini/skills", "GEMINI_CLI_HOME", ".gemini/skills"),
    ),
    mcp=McpTarget(
        files=(_GEMINI_SETTINGS,),
        fresh=_GEMINI_SETTINGS,
        reads=Reads.FIRST,
        format=FileFormat.JSONC,
        key=("mcpServers",),
        stdio=StdioShape(entries.plain_stdio, TESTED),
        http=HttpShape(entries.typed_http, TESTED, wire=TESTED),
        by_variable=entries.token_in_braces(entries.typed_http),
        expansion=_EXPANSION,
    ),
    auth=Auth(
        files=(
            login(
                movable(
                    ".gemini/oauth_creds.json",
                    "GEMINI_CLI_HOME",
                    ".gemini/oauth_creds.json",
                    DOCUMENTED,
                )
            ),
        ),
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        elsewhere="a keyring, or an API key in an .env file",
    ),
    writes=Writes(mcp=True, skills=True),
    engine=NodeEngine(">=20", None, TESTED),
)

QWEN = Agent(
    name="qwen",
    label="Qwen Code",
    binaries=("qwen",),
    packages=(npm("@qwen-code/qwen-code"),),
    version=VersionRule(evidence=TESTED),
    config=movable(".qwen", "QWEN_HOME"),
    skills_read=(movable(".qwen/skills", "QWEN_HOME", "skills", UNVERIFIED),),
    mcp=McpTarget(
        files=(_QWEN_SETTINGS,),
        fresh=_QWEN_SETTINGS,
        reads=Reads.FIRST,
        format=FileFormat.JSONC,
        key=("mcpServers",),
        stdio=StdioShape(entries.plain_stdio, TESTED),
        http=HttpShape(entries.qwen_http, TESTED, wire=TESTED),
        by_variable=entries.token_in_braces(entries.qwen_http),
        expansion=_EXPANSION,
    ),
    auth=Auth(
        files=(
            login(movable(".qwen/oauth_creds.json", "QWEN_HOME", "oauth_creds.json", DOCUMENTED)),
        ),
        elsewhere="an API key in settings.json, an .env file or a variable",
    ),
    writes=Writes(mcp=True),
    engine=NodeEngine(">=22", "0.24.4", TESTED),
)
