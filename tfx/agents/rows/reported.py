"""The rows of agents that are detected and reported, never written to (S-10).

What stands here is documented by the vendor or only believed; each row says which.
"""

from __future__ import annotations

from tfx.agents import entries
from tfx.agents.model import (
    XDG_CONFIG_HOME,
    Agent,
    Auth,
    FileFormat,
    HttpShape,
    McpTarget,
    NodeEngine,
    Reads,
    StdioShape,
    VersionRule,
)
from tfx.agents.rows.facts import (
    DOCUMENTED,
    TESTED,
    UNVERIFIED,
    fixed,
    login,
    movable,
    npm,
    pypi,
)

_ANTIGRAVITY_MCP = fixed(".gemini/config/mcp_config.json", UNVERIFIED)

ANTIGRAVITY = Agent(
    name="antigravity",
    label="Antigravity",
    binaries=("agy",),
    packages=(),
    version=VersionRule(),
    config=fixed(".gemini/antigravity-cli", UNVERIFIED),
    skills_read=(
        fixed(".gemini/config/skills", UNVERIFIED),
        fixed(".gemini/antigravity-cli/skills", UNVERIFIED),
        fixed(".gemini/skills", UNVERIFIED),
    ),
    mcp=McpTarget(
        files=(_ANTIGRAVITY_MCP,),
        fresh=_ANTIGRAVITY_MCP,
        reads=Reads.FIRST,
        format=FileFormat.JSON,
        key=("mcpServers",),
        stdio=StdioShape(entries.plain_stdio, UNVERIFIED),
        http=HttpShape(entries.antigravity_http, UNVERIFIED),
    ),
    auth=Auth(elsewhere="a place that is not known"),
)

_CURSOR_MCP = fixed(".cursor/mcp.json", DOCUMENTED)

CURSOR = Agent(
    name="cursor",
    label="Cursor CLI",
    binaries=("agent", "cursor-agent"),
    packages=(),
    version=VersionRule(),
    config=fixed(".cursor", DOCUMENTED),
    skills_read=(fixed(".cursor/skills", DOCUMENTED), fixed(".agents/skills", UNVERIFIED)),
    mcp=McpTarget(
        files=(_CURSOR_MCP,),
        fresh=_CURSOR_MCP,
        reads=Reads.FIRST,
        format=FileFormat.JSON,
        key=("mcpServers",),
        stdio=StdioShape(entries.plain_stdio, DOCUMENTED),
        http=HttpShape(entries.plain_http, DOCUMENTED),
    ),
    auth=Auth(
        files=(
            login(
                movable(".config/cursor/auth.json", XDG_CONFIG_HOME, "cursor/auth.json", UNVERIFIED)
            ),
        ),
        variables=("CURSOR_API_KEY",),
        elsewhere="cli-config.json, whose content is not read",
    ),
    has_namesakes=True,
)

_GOOSE_CONFIG = movable(
    ".config/goose/config.yaml", XDG_CONFIG_HOME, "goose/config.yaml", UNVERIFIED
)

GOOSE = Agent(
    name="goose",
    label="Goose",
    binaries=("goose",),
    packages=(),
    version=VersionRule(),
    config=movable(".config/goose", XDG_CONFIG_HOME, "goose", UNVERIFIED),
    skills_read=(
        fixed(".agents/skills", UNVERIFIED),
        movable(".config/agents/skills", XDG_CONFIG_HOME, "agents/skills", UNVERIFIED),
    ),
    mcp=McpTarget(
        files=(_GOOSE_CONFIG,),
        fresh=_GOOSE_CONFIG,
        reads=Reads.FIRST,
        format=FileFormat.YAML,
        key=("extensions",),
        stdio=StdioShape(entries.goose_stdio, UNVERIFIED),
        http=None,  # the key of the header is not known
    ),
    auth=Auth(
        files=(
            login(
                movable(
                    ".config/goose/secrets.yaml", XDG_CONFIG_HOME, "goose/secrets.yaml", DOCUMENTED
                )
            ),
        ),
        elsewhere="a keyring",
    ),
    has_namesakes=True,
)

_KIMI_MCP = movable(".kimi-code/mcp.json", "KIMI_CODE_HOME", "mcp.json", UNVERIFIED)

KIMI = Agent(
    name="kimi",
    label="Kimi Code",
    binaries=("kimi",),
    packages=(npm("@moonshot-ai/kimi-code"),),
    version=VersionRule(),
    config=movable(".kimi-code", "KIMI_CODE_HOME", "", UNVERIFIED),
    skills_read=(
        movable(".kimi-code/skills", "KIMI_CODE_HOME", "skills", UNVERIFIED),
        fixed(".agents/skills", UNVERIFIED),
    ),
    mcp=McpTarget(
        files=(_KIMI_MCP,),
        fresh=_KIMI_MCP,
        reads=Reads.FIRST,
        format=FileFormat.JSON,
        key=("mcpServers",),
        stdio=None,
        http=None,
    ),
    auth=Auth(
        files=(
            login(movable(".kimi-code/credentials", "KIMI_CODE_HOME", "credentials", UNVERIFIED)),
        ),
        elsewhere="a place that is not known",
    ),
    engine=NodeEngine(">=22.19", None, TESTED),
    has_namesakes=True,
)

_GROK_CONFIG = fixed(".grok/config.toml", UNVERIFIED)

GROK = Agent(
    name="grok",
    label="Grok Build",
    binaries=("grok",),
    packages=(npm("@xai-official/grok"),),
    version=VersionRule(),
    config=fixed(".grok", DOCUMENTED),
    skills_read=(fixed(".grok/skills", UNVERIFIED),),
    mcp=McpTarget(
        files=(_GROK_CONFIG,),
        fresh=_GROK_CONFIG,
        reads=Reads.FIRST,
        format=FileFormat.TOML,
        key=("mcp_servers",),
        stdio=StdioShape(entries.plain_stdio, UNVERIFIED),
        http=None,  # the key of the header is not known
    ),
    auth=Auth(
        files=(login(fixed(".grok/auth.json", DOCUMENTED)),),
        elsewhere="a place that is not known",
    ),
    has_namesakes=True,
)

AIDER = Agent(
    name="aider",
    label="Aider",
    binaries=("aider",),
    packages=(pypi("aider-chat", DOCUMENTED),),
    version=VersionRule(),
    config=None,
    auth=Auth(
        variables=("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"),
        elsewhere="another provider's variable",
    ),
)
