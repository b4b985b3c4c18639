"""The directories in which version managers and installers put programs.

Knows where they keep things, not whether a program there works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import read_plain
from tfx.core.paths import Paths
from tfx.shells.binaries import real_path, runnable

_SHORT_BYTES = 4096  # of a file that names a version
_NPM = "npm prefix"


@dataclass(frozen=True, slots=True)
class Manager:
    """One program that installs programs.

    Its root is what `variable` says or the first of `roots` that is there (relative: to the
    home directory). Programs are in `bins` below it, where `*` stands for what the label tells
    (a version, or a tool and its version). `default` is the file or link that names the version
    a new shell gets.
    """

    name: str
    variable: str
    roots: tuple[str, ...]
    bins: tuple[str, ...]
    default: str = ""


MANAGERS = (
    Manager("nvm", "NVM_DIR", (".nvm",), ("versions/node/*/bin",), "alias/default"),
    Manager(
        "fnm",
        "FNM_DIR",
        (".local/share/fnm", ".fnm"),
        ("node-versions/*/installation/bin",),
        "aliases/default",
    ),
    Manager("volta", "VOLTA_HOME", (".volta",), ("bin",)),
    Manager("asdf", "ASDF_DATA_DIR", (".asdf",), ("shims", "installs/*/*/bin")),
    Manager("mise", "MISE_DATA_DIR", (".local/share/mise",), ("shims", "installs/*/*/bin")),
    Manager("nodenv", "NODENV_ROOT", (".nodenv",), ("shims", "versions/*/bin"), "version"),
    Manager("pnpm", "PNPM_HOME", (".local/share/pnpm",), ("", "bin")),
    Manager("bun", "BUN_INSTALL", (".bun",), ("bin",)),
    Manager(
        "brew",
        "HOMEBREW_PREFIX",
        ("/home/linuxbrew/.linuxbrew", ".linuxbrew", "/opt/homebrew"),
        ("bin",),
    ),
    Manager(_NPM, "NPM_CONFIG_PREFIX", (".npm-global", ".npm-packages"), ("bin",)),
    Manager("claude local", "", (".claude/local",), ("", "node_modules/.bin")),
    Manager("user", "", (".local",), ("bin",)),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A program directory of a manager; `version` is None for its shims."""

    manager: str
    directory: Path
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Stray:
    """A copy of a program that lies outside every probed PATH (D-86)."""

    path: Path
    manager: str
    version: str | None
    default_version: str | None


def roots(paths: Paths) -> Mapping[str, tuple[Path, ...]]:
    """Return the directories of each manager that may hold something, spelled and resolved."""
    data_home = paths.data_dir.parent
    found: dict[str, tuple[Path, ...]] = {}
    for manager in MANAGERS:
        named = paths.variable(manager.variable) if manager.variable else None
        spelled = [named] if named else []
        if manager.name == _NPM and (prefix := npm_prefix(paths)) is not None:
            spelled.append(prefix)
        for root in manager.roots:
            if root.startswith(".local/share/"):
                spelled.append(data_home / root.removeprefix(".local/share/"))
            spelled.append(paths.home / root)
        resolved = [real_path(root) for root in spelled]
        found[manager.name] = tuple(dict.fromkeys([*spelled, *resolved]))
    return found


def npm_prefix(paths: Paths) -> Path | None:
    """Return the prefix of npm that the user chose, by variable or in ~/.npmrc, or None."""
    for variable in ("NPM_CONFIG_PREFIX", "npm_config_prefix"):
        if (named := paths.variable(variable)) is not None:
            return named
    try:
        lines = read_plain(paths.home / ".npmrc").decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "prefix" and value.strip():
            text = value.strip().strip("\"'").replace("${HOME}", str(paths.home))
            return paths.home / text.removeprefix("~/")
    return None


def place_of(directory: Path, roots: Mapping[str, tuple[Path, ...]]) -> Place | None:
    """Return which manager a directory of PATH belongs to, or None.

    The directory is compared as it is and resolved: fnm's per-shell directories are links.
    """
    spellings = (directory, real_path(directory))
    for manager in MANAGERS:
        for root in roots[manager.name]:
            for spelling in spellings:
                if spelling.is_relative_to(root) and (place := _inside(manager, root, spelling)):
                    return place
    return None


def _inside(manager: Manager, root: Path, directory: Path) -> Place | None:
    parts = directory.relative_to(root).parts
    for pattern in manager.bins:
        wanted = Path(pattern).parts
        if len(wanted) != len(parts):
            continue
        pairs = list(zip(wanted, parts, strict=True))
        if all(expected in {"*", actual} for expected, actual in pairs):
            stars = [actual for expected, actual in pairs if expected == "*"]
            return Place(manager.name, directory, "@".join(stars) or None)
    return None


def strays(name: str, paths: Paths) -> tuple[Stray, ...]:
    """Return the copies of a program in the usual places, whatever any PATH says (D-86)."""
    known = roots(paths)
    found: dict[Path, Stray] = {}
    for manager in MANAGERS:
        for root in known[manager.name]:
            for pattern in manager.bins:
                for directory in sorted(root.glob(pattern)) if pattern else [root]:
                    path = directory / name
                    place = _inside(manager, root, directory)
                    if place and runnable(path):
                        default = _default_version(manager, root)
                        stray = Stray(path, manager.name, place.version, default)
                        found.setdefault(real_path(directory) / name, stray)
    return tuple(found.values())


def _default_version(manager: Manager, root: Path) -> str | None:
    if not manager.default:
        return None
    file = root / manager.default
    try:
        if file.is_symlink():  # fnm: aliases/default -> node-versions/v22.2.0/installation
            return next((part for part in file.resolve().parts if part.startswith("v")), None)
        return read_plain(file, _SHORT_BYTES).decode("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
