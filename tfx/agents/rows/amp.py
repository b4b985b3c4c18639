"""Amp, tried with 0.0.1790142911-g7618fb; knows nothing of the other agents."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    XDG_CONFIG_HOME,
    XDG_DATA_HOME,
    Agent,
    Auth,
    FileFormat,
    HttpShape,
    McpTarget,
    Place,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import DOCUMENTED, TESTED, UNVERIFIED, login, movable, npm


def _in_config(name: str) -> Place:
    return movable(f".config/amp/{name}", XDG_CONFIG_HOME, f"amp/{name}")


_JSON = _in_config("settings.json")

AMP = Agent(
    name="amp",
    label="Amp",
    binaries=("amp",),
    packages=(npm("@ampcode/cli"), npm("@sourcegraph/amp")),
    version=VersionRule(
        re.compile(r"(?P<version>\S+) \(released [^)]*\)"),
        build_mark=re.compile(r"-g[0-9a-f]+$"),
        evidence=TESTED,
    ),
    config=movable(".config/amp", XDG_CONFIG_HOME, "amp"),
    skills_read=(movable(".config/agents/skills", XDG_CONFIG_HOME, "agents/skills", DOCUMENTED),),
    mcp=McpTarget(
        # Amp reads settings.jsonc only as long as there is no settings.json: a new settings.json
        # beside it would switch all of the user's settings off.
        files=(_JSON, _in_config("settings.jsonc")),
        fresh=_JSON,
        reads=Reads.FIRST,
        format=FileFormat.JSONC,
        key=("amp.mcpServers",),  # one key with a dot in it
        stdio=StdioShape(entries.plain_stdio, TESTED),
        http=HttpShape(entries.plain_http, TESTED),
    ),
    auth=Auth(
        files=(
            login(
                movable(
                    ".local/share/amp/secrets.json", XDG_DATA_HOME, "amp/secrets.json", UNVERIFIED
                )
            ),
        ),
        variables=("AMP_API_KEY",),
        elsewhere="a place that is not known",
    ),
    writes=Writes(mcp=True),
)
