"""The entry that tests put into TOML, and where."""

from __future__ import annotations

from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue

ENTRY: KeyPath = ("mcp_servers", "tfx-hub")


STDIO: dict[str, JsonValue] = {
    "command": "/home/é u/bin/tfx",
    "args": ["hub", "bridge"],
    "env": {"TFX_AGENT": "codex"},
}
