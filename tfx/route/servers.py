"""Which MCP servers a CLI really has configured, and what a profile makes of them.

Reads names only, never a command, header or token; writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfx.agents.catalogue import find
from tfx.agents.model import FileFormat
from tfx.config import jsonc, toml
from tfx.config.keypath import MISSING
from tfx.core.files import read_plain
from tfx.core.paths import Paths
from tfx.errors import JsonValue, TfxError
from tfx.route.table import Kind, Table

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Servers:
    """The names of the servers that are switched on, and what the profile says of them."""

    names: tuple[str, ...]
    advice: tuple[str, ...]
    left_out: tuple[str, ...]


def servers_for(paths: Paths, table: Table, cli: str, profile: str) -> Servers:
    """Return the configured servers of a CLI as a profile wants them used.

    Advice names only servers that are there. Left out are those of a known kind that the profile
    has no use for; a server of no known kind is never left out.
    """
    names = configured(paths, cli)
    wanted = table.profiles[profile]
    kinds = {name: _kind(name, table) for name in names}
    advice = []
    for kind in wanted:
        of_kind = [name for name in names if (found := kinds[name]) and found.name == kind]
        if of_kind:
            advice.append(table.kinds[kind].advice.format(" or ".join(of_kind)))
    left_out = tuple(name for name in names if (found := kinds[name]) and found.name not in wanted)
    return Servers(names, tuple(advice), left_out)


def _kind(name: str, table: Table) -> Kind | None:
    return next((kind for kind in table.kinds.values() if kind.includes(name)), None)


def configured(paths: Paths, cli: str) -> tuple[str, ...]:
    """Return the names of the servers in a CLI's own files; an unreadable file has none.

    Names that are not plain words are passed over: they would need quoting in the CLI's way.
    """
    target = find(cli).mcp
    if target is None:
        return ()
    found: dict[str, None] = {}
    for file in target.existing(paths):
        try:
            data = read_plain(file)
            reader = toml if target.format is FileFormat.TOML else jsonc
            servers = reader.get(data, target.key)
        except (OSError, TfxError):
            continue
        if servers is not MISSING and isinstance(servers, dict):
            found |= dict.fromkeys(_switched_on(servers))
    return tuple(found)


def _switched_on(servers: dict[str, JsonValue]) -> Sequence[str]:
    return [
        name
        for name, entry in servers.items()
        if _PLAIN_NAME.fullmatch(name)
        and isinstance(entry, dict)
        and entry.get("enabled") is not False
        and entry.get("disabled") is not True
    ]
