"""Codex, tried with 0.171.0; knows nothing of the other agents."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    Agent,
    Auth,
    FileFormat,
    HttpShape,
    McpTarget,
    NodeEngine,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import DOCUMENTED, SHARED_SKILLS, TESTED, fixed, login, movable, npm

_CONFIG = movable(".codex/config.toml", "CODEX_HOME", "config.toml")

CODEX = Agent(
    name="codex",
    label="Codex",
    binaries=("codex",),
    packages=(npm("@openai/codex"),),
    version=VersionRule(re.compile(r"codex-cli (?P<version>\S+)"), evidence=TESTED),
    config=movable(".codex", "CODEX_HOME"),
    skills=SHARED_SKILLS,
    skills_read=(
        SHARED_SKILLS,
        movable(".codex/skills", "CODEX_HOME", "skills", DOCUMENTED),
        fixed("/etc/codex/skills", DOCUMENTED),
    ),
    mcp=McpTarget(
        files=(_CONFIG,),
        fresh=_CONFIG,
        reads=Reads.FIRST,
        format=FileFormat.TOML,
        key=("mcp_servers",),
        stdio=StdioShape(entries.plain_stdio, TESTED),
        http=HttpShape(entries.codex_http, TESTED, wire=TESTED),
        by_variable=entries.codex_reference,
    ),
    auth=Auth(
        files=(login(movable(".codex/auth.json", "CODEX_HOME", "auth.json", DOCUMENTED)),),
        elsewhere="a keyring",
    ),
    writes=Writes(mcp=True, skills=True),
    engine=NodeEngine(">=16", None, TESTED),
)
