"""Programs on PATH as real executable files: npm-like packages and plain scripts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import bare_env
from tfx.core.paths import Paths


def script(directory: Path, name: str, body: str, *, mode: int = 0o755) -> Path:
    """Write an executable shell script."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(mode)
    return path


def npm_package(prefix: Path, package: str, version: str, name: str, body: str = "exit 9") -> Path:
    """Install a package as `npm i -g --prefix` does; return the link in `bin`."""
    place = prefix / "lib" / "node_modules" / package
    program = script(place / "bin", f"{name}.js", body)
    (place / "package.json").write_text(json.dumps({"name": package, "version": version}), "utf-8")
    link = prefix / "bin" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(program)
    return link


def paths_of(home: Path, *path: Path, **variables: str) -> Paths:
    """The Paths of a HOME with these directories, and the system's, on PATH."""
    search = ":".join([*map(str, path), "/usr/bin", "/bin"])
    return Paths.resolve(bare_env(home, PATH=search, **variables))
