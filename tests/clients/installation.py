"""The real clients from npm, once per machine, at the versions the catalogue was made with.

They land in the user's cache directory and are shared by all runs and workers; nothing of the
real HOME is given to them (running.py).
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
_INSTALL_TIMEOUT_S = 900


class Unavailable(Exception):
    """The clients cannot be had on this machine; the message says why."""


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


def cache_root() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tfx-tests"


def installation() -> Installation:
    """Return the installed clients, installing them first if no earlier run did.

    Raises Unavailable without a usable npm and Node.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise Unavailable("node and npm are not on PATH")
    _check_node(node)
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    place = root / f"clients-{_key()}"
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            _install(npm, place)
    found = Installation(place / "node_modules" / ".bin", Path(node).parent)
    missing = [name for name in NAMES if not found.program(name).exists()]
    if missing:
        raise Unavailable(f"npm installed no {', '.join(missing)} into {place}")
    return found


def _check_node(node: str) -> None:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.strip().removeprefix("v")
    if not version.partition(".")[0].isdigit() or int(version.partition(".")[0]) < _MINIMUM_NODE:
        raise Unavailable(f"node {version or done.stderr.strip()} is older than {_MINIMUM_NODE}")


def _key() -> str:
    what = [_LAYOUT, sorted(PINNED.items()), sys.platform, platform.machine()]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]


def _install(npm: str, place: Path) -> None:
    building = place.with_name(f"{place.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    packages = [f"{name}@{version}" for name, version in PINNED.items()]
    cache = building.with_name(f"{place.name}.npm")  # ours, so that ~/.npm stays as it is
    options = ["--prefix", str(building), "--cache", str(cache), "--no-audit", "--no-fund"]
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
