"""Where agent CLIs live besides PATH, for callers with an empty one: hooks, cron, other agents.

Knows directories only; the same ones as the route script's, a test holds them equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tfx.core.files import read_plain
from tfx.core.paths import Paths

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")
_PREFIX = re.compile(r'^\s*prefix\s*=\s*"?(?P<value>.*?)"?\s*$', re.MULTILINE)


def searched(paths: Paths) -> Paths:
    """Return the same paths with every usual directory behind PATH; the first hit wins."""
    entries = [entry for entry in paths.env.get("PATH", "").split(":") if entry.startswith("/")]
    entries += [str(directory) for directory in usual_directories(paths)]
    env = {**paths.env, "PATH": ":".join(dict.fromkeys(entries))}
    return replace(paths, env=env)


def agent_path(paths: Paths, program: Path) -> str:
    """Return the PATH for an agent: the caller's, then what holds node, git and the like.

    A CLI that is not on the caller's PATH brings its own node: its directory comes first.
    """
    callers = [entry for entry in paths.env.get("PATH", "").split(":") if entry]
    entries = callers if str(program.parent) in callers else [str(program.parent), *callers]
    usual = [str(one) for one in (*usual_directories(paths), *map(Path, _SYSTEM)) if one.is_dir()]
    return ":".join(dict.fromkeys([*entries, *usual]))


def usual_directories(paths: Paths) -> tuple[Path, ...]:
    """Return the directories to look into behind PATH, the most likely first.

    `TFX_ROUTE_DIRS` replaces them all.
    """
    given = paths.env.get("TFX_ROUTE_DIRS")
    if given is not None:
        return tuple(Path(entry) for entry in given.split(":") if entry.startswith("/"))
    return tuple(dict.fromkeys(_usual(paths)))


def _usual(paths: Paths) -> Iterator[Path]:
    home, data = paths.home, paths.data_dir.parent

    def at(variable: str, default: Path) -> Path:
        return paths.variable(variable) or default

    yield from (home / ".local/bin", home / "bin")
    yield from _npm(paths)
    yield from _nvm(at("NVM_DIR", home / ".nvm"))
    for fnm in (at("FNM_DIR", data / "fnm"), home / ".fnm"):
        yield fnm / "aliases/default/bin"
        yield from _versions(fnm / "node-versions", "installation/bin")
    yield at("VOLTA_HOME", home / ".volta") / "bin"
    yield from (at("ASDF_DATA_DIR", home / ".asdf") / "shims", home / ".asdf/bin")
    yield at("MISE_DATA_DIR", data / "mise") / "shims"
    yield home / ".nodenv/shims"
    yield at("N_PREFIX", home / "n") / "bin"
    yield from (at("PNPM_HOME", data / "pnpm"), home / "Library/pnpm")
    yield at("BUN_INSTALL", home / ".bun") / "bin"
    yield from (home / ".yarn/bin", home / ".claude/local", home / ".opencode/bin")
    yield at("HOMEBREW_PREFIX", Path("/opt/homebrew")) / "bin"
    yield from (Path("/opt/homebrew/bin"), home / ".linuxbrew/bin")
    yield Path("/home/linuxbrew/.linuxbrew/bin")
    yield from (Path(directory) for directory in (*_SYSTEM, "/snap/bin"))
    yield from (home / ".nix-profile/bin", Path("/nix/var/nix/profiles/default/bin"))
    yield Path("/run/current-system/sw/bin")


def _npm(paths: Paths) -> Iterator[Path]:
    for variable in ("NPM_CONFIG_PREFIX", "npm_config_prefix"):
        if (prefix := paths.variable(variable)) is not None:
            yield prefix / "bin"
    try:
        text = read_plain(paths.home / ".npmrc").decode("utf-8", "surrogateescape")
    except OSError:
        text = ""
    for found in _PREFIX.finditer(text):
        value = found["value"].replace("${HOME}", str(paths.home))
        yield (paths.home / value.removeprefix("~/")) / "bin"
    yield from (paths.home / ".npm-global/bin", paths.home / ".npm-packages/bin")


def _nvm(root: Path) -> Iterator[Path]:
    try:
        default = read_plain(root / "alias/default").decode("utf-8").strip().removeprefix("v")
    except (OSError, UnicodeDecodeError):
        default = ""
    versions = tuple(_versions(root / "versions/node", "bin"))
    if default[:1].isdigit():
        for directory in versions:
            version = directory.parent.name.removeprefix("v")
            if version == default or version.startswith(f"{default}."):
                yield directory
    yield from versions


def _versions(root: Path, inside: str) -> Iterator[Path]:
    """Yield ROOT/v<version>/INSIDE, the newest version first."""
    try:
        names = os.listdir(root)  # noqa: PTH208  (names are enough)
    except OSError:
        return
    versions = [name for name in names if re.match(r"v\d", name)]

    def numbers(name: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", name)]

    for name in sorted(versions, key=numbers, reverse=True):
        yield root / name / inside
