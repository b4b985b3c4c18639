"""Documents as clients write them, and the entry that tests put into them."""

from __future__ import annotations

from tfx.errors import JsonValue

ENTRY: JsonValue = {"type": "stdio", "command": "/opt/tfx", "args": ["hub", "bridge"]}


OPENCODE = """\
// my opencode configuration
{
  "$schema": "https://opencode.ai/config.json",
  "theme": "gruvbox", // not "dark"
  "mcp": {
    // servers I trust
    "files": {
      "type": "local",
      "command": ["npx", "files"], /* pinned
                                      by hand */
    },
  },
  "keybinds": { "leader": "ctrl+x" },
}
"""
