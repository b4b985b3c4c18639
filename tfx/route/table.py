"""The route table as typed rows, with the user's overrides applied (R-1).

Reads the bundled table and nothing else; what is installed is found out elsewhere.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tfx.config.settings_model import RouteSettings
from tfx.errors import InvalidRequest, JsonValue


class Verb(StrEnum):
    """What the CLI is asked to do."""

    RUN = "run"
    REVIEW = "review"
    NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Role:
    """One row: who does it, how hard it thinks, how long it may take, how callers run it.

    `cli` is the preferred one; `mode` is foreground or background, with `overseen` or without.
    """

    name: str
    cli: str
    verb: Verb
    effort: str
    timeout_s: int
    mode: str
    profile: str


@dataclass(frozen=True, slots=True)
class CliRow:
    """How one CLI is called; the empty tuple where it has no such flag. `{}` is the value.

    `needs` maps the name of a flag to the pattern that the installed version's help must have.
    Patterns stay text until one is used: compiling them all would be most of a short run.
    """

    name: str
    argv: tuple[str, ...]
    help: tuple[str, ...]
    efforts: Mapping[str, str]
    effort: tuple[str, ...]
    needs: Mapping[str, str]
    last: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    server_off: tuple[str, ...] = ()
    servers_only: tuple[str, ...] = ()
    skip_approvals: tuple[str, ...] = ()
    tokens: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """MCP servers of one purpose: the names they go by and the line that recommends them."""

    name: str
    names: str
    advice: str

    def includes(self, server: str) -> bool:
        """Say whether a server of this name is of this kind."""
        return re.search(self.names, server) is not None


@dataclass(frozen=True, slots=True)
class IssueRow:
    """What a CLI says when something is wrong, and what helps; `{cli}` is its name.

    `always`: looked for in the error output of a successful run too.
    """

    code: str
    pattern: str
    remedy: str
    always: bool = False

    def is_in(self, text: str) -> bool:
        """Say whether a CLI's words have this issue in them."""
        return re.search(self.pattern, text) is not None


@dataclass(frozen=True, slots=True)
class Table:
    """Everything the table says; `profiles` maps each to the names of its kinds."""

    order: tuple[str, ...]
    roles: Mapping[str, Role]
    clis: Mapping[str, CliRow]
    kinds: Mapping[str, Kind]
    profiles: Mapping[str, tuple[str, ...]]
    issues: tuple[IssueRow, ...]

    def role(self, name: str) -> Role:
        """Return a role; raises InvalidRequest that lists the known ones."""
        found = self.roles.get(name)
        if found is None:
            known: list[JsonValue] = list(self.roles)
            raise InvalidRequest(
                f"unknown role {name!r}; the roles are {', '.join(self.roles)}",
                code="unknown-role",
                hint="tfx route roles",
                details={"role": name, "known": known},
            )
        return found

    def profile(self, name: str, role: Role) -> str:
        """Return the profile that a word means: `auto` is the role's own (R-1)."""
        if name == "auto":
            return role.profile
        if name not in self.profiles:
            raise InvalidRequest(
                f"unknown profile {name!r}; the profiles are auto, {', '.join(self.profiles)}",
                code="unknown-profile",
                hint="tfx route --help",
            )
        return name

    def cli(self, name: str) -> CliRow:
        """Return the row of a CLI; raises InvalidRequest that lists the known ones."""
        if name not in self.clis:
            raise InvalidRequest(
                f"unknown CLI {name!r}; it is one of auto, {', '.join(self.order)}",
                code="unknown-cli",
                hint="tfx route --help",
            )
        return self.clis[name]

    def with_overrides(self, settings: RouteSettings) -> Table:
        """Return the table as the user's [route] settings change it."""
        roles = dict(self.roles)
        for name, said in settings.roles.items():
            role = roles[name]
            roles[name] = replace(
                role,
                cli=said.cli or role.cli,
                effort=said.effort or role.effort,
                timeout_s=said.timeout_s or role.timeout_s,
                profile=said.profile or role.profile,
            )
        return replace(self, roles=roles)


def bundled() -> Table:
    """Return the table that ships with tfx."""
    raw = tomllib.loads(Path(__file__).with_name("table.toml").read_text("utf-8"))
    return Table(
        order=tuple(raw["order"]),
        roles={
            name: Role(name=name, **{**row, "verb": Verb(row["verb"])})
            for name, row in raw["roles"].items()
        },
        clis={name: _cli(name, row) for name, row in raw["clis"].items()},
        kinds={name: Kind(name, **row) for name, row in raw["kinds"].items()},
        profiles={name: tuple(kinds) for name, kinds in raw["profiles"].items()},
        issues=tuple(IssueRow(**row) for row in raw["issues"]),
    )


def _cli(name: str, row: Mapping[str, Any]) -> CliRow:
    words = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return CliRow(
        name=name,
        efforts=row["efforts"],
        needs=row.get("needs", {}),
        tokens=row.get("tokens"),
        **words,
    )
