"""What the user wants of the hub: flag over environment over config.toml over default (K-19).

Reads the table `[hub]` only; knows nothing of a running hub.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tfx.core.paths import Paths
from tfx.errors import BadSettings, InvalidRequest, JsonValue
from tfx.hub.models import Durability

DEFAULT_PORT = 27888
_MOST_PORT = 65_535
_DAYS = ("messages_days", "dead_letters_days", "human_requests_days", "agents_days")


@dataclass(frozen=True, slots=True)
class RetentionDays:
    """How long closed things stay; 0 keeps them for ever (H-72)."""

    messages_days: int = 14
    dead_letters_days: int = 30
    human_requests_days: int = 90
    agents_days: int = 30


@dataclass(frozen=True, slots=True)
class HubSettings:
    """The wishes for one hub. `port_asked` makes the port strict (K-29)."""

    port: int = DEFAULT_PORT
    port_asked: bool = False
    idle_exit_s: int | None = None
    allow_hosts: tuple[str, ...] = ()
    durability: Durability = Durability.NORMAL
    retention: RetentionDays = RetentionDays()
    notify: tuple[str, ...] = ()


def resolve(
    paths: Paths, *, port: int | None = None, idle_exit_s: int | None = None
) -> HubSettings:
    """Return the settings of an environment, with the flags given.

    Raises InvalidRequest for a flag or variable out of range, BadSettings for config.toml.
    """
    settings = _from_file(paths.config_file)
    variable = paths.env.get("TFX_HUB_PORT", "")
    if variable:
        settings = dataclasses.replace(
            settings, port=checked_port(variable, "TFX_HUB_PORT"), port_asked=True
        )
    if port is not None:
        settings = dataclasses.replace(
            settings, port=checked_port(str(port), "--port"), port_asked=True
        )
    if idle_exit_s is not None and idle_exit_s <= 0:
        raise InvalidRequest(f"--idle-exit must be at least 1 second, not {idle_exit_s}")
    return dataclasses.replace(settings, idle_exit_s=idle_exit_s)


def checked_port(text: str, where: str) -> int:
    """Return a port number; raises InvalidRequest outside 0 to 65535 (H-1, H-98)."""
    if text.isascii() and text.isdecimal() and int(text) <= _MOST_PORT:
        return int(text)
    raise InvalidRequest(
        f"{where}: {text} is not a port; ports are 0 to {_MOST_PORT}",
        code="bad-port",
        hint="tfx hub start --port 0 takes any free port",
    )


def _from_file(path: Path) -> HubSettings:
    try:
        text = path.read_text("utf-8")
        table = tomllib.loads(text).get("hub", {})
    except FileNotFoundError:
        return HubSettings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{path} cannot be read: {error}", details={"path": str(path)}) from error
    if not isinstance(table, dict):
        raise _bad(path, text, "hub", "must be a table")
    return _checked(path, text, cast("Mapping[str, JsonValue]", table))


def _checked(path: Path, text: str, table: Mapping[str, JsonValue]) -> HubSettings:
    known = {"port", "allow_hosts", "durability", "retention", "notify"}
    for key in table:
        if key not in known:
            raise _bad(path, text, key, f"is not known; [hub] has {', '.join(sorted(known))}")
    settings = HubSettings()
    if "port" in table:
        port = table["port"]
        if type(port) is not int or not 0 <= port <= _MOST_PORT:
            raise _bad(path, text, "port", f"must be an integer from 0 to {_MOST_PORT}")
        settings = dataclasses.replace(settings, port=port, port_asked=True)
    if "durability" in table:
        if table["durability"] not in set(Durability):
            raise _bad(path, text, "durability", 'must be "normal" or "full"')
        settings = dataclasses.replace(settings, durability=Durability(str(table["durability"])))
    return dataclasses.replace(
        settings,
        allow_hosts=_texts(path, text, table, "allow_hosts"),
        notify=_texts(path, text, table, "notify"),
        retention=_retention(path, text, table.get("retention", {})),
    )


def _texts(path: Path, text: str, table: Mapping[str, JsonValue], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _bad(path, text, key, "must be a list of non-empty strings")
    return tuple(str(item) for item in value)


def _retention(path: Path, text: str, table: JsonValue) -> RetentionDays:
    if not isinstance(table, dict):
        raise _bad(path, text, "retention", "must be a table")
    days: dict[str, int] = {}
    for key, value in table.items():
        if key not in _DAYS:
            raise _bad(path, text, key, f"is not known; retention has {', '.join(_DAYS)}")
        if type(value) is not int or value < 0:
            raise _bad(path, text, key, "must be a number of days, 0 to keep for ever")
        days[key] = value
    return RetentionDays(**days)


def _bad(path: Path, text: str, key: str, what: str) -> BadSettings:
    found = re.search(rf"^(.*?)\b{re.escape(key)}\b", text, re.MULTILINE)
    line = text.count("\n", 0, found.start()) + 1 if found else 1
    column = len(found.group(1)) + 1 if found else 1
    return BadSettings(
        f"{path}:{line}:{column}: hub.{key} {what}",
        hint="tfx config check",
        details={"path": str(path), "line": line, "column": column, "key": f"hub.{key}"},
    )
