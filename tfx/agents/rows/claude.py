"""Claude Code, tried with 2.1.332; knows nothing of the other agents."""

from __future__ import annotations

import re

from tfx.agents import entries
from tfx.agents.model import (
    Agent,
    Auth,
    FileFormat,
    Hooks,
    HttpShape,
    McpTarget,
    Minimum,
    NodeEngine,
    Place,
    Reads,
    StdioShape,
    VersionRule,
    Writes,
)
from tfx.agents.rows.facts import DOCUMENTED, EXPANDS_BRACES, TESTED, login, movable, npm


def _in_config(name: str) -> Place:
    return movable(f".claude/{name}", "CLAUDE_CONFIG_DIR", name)


_STATE = movable(".claude.json", "CLAUDE_CONFIG_DIR", ".claude.json")
# An older name of the same file: while it exists, Claude reads it and not .claude.json.
_OLD_STATE = _in_config(".config.json")

# As `claude doctor` lists them when settings.json names an unknown event.
_EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
    "PreSkillShellCommand",
)

CLAUDE = Agent(
    name="claude",
    label="Claude Code",
    binaries=("claude",),
    packages=(npm("@anthropic-ai/claude-code"),),
    version=VersionRule(re.compile(r"(?P<version>\S+) \(Claude Code\)"), evidence=TESTED),
    config=movable(".claude", "CLAUDE_CONFIG_DIR"),
    config_counts=True,
    skills=_in_config("skills"),
    skills_read=(_in_config("skills"),),
    mcp=McpTarget(
        files=(_OLD_STATE, _STATE),
        fresh=_STATE,
        reads=Reads.FIRST,
        format=FileFormat.JSON,
        key=("mcpServers",),
        stdio=StdioShape(entries.typed_stdio, TESTED),
        http=HttpShape(entries.typed_http, TESTED, wire=TESTED),
        by_variable=entries.token_in_braces(entries.typed_http),
        expansion=EXPANDS_BRACES,
        projects=("projects",),
        project_file=".mcp.json",
    ),
    hooks=Hooks(_in_config("settings.json"), ("hooks",), _EVENTS, "2.1.332", TESTED),
    auth=Auth(
        files=(
            login(
                movable(
                    ".claude/.credentials.json",
                    "CLAUDE_CONFIG_DIR",
                    ".credentials.json",
                    DOCUMENTED,
                )
            ),
        ),
        variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        elsewhere="the macOS keychain",
        elsewhere_on=("darwin",),
    ),
    writes=Writes(mcp=True, skills=True, hooks=True),
    minimums=(
        Minimum("skills", "2.0.20", DOCUMENTED),
        Minimum(
            "a bad hook leaves the rest of settings.json valid",
            "2.1.122",
            DOCUMENTED,
            conditional=True,
        ),
        Minimum("a settings.json that is a relative link", "2.1.181", DOCUMENTED, conditional=True),
        Minimum("a SKILL.md with a byte order mark", "2.1.239", DOCUMENTED, conditional=True),
    ),
    engine=NodeEngine(">=22.0.0", "2.1.198", TESTED),
)
