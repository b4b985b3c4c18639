"""Edits of a shared file as data: carried out by the editors, checked against a plain model.

Knows the verbs of tfx.config, not what an entry is for or who owns it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, assert_never

from tfx.config.keypath import MISSING, KeyPath, Missing, canonical
from tfx.errors import BeyondLimits, InvalidRequest, JsonValue, OperationFailed, UnparsableFile
from tfx.plan.actions import Format, Reason
from tfx.plan.look import Obstacle

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Editor:
    """The verbs that both editors offer; tfx.config.keypath tells what they do."""

    parse: Callable[[bytes], JsonValue]
    set_key: Callable[[bytes, KeyPath, JsonValue], bytes]
    delete_key: Callable[[bytes, KeyPath], bytes]
    append: Callable[[bytes, KeyPath, JsonValue], bytes]
    remove_element: Callable[[bytes, KeyPath, JsonValue], bytes]


def editor(of: Format) -> Editor:
    """Return the editor of a format, imported only now: TOML costs more than JSON."""
    if of is Format.TOML:
        from tfx.config import toml  # noqa: PLC0415

        return Editor(toml.parse, toml.set_key, toml.delete_key, toml.append, toml.remove_element)
    from tfx.config import jsonc  # noqa: PLC0415

    dialect = jsonc.Dialect.JSON if of is Format.JSON else jsonc.Dialect.JSONC
    return Editor(
        partial(jsonc.parse, dialect=dialect),
        partial(jsonc.set_key, dialect=dialect),
        partial(jsonc.delete_key, dialect=dialect),
        partial(jsonc.append, dialect=dialect),
        partial(jsonc.remove_element, dialect=dialect),
    )


def is_blank(of: Format, data: bytes) -> bool:
    """Say whether a document holds nothing at all, not even a comment."""
    text = data.removeprefix(_BOM).strip()
    return not text or (of is not Format.TOML and b"".join(text.split()) == b"{}")


def starting_bytes(of: Format, data: bytes | None) -> bytes:
    """Return what edits start from: the bytes of the file, an empty document where there is none.

    A file that is there and empty stays as it is, so that removal gives back an empty file.
    """
    if data is not None:
        return data
    return b"" if of is Format.TOML else b"{}\n"


@dataclass(frozen=True, slots=True)
class SetKey:
    """Set a key, its parents made where they are missing."""

    key: KeyPath
    value: JsonValue


@dataclass(frozen=True, slots=True)
class DeleteKey:
    """Delete a key."""

    key: KeyPath


@dataclass(frozen=True, slots=True)
class Append:
    """Append to an array, made where it is missing."""

    key: KeyPath
    value: JsonValue


@dataclass(frozen=True, slots=True)
class RemoveElement:
    """Remove the first element that equals the value."""

    key: KeyPath
    value: JsonValue


Edit: TypeAlias = SetKey | DeleteKey | Append | RemoveElement


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of a shared file and the value they stand for."""

    format: Format
    data: bytes
    value: JsonValue

    @classmethod
    def read(cls, of: Format, data: bytes) -> Document:
        """Parse; nothing at all is an empty document (S-60). Raises Obstacle (S-54)."""
        value = parse(of, data)
        if not isinstance(value, dict):
            raise Obstacle(Reason.UNPARSABLE, "the document is not an object", line=1, column=1)
        return cls(of, data, value)

    def edited(self, edits: tuple[Edit, ...]) -> Document:
        """Return the document after the edits, parsed again and compared (S-57, S-61).

        Raises Obstacle when an editor refuses or its result is not exactly what the edits mean.
        """
        verbs = editor(self.format)
        data = self.data
        model = copy.deepcopy(self.value)
        for edit in edits:
            try:
                data = _edited(verbs, data, edit)
            except UnparsableFile as error:
                raise _as_obstacle(error) from error
            except (OperationFailed, InvalidRequest) as error:
                raise Obstacle(Reason.UNEDITABLE, error.message) from error
            _model(model, edit)
        value = parse(self.format, data)
        if self.format is Format.TOML:
            for edit in edits:
                _drop_implied(model, value, edit)
        if not canonical_equal(value, model):
            raise Obstacle(
                Reason.UNEDITABLE, "the edited text would say more or less than was asked for"
            )
        return Document(self.format, data, value)


