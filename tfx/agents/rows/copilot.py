"""Copilot CLI, tried with 1.0.102; knows nothing of the other agents."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    Agent,
    Auth,
    FileFormat,
    HttpShape,
    LoginFile,
    McpTarget,
    Minimum,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import DOCUMENTED, EXPANDS_BRACES, TESTED, movable, npm

# Once COPILOT_HOME is set, Copilot reads the skills in it and no others (S-28).
_SKILLS = movable(".agents/skills", "COPILOT_HOME", "skills")
_MCP = movable(".copilot/mcp-config.json", "COPILOT_HOME", "mcp-config.json")

COPILOT = Agent(
    name="copilot",
    label="Copilot CLI",
    binaries=("copilot",),
    packages=(npm("@github/copilot"),),
    version=VersionRule(
        re.compile(r"GitHub Copilot CLI (?P<version>\S+?)\.?"), timeout_s=30, evidence=TESTED
    ),
    config=movable(".copilot", "COPILOT_HOME"),
    skills=_SKILLS,
    skills_read=(_SKILLS, movable(".copilot/skills", "COPILOT_HOME", "skills")),
    mcp=McpTarget(
        files=(_MCP,),
        fresh=_MCP,
        reads=Reads.FIRST,
        format=FileFormat.JSONC,
        key=("mcpServers",),
        stdio=StdioShape(entries.copilot_stdio, TESTED),
        http=HttpShape(entries.copilot_http, TESTED, wire=TESTED),
        by_variable=entries.token_in_braces(entries.copilot_http),
        expansion=EXPANDS_BRACES,
    ),
    auth=Auth(
        files=(
            LoginFile(
                movable(".copilot/config.json", "COPILOT_HOME", "config.json", DOCUMENTED),
                proves_login=False,
            ),
        ),
        variables=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
        elsewhere="a keyring",
    ),
    writes=Writes(mcp=True, skills=True),
    minimums=(
        Minimum("skills", "1.0.11", DOCUMENTED),
        Minimum("settings.json", "1.0.35", DOCUMENTED),
        Minimum("COPILOT_HOME", "1.0.40", DOCUMENTED, conditional=True),
    ),
)
