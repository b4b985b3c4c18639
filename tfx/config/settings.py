"""tfx's own configuration: config.toml, the environment and flags, checked and merged (K-19).

Knows nothing of what a setting does; it never writes. A flag wins over the environment, that over
the file, that over the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import cast

from tfx.config.settings_keys import BY_PATH, KEYS, TABLES, Key, advice
from tfx.config.settings_model import (
    Durability,
    HubSettings,
    Retention,
    RoleOverride,
    RouteSettings,
    Settings,
    SetupSettings,
)
from tfx.config.toml.document import MAX_BYTES, Document, to_json
from tfx.config.toml.document import load as load_document
from tfx.config.toml.spans import position
from tfx.core.files import read_plain
from tfx.core.paths import Paths
from tfx.errors import BadSettings, JsonValue, UnparsableFile


class Origin(StrEnum):
    """Where a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key, its value and where that comes from; `source` is `line N` or the variable."""

    key: str
    value: JsonValue
    origin: Origin
    source: str | None
    meaning: str


def load(paths: Paths, flags: Mapping[str, JsonValue] | None = None) -> Settings:
    """Return the settings; a missing file means defaults.

    `flags` are values from the command line by key name, for example {"hub.port": 0}.
    Raises BadSettings for the first thing that is wrong, with line and column in the file.
    """
    values = {setting.key: setting.value for setting in describe(paths, flags)}
    skip = _texts(values["setup.skip"])

    def days(what: str) -> int:
        return cast("int", values[f"hub.retention.{what}_days"])

    return Settings(
        HubSettings(
            cast("int | None", values["hub.port"]),
            _texts(values["hub.allow_hosts"]),
            Durability(str(values["hub.durability"])),
            Retention(
                days("messages"),
                days("dead_letters"),
                days("human_requests"),
                days("agents"),
                days("tasks"),
            ),
            _texts(values["hub.notify"]),
            cast("int", values["hub.review_rounds"]),
            cast("int", values["hub.turns"]),
        ),
        SetupSettings(
            "statusline" in skip,
            "hooks" in skip,
            _named(skip, "skill:"),
            _named(skip, "agent:"),
            _texts(values["setup.tools"]),
        ),
        RouteSettings(
            str(values["route.cli"]),
            values["route.allow_skip_approvals"] is True,
            cast("int", values["route.log_mib"]),
            cast("int", values["route.hub_answer_s"]),
            _roles(values),
        ),
    )


def describe(paths: Paths, flags: Mapping[str, JsonValue] | None = None) -> tuple[Setting, ...]:
    """Return the keys with their values and origins, in the order of the table of keys.

    Of the quiet ones only those that are set. Raises BadSettings as load does.
    """
    document = _document(paths)
    if document is not None:
        for error in _file_errors(paths, document):
            raise error
    flags = flags or {}
    found = ((key, _setting(key, document, paths.env, flags)) for key in KEYS)
    return tuple(one for key, one in found if not (key.quiet and one.origin is Origin.DEFAULT))


def problems(paths: Paths) -> tuple[BadSettings, ...]:
    """Return everything that is wrong with the file and the environment, in that order."""
    found: list[BadSettings] = []
    try:
        document = _document(paths)
    except BadSettings as error:
        found.append(error)
    else:
        found += _file_errors(paths, document) if document is not None else ()
    for key in KEYS:
        try:
            _setting(key, None, paths.env, {})
        except BadSettings as error:
            found.append(error)
    return tuple(found)


def _document(paths: Paths) -> Document | None:
    file = paths.config_file
    data = _read(paths, file)
    if data is None:
        return None
    try:
        return load_document(data)
    except UnparsableFile as error:
        raise BadSettings(
            f"{paths.display(file)}: {error.message}",
            hint="tfx config check",
            details={"path": str(file), **error.details},
        ) from None


def _read(paths: Paths, file: Path) -> bytes | None:
    """Return the bytes, or None when there is no file; a FIFO or device is never waited for."""
    try:
        return read_plain(file, MAX_BYTES + 1)
    except FileNotFoundError:
        if not file.is_symlink():
            return None
        reason = "it is a symbolic link that leads nowhere"
    except OSError as error:
        reason = error.strerror or str(error)
    raise BadSettings(
        f"{paths.display(file)} cannot be read: {reason}",
        hint="tfx config path",
        details={"path": str(file)},
    )


def _setting(
    key: Key, document: Document | None, env: Mapping[str, str], flags: Mapping[str, JsonValue]
) -> Setting:
    if key.name in flags:
        value = flags[key.name]
        _require(key, value, key.name)
        return Setting(key.name, value, Origin.FLAG, None, key.meaning)
    text = env.get(key.variable, "") if key.variable else ""
    if key.variable and text:
        value = key.read(text)
        _require(key, value, key.variable)
        return Setting(key.name, value, Origin.ENVIRONMENT, key.variable, key.meaning)
    item = document.item(key.path) if document is not None else None
    if document is None or item is None:
        return Setting(key.name, key.default, Origin.DEFAULT, None, key.meaning)
    line = position(document.text, item.start)[0]
    value = to_json(document.value(key.path))
    return Setting(key.name, value, Origin.FILE, f"line {line}", key.meaning)


def _require(key: Key, value: JsonValue, where: str) -> None:
    for index, wanted in _wrong(key, value):
        place = where if index is None else f"{where} item {index + 1}"
        raise BadSettings(
            f"{place} must be {wanted}",
            hint=f"{key.name}: {key.meaning}",
            details={"key": key.name, "source": where},
        )


def _wrong(key: Key, value: object) -> Iterator[tuple[int | None, str]]:
    """Yield what is wrong with a value: the number of the element, and what it must be."""
    wanted = key.check(value)
    if wanted is not None:
        yield None, wanted
    elif key.each is not None and isinstance(value, list):
        for index, element in enumerate(value):
            wanted = key.each(element)
            if wanted is not None:
                yield index, wanted


def _file_errors(paths: Paths, document: Document) -> tuple[BadSettings, ...]:
    """Return every error of the file in the order of its lines."""
    found = sorted(_errors_in(document, document.root, ()), key=lambda error: error[0])
    file = paths.config_file
    errors = []
    for offset, name, what, hint in found:
        line, column = position(document.text, offset)
        errors.append(
            BadSettings(
                f"{paths.display(file)}: line {line}, column {column}: {name} {what}",
                hint=hint,
                details={"path": str(file), "line": line, "column": column, "key": name},
            )
        )
    return tuple(errors)


def _errors_in(
    document: Document, table: Mapping[str, object], at: tuple[str, ...]
) -> Iterator[tuple[int, str, str, str]]:
    for step, raw in table.items():
        path = (*at, step)
        name = ".".join(path)
        key = BY_PATH.get(path)
        if key is not None:
            for index, wanted in _wrong(key, raw):
                what = (
                    f"must be {wanted}" if index is None else f"item {index + 1} must be {wanted}"
                )
                yield _value_offset(document, path, index), name, what, key.meaning
        elif name not in TABLES:
            yield document.offset(path), name, "is not a known key", advice(name)
        elif isinstance(raw, dict):
            yield from _errors_in(document, raw, path)
        else:
            yield _value_offset(document, path, None), name, "must be a table", f"write [{name}]"


def _value_offset(document: Document, path: tuple[str, ...], index: int | None) -> int:
    item = document.item(path if index is None else (*path, index))
    return document.offset(path) if item is None else item.value.start


def _roles(values: Mapping[str, JsonValue]) -> dict[str, RoleOverride]:
    """Return the overrides of `route.roles.NAME.FIELD`, whose types were checked before."""
    said: dict[str, dict[str, JsonValue]] = {}
    for key, value in values.items():
        if key.startswith("route.roles."):
            _, _, role, name = key.split(".")
            said.setdefault(role, {})[name] = value
    return {
        role: RoleOverride(
            cast("str | None", fields.get("cli")),
            cast("str | None", fields.get("effort")),
            cast("int | None", fields.get("timeout_s")),
            cast("str | None", fields.get("profile")),
        )
        for role, fields in said.items()
    }


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _named(skip: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    return tuple(item.removeprefix(prefix) for item in skip if item.startswith(prefix))