def canonical_equal(one: JsonValue, other: JsonValue) -> bool:
    """Say whether two values have one canonical spelling."""
    return canonical(one) == canonical(other)


def parse(of: Format, data: bytes) -> JsonValue:
    """Return the value of a document. Raises Obstacle with line and column."""
    try:
        return editor(of).parse(data)
    except UnparsableFile as error:
        raise _as_obstacle(error) from error


def _as_obstacle(error: UnparsableFile) -> Obstacle:
    line, column = (error.details.get(name) for name in ("line", "column"))
    return Obstacle(
        Reason.BEYOND_LIMITS if isinstance(error, BeyondLimits) else Reason.UNPARSABLE,
        error.message,
        line=line if isinstance(line, int) else 0,
        column=column if isinstance(column, int) else 0,
    )


def _edited(verbs: Editor, data: bytes, edit: Edit) -> bytes:
    match edit:
        case SetKey(key, value):
            return verbs.set_key(data, key, value)
        case DeleteKey(key):
            return verbs.delete_key(data, key)
        case Append(key, value):
            return verbs.append(data, key, value)
        case RemoveElement(key, value):
            return verbs.remove_element(data, key, value)
    assert_never(edit)


def lookup(value: JsonValue, key: KeyPath) -> JsonValue | Missing:
    """Return what stands at a key. Raises Obstacle when a parent is no object (S-54)."""
    here = value
    for depth, step in enumerate(key):
        if not isinstance(here, dict):
            raise Obstacle(
                Reason.UNPARSABLE, f"{'.'.join(key[:depth])} is not an object, so it has no keys"
            )
        if step not in here:
            return MISSING
        here = here[step]
    return here


def array(value: JsonValue, key: KeyPath) -> list[JsonValue]:
    """Return the array at a key, an empty one when it is missing. Raises Obstacle."""
    found = lookup(value, key)
    if found is MISSING:
        return []
    if not isinstance(found, list):
        raise Obstacle(Reason.UNPARSABLE, f"{'.'.join(key)} is not an array")
    return found


def _drop_implied(model: JsonValue, value: JsonValue, edit: Edit) -> None:
    """Take out of the model what only its last entry made a TOML table (or array of tables).

    The user may have deleted the other tables beside our entry: `[mcp_servers.tfx-hub]` is then
    all that makes `mcp_servers`, and nothing is left to say so once it is gone.
    """
    if not isinstance(edit, DeleteKey | RemoveElement):
        return
    deepest = len(edit.key) - isinstance(edit, DeleteKey)
    for depth in range(deepest, 0, -1):
        path = edit.key[:depth]
        above = lookup(model, path[:-1])
        if not isinstance(above, dict) or above.get(path[-1]) not in ({}, []):
            return
        if lookup(value, path) is not MISSING:
            return
        del above[path[-1]]


def _model(root: JsonValue, edit: Edit) -> None:
    *parents, last = edit.key
    here = root
    creates = isinstance(edit, SetKey | Append)
    for step in parents:
        if not isinstance(here, dict) or (step not in here and not creates):
            return
        here = here.setdefault(step, {})
    if isinstance(here, dict):
        _model_last(here, last, edit)


def _model_last(here: dict[str, JsonValue], last: str, edit: Edit) -> None:
    match edit:
        case SetKey(_, value):
            here[last] = copy.deepcopy(value)
        case DeleteKey():
            here.pop(last, None)
        case Append(_, value):
            items = here.setdefault(last, [])
            if isinstance(items, list):
                items.append(copy.deepcopy(value))
        case RemoveElement(_, value):
            _remove_first(here.get(last), value)


def _remove_first(items: JsonValue, value: JsonValue) -> None:
    if not isinstance(items, list):
        return
    wanted = canonical(value)
    for position, item in enumerate(items):
        if canonical(item) == wanted:
            del items[position]
            return
