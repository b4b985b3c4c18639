"""Pinned packages from npm, installed once per machine into the user's cache directory.

Shared by all runs and workers; knows no package. Nothing of the real HOME is given to them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

_INSTALL_TIMEOUT_S = 900


class Unavailable(Exception):
    """The packages cannot be had on this machine; the message says why."""


def cache_root() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tfx-tests"


def installed_once(name: str, pinned: Mapping[str, str], layout: int, *what: str) -> Path:
    """Return the `node_modules` of these packages, installing them if no earlier run did.

    With another `layout`, or `what` else an installation depends on, it gets a place of its own.
    Raises Unavailable without a usable npm.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not on PATH")
    key = hashlib.sha256(json.dumps([layout, sorted(pinned.items()), *what]).encode())
    place = cache_root() / f"{name}-{key.hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            _install(npm, place, [f"{package}@{version}" for package, version in pinned.items()])
    return place / "node_modules"


def _install(npm: str, place: Path, packages: list[str]) -> None:
    building = place.with_name(f"{place.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
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
