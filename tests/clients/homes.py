"""HOMEs to show to the real clients: entries and skills written with plain encoders, not by tfx."""

from __future__ import annotations

import json
from pathlib import Path

import tomlkit

from tfx.agents.model import Agent, FileFormat
from tfx.core.paths import Paths
from tfx.errors import JsonValue

# The variable that moves each agent's places, and where to inside the HOME.
MOVED = {
    "claude": "CLAUDE_CONFIG_DIR",
    "codex": "CODEX_HOME",
    "gemini": "GEMINI_CLI_HOME",
    "copilot": "COPILOT_HOME",
    "opencode": "XDG_CONFIG_HOME",
    "amp": "XDG_CONFIG_HOME",
    "qwen": "QWEN_HOME",
}


def moved(name: str, home: Path) -> dict[str, str]:
    return {MOVED[name]: str(home / "moved here")}


def paths_in(home: Path, variables: dict[str, str] | None = None) -> Paths:
    return Paths.resolve({"HOME": str(home), "PATH": "/usr/bin:/bin"} | (variables or {}))


def write_document(path: Path, document: dict[str, JsonValue], file_format: FileFormat) -> None:
    text = tomlkit.dumps(document) if file_format is FileFormat.TOML else json.dumps(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def write_entry(agent: Agent, paths: Paths, entry: JsonValue) -> Path:
    """Put a tfx-hub entry, and nothing else, where the catalogue says that it belongs."""
    assert agent.mcp is not None
    document = entry
    for key in reversed(agent.mcp.entry_key):
        document = {key: document}
    assert isinstance(document, dict)
    path = agent.mcp.choose(paths, lambda _: False)
    write_document(path, document, agent.mcp.format)
    return path


def write_skill(root: Path, name: str) -> Path:
    path = root / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'---\nname: {name}\ndescription: "A skill of the tests."\n---\nText.\n', "utf-8"
    )
    return path
