"""The real clients from npm, once per machine, at the versions the catalogue was made with.

Where they land is a matter of tests/npm.py; nothing of the real HOME is given to them (running.py).
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.npm import Unavailable, installed_once

# Exact versions: npm on an older Node silently picks older releases by itself (S-16).
PINNED = {
    "@anthropic-ai/claude-code": "2.1.332",
    "@openai/codex": "0.171.0",
    "@google/gemini-cli": "0.61.0",
    "@github/copilot": "1.0.102",
    "opencode-ai": "1.18.33",
    "@sourcegraph/amp": "0.0.1790142911-g7618fb",
    "@qwen-code/qwen-code": "0.15.10",
}
NAMES = ("claude", "codex", "gemini", "copilot", "opencode", "amp", "qwen")

_LAYOUT = 1  # raise it when an installation of an older run must not be reused
_MINIMUM_NODE = 20


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the clients are and which Node runs them."""

    bin_dir: Path
    node_dir: Path

    def program(self, name: str) -> Path:
        return self.bin_dir / name

    @property
    def search_path(self) -> str:
        return f"{self.bin_dir}:{self.node_dir}:/usr/local/bin:/usr/bin:/bin"


def installation() -> Installation:
    """Return the installed clients, installing them first if no earlier run did.

    Raises Unavailable without a usable npm and Node.
    """
    node = shutil.which("node")
    if node is None:
        raise Unavailable("node is not on PATH")
    _check_node(node)
    modules = installed_once("clients", PINNED, _LAYOUT, sys.platform, platform.machine())
    found = Installation(modules / ".bin", Path(node).parent)
    missing = [name for name in NAMES if not found.program(name).exists()]
    if missing:
        raise Unavailable(f"npm installed no {', '.join(missing)} into {modules}")
    return found


def _check_node(node: str) -> None:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.strip().removeprefix("v")
    if not version.partition(".")[0].isdigit() or int(version.partition(".")[0]) < _MINIMUM_NODE:
        raise Unavailable(f"node {version or done.stderr.strip()} is older than {_MINIMUM_NODE}")
