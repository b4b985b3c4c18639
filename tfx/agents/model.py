"""What a catalogue row says of one agent CLI: identity, version, places, entry shapes, login files.

Knows no agent by name and writes nothing; the rows are in tested.py and reported.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from tfx.core.paths import Paths
from tfx.errors import JsonValue

HUB_ENTRY = "tfx-hub"
XDG_CONFIG_HOME = "XDG_CONFIG_HOME"
XDG_DATA_HOME = "XDG_DATA_HOME"

Entry: TypeAlias = dict[str, JsonValue]


class Evidence(StrEnum):
    """How well a fact is known; only tested facts are written by (S-10)."""

    TESTED = "tested"  # observed with the real client
    DOCUMENTED = "documented"  # vendor pages, changelog or the client's own source
    UNVERIFIED = "unverified"  # somebody else's word, or inference


class FileFormat(StrEnum):
    """The dialect of a shared file (S-67); YAML is only ever read (K-16)."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


class Registry(StrEnum):
    """Where a package of an agent comes from."""

    NPM = "npm"
    PYPI = "pypi"


class Reads(StrEnum):
    """Which of several possible files a client reads."""

    FIRST = "first"  # the first one that exists, the others not at all
    MERGED = "merged"  # all that exist, the first one winning


@dataclass(frozen=True, slots=True)
class Package:
    """A name under which a registry carries the agent."""

    registry: Registry
    name: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class MovedBy:
    """An environment variable that moves a place, and where the place then is inside it."""

    variable: str
    inside: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory of an agent: relative to HOME unless its variable moves it (S-17)."""

    default: str
    moved_by: MovedBy | None
    evidence: Evidence

    def resolve(self, paths: Paths) -> Path:
        """Return where it is for this environment; nothing has to exist there."""
        base = None if self.moved_by is None else _directory(paths, self.moved_by.variable)
        if base is None or self.moved_by is None:
            return paths.home / self.default
        return base / self.moved_by.inside


def _directory(paths: Paths, variable: str) -> Path | None:
    # An XDG variable holds an absolute path or counts as unset; the specification says so.
    if variable.startswith("XDG_") and not Path(paths.env.get(variable, "")).is_absolute():
        return None
    return paths.variable(variable)


@dataclass(frozen=True, slots=True)
class Stdio:
    """The hub connection as a command that speaks MCP on its standard streams (K-20)."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Http:
    """The hub connection as a URL with a bearer token."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class StdioShape:
    """How an agent spells a stdio entry."""

    build: Callable[[Stdio], Entry]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class HttpShape:
    """How an agent spells an HTTP entry, and whether the header was seen on the wire."""

    build: Callable[[Http], Entry]
    evidence: Evidence
    wire: Evidence = Evidence.UNVERIFIED


@dataclass(frozen=True, slots=True)
class Expansion:
    """Text inside values that a client replaces: `name` is the variable, `default` its stand-in.

    `keeps_unset` is true when an unset variable without default stays as it is written.
    """

    pattern: re.Pattern[str]
    keeps_unset: bool
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class McpTarget:
    """Where and how an agent's MCP servers are written.

    `files` are in the order in which the client prefers them; `fresh` is the one of them to
    create when none exists (S-19). `key` is the path to the object that holds the servers.
    `by_variable` builds an HTTP entry whose token stays in an environment variable (S-23).
    `projects` is the path to the object that holds, by directory, what the user gave one project:
    its servers beat those at `key`. `project_file` lies at a project's root and holds more, which
    the client starts once the user approved them.
    """

    files: tuple[Place, ...]
    fresh: Place
    reads: Reads
    format: FileFormat
    key: tuple[str, ...]
    stdio: StdioShape | None
    http: HttpShape | None
    by_variable: Callable[[str, str], Entry] | None = None
    expansion: Expansion | None = None
    projects: tuple[str, ...] = ()
    project_file: str = ""

    @property
    def entry_key(self) -> tuple[str, ...]:
        """The key path of our own entry."""
        return (*self.key, HUB_ENTRY)

    def existing(self, paths: Paths) -> tuple[Path, ...]:
        """Return the candidate files that are there, the preferred one first."""
        candidates = (place.resolve(paths) for place in self.files)
        return tuple(path for path in candidates if os.path.exists(path))  # noqa: PTH110  (an unreadable parent is "not there" here, not an error)

    def choose(self, paths: Paths, holds_entry: Callable[[Path], bool]) -> Path:
        """Return the file our entry belongs in (S-19).

        Where the client merges its files, an entry stays in the file that holds it already;
        else the preferred existing file, else the one to create.
        """
        existing = self.existing(paths)
        if self.reads is Reads.MERGED and len(existing) > 1:
            existing = tuple(filter(holds_entry, existing)) or existing
        return existing[0] if existing else self.fresh.resolve(paths)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where hooks are registered and which events the client knows (S-68, K-17)."""

    file: Place
    key: tuple[str, ...]
    events: tuple[str, ...]
    events_seen_on: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class LoginFile:
    """A file or directory whose existence says something about a login."""

    place: Place
    proves_login: bool


@dataclass(frozen=True, slots=True)
class Auth:
    """What shows a login without running the client or reading a secret (S-13, D-101).

    `elsewhere` names a further store that cannot be seen; then absence proves nothing. It may
    hold on the `sys.platform` values of `elsewhere_on` only. `config_key` is the top-level key of
    the agent's own settings without which that further store is empty.
    """

    files: tuple[LoginFile, ...] = ()
    variables: tuple[str, ...] = ()
    elsewhere: str | None = None
    elsewhere_on: tuple[str, ...] = ()
    config_key: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRule:
    """How the version is read from the output of `--version` (S-14, D-88).

    `line` must match a whole line and has a group `version`; None means the general rule.
    `build_mark` is cut off the end before versions are compared (D-89).
    """

    line: re.Pattern[str] | None = None
    build_mark: re.Pattern[str] | None = None
    timeout_s: float = 5
    evidence: Evidence = Evidence.UNVERIFIED


@dataclass(frozen=True, slots=True)
class Minimum:
    """The first version of a client with an ability tfx relies on (D-90).

    `conditional`: who does not use the ability misses nothing, and tfx cannot tell who does.
    """

    ability: str
    version: str
    evidence: Evidence
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class NodeEngine:
    """The Node a client's package asks for; `since`: the first version seen to ask (S-16)."""

    minimum: str
    since: str | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Writes:
    """What tfx may write for an agent (S-11); each needs tested facts (S-10)."""

    mcp: bool = False
    skills: bool = False
    hooks: bool = False


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent CLI.

    `has_namesakes`: other programs use its binary name, so the name alone proves nothing (S-15).
    `config_counts`: its config directory alone makes it installed (S-12).
    `skills` is the one root tfx writes (S-27, S-28); `skills_read` are all roots it reads.
    """

    name: str
    label: str
    binaries: tuple[str, ...]
    packages: tuple[Package, ...]
    version: VersionRule
    config: Place | None
    skills: Place | None = None
    skills_read: tuple[Place, ...] = ()
    mcp: McpTarget | None = None
    hooks: Hooks | None = None
    auth: Auth = Auth()
    writes: Writes = Writes()
    minimums: tuple[Minimum, ...] = ()
    engine: NodeEngine | None = None
    has_namesakes: bool = False
    config_counts: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that move its settings, each once (S-17)."""
        places = [self.config, self.skills, *(self.mcp.files if self.mcp is not None else ())]
        places += [self.hooks.file] if self.hooks is not None else []
        moved = (place.moved_by for place in places if place is not None)
        return tuple(dict.fromkeys(each.variable for each in moved if each is not None))
