"""What a client says it sees, as plain data, and which of its complaints count.

Knows no client; each has a module of its own beside this one. Header values are fingerprints, or
None where the client hides them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.clients.running import OracleError, Output, fingerprint, without_secrets

Variables: TypeAlias = Mapping[str, str] | None

# What clients complain about that no configuration of ours can change.
_NOISE = re.compile(
    r"could not create PATH aliases"  # Codex, when its home is in the system's temp directory
    r"|find bubblewrap on PATH"
    r"|Ripgrep is not available"
    r"|from Amp account"  # Amp, without a network
    r"|DeprecationWarning|ExperimentalWarning"
)
_COMPLAINT = re.compile(r"(?i)\bwarn|\berror\b|\binvalid\b|conflict|duplicate|\bignored\b")


@dataclass(frozen=True, slots=True)
class SeenServer:
    """One MCP server as a client lists it; `command` is the command line joined by spaces.

    `headers` is None where the client shows none at all, `connected` where it did not try.
    """

    name: str
    command: str | None = None
    url: str | None = None
    headers: Mapping[str, str | None] | None = None
    connected: bool | None = None


@dataclass(frozen=True, slots=True)
class SeenSkill:
    """One skill as a client lists it; `path` is its SKILL.md, called as in the original HOME."""

    name: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Servers:
    servers: tuple[SeenServer, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skills:
    """The user's skills; those a client brings along itself are left out where it tells."""

    skills: tuple[SeenSkill, ...]
    warnings: tuple[str, ...] = ()

    def named(self, name: str) -> list[SeenSkill]:
        return [skill for skill in self.skills if skill.name == name]


def warnings_in(*texts: str) -> tuple[str, ...]:
    lines = (line.strip() for text in texts for line in without_secrets(text).splitlines())
    return tuple(line for line in lines if _COMPLAINT.search(line) and not _NOISE.search(line))


def succeeded(output: Output) -> Output:
    if output.code != 0:
        raise OracleError(output)
    return output


def prints(headers: Mapping[str, str] | None) -> dict[str, str | None]:
    return {
        name: None if set(value) <= {"*"} else fingerprint(value)
        for name, value in (headers or {}).items()
    }


def joined(command: str, args: list[str] | None) -> str:
    return " ".join([command, *(args or [])])
