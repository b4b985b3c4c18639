"""One row of the operation table.

Data only; it knows no operation by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfx.hub.models import Privilege, Toolset

if TYPE_CHECKING:
    import msgspec


@dataclass(frozen=True, slots=True)
class Operation:
    """One row: `POST /v1/<name>`, an MCP tool if it has a toolset, a method of a service.

    `command` is what the person at the machine runs for one that needs the operator credential.
    """

    name: str
    request: type[msgspec.Struct]
    response: type[msgspec.Struct]
    toolset: Toolset | None
    privilege: Privilege
    mutates: bool
    summary: str
    command: str | None = None


def row(
    name: str,
    request: type[msgspec.Struct],
    response: type[msgspec.Struct],
    summary: str,
    *,
    toolset: Toolset | None = None,
    privilege: Privilege = Privilege.BUS,
    mutates: bool = True,
    command: str | None = None,
) -> Operation:
    """Return a row; unless said otherwise it changes something and needs the bus token."""
    return Operation(name, request, response, toolset, privilege, mutates, summary, command)
