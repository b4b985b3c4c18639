"""Edit one place of a JSON or JSONC file and leave every other byte as it is.

Knows no file, client or owner: bytes go in, proven bytes come out.

    parse(data) -> JsonValue                         get(data, path) -> JsonValue | Missing
    set_key(data, path, value) -> bytes              merge_key(data, path, value) -> bytes
    delete_key(data, path) -> bytes
    append(data, path, value) -> bytes               remove_element(data, path, value) -> bytes

Each verb takes `dialect`; in strict JSON comments and trailing commas are refused (S-67). Each
raises UnparsableFile, with line and column, for a document that it will not edit: not parsable or
not UTF-8, too large or too deep, a key on the path twice, something else than an object on the
path (S-54). Each raises InvalidRequest for a path or a value that JSON cannot hold. An edit that
cannot be proven raises OperationFailed (S-61). A file of white space is an empty object (S-60);
a file that is to be created starts from {} and a newline, not from nothing.

set_key then delete_key, and append then remove_element, give the original bytes back (S-62), in
any order of several edits, as long as nobody else touches the place in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tfx.config.jsonc import edits
from tfx.config.jsonc.edits import Edit
from tfx.config.jsonc.layout import locate
from tfx.config.jsonc.proof import prove_repeat, prove_splices, prove_value
from tfx.config.jsonc.reader import Document, read
from tfx.config.jsonc.splices import apply
from tfx.config.jsonc.text import Dialect, position
from tfx.config.jsonc.values import check_path, check_value, value_at
from tfx.config.keypath import MISSING, KeyPath, Missing
from tfx.errors import InvalidRequest, JsonValue, OperationFailed, UnparsableFile

_Plan: TypeAlias = Callable[[Document], Edit | None]

__all__ = [
    "Dialect",
    "append",
    "delete_key",
    "doubled",
    "get",
    "merge_key",
    "parse",
    "remove_element",
    "set_key",
]


def parse(data: bytes, *, dialect: Dialect = Dialect.JSONC) -> JsonValue:
    """Return the value of a document; of a key that stands twice the last one counts."""
    return read(data, dialect).value


def doubled(data: bytes, *, dialect: Dialect = Dialect.JSONC) -> tuple[tuple[int, int], ...]:
    """Return line and column of each object that holds a key twice; the last one counts."""
    document = read(data, dialect)
    return tuple(position(document.text, at) for at in sorted(document.doubled))


def get(data: bytes, path: KeyPath, *, dialect: Dialect = Dialect.JSONC) -> JsonValue | Missing:
    """Return the value at a key path, MISSING when it is not there; () is the document."""
    check_path(path)
    document = read(data, dialect)
    place = locate(document, path)
    return MISSING if place.missing else value_at(document.value, path)


def set_key(
    data: bytes, path: KeyPath, value: JsonValue, *, dialect: Dialect = Dialect.JSONC
) -> bytes:
    """Make the value at a key path this one, creating its parents (S-61).

    An equal value gives the same bytes. Where an object is to become an object with all its keys,
    only the leaves that differ are edited; else the span of the value is replaced.
    """
    _check(path, value)
    return _edit(data, dialect, lambda document: edits.set_key(document, path, value))


def merge_key(
    data: bytes, path: KeyPath, value: JsonValue, *, dialect: Dialect = Dialect.JSONC
) -> bytes:
    """Set each leaf of a value below a key path; other keys in there stay (S-56).

    Arrays and empty objects are leaves; an empty object leaves an object that is there as it is.
    """
    _check(path, value)
    return _edit(data, dialect, lambda document: edits.merge_key(document, path, value))


def delete_key(data: bytes, path: KeyPath, *, dialect: Dialect = Dialect.JSONC) -> bytes:
    """Take a member out; parents stay, and so does every comment outside of it (S-62)."""
    _check(path, None)
    return _edit(data, dialect, lambda document: edits.delete_key(document, path))


def append(
    data: bytes, path: KeyPath, value: JsonValue, *, dialect: Dialect = Dialect.JSONC
) -> bytes:
    """Add an element at the end of the array at a key path, creating array and parents (S-63).

    An array that has an equal element already gives the same bytes (S-61).
    """
    _check(path, [value])
    return _edit(data, dialect, lambda document: edits.append(document, path, value))


def remove_element(
    data: bytes, path: KeyPath, value: JsonValue, *, dialect: Dialect = Dialect.JSONC
) -> bytes:
    """Take the first element that equals a value out of an array; none: the same bytes (S-64)."""
    _check(path, [value])
    return _edit(data, dialect, lambda document: edits.remove_element(document, path, value))


def _check(path: KeyPath, value: JsonValue) -> None:
    if not path:
        raise InvalidRequest("a key path of an edit needs a key")
    check_path(path)
    check_value(value, path)


def _edit(data: bytes, dialect: Dialect, plan: _Plan) -> bytes:
    """Carry a plan out and prove the result (S-61)."""
    document = read(data, dialect)
    edit = plan(document)
    if edit is None:
        return data
    text = apply(document.text, edit.splices)
    prove_splices(document.text, text, edit.splices, edit.targets)
    new = document.bom + text.encode("utf-8")
    try:
        result = read(new, dialect)
    except UnparsableFile as error:
        raise OperationFailed(
            f"the edit was given up, nothing is written: the result is refused, {error.message}",
            code="edit-not-proven",
            details=error.details,
        ) from error
    prove_value(new, dialect, result.value, edit.expected)
    if not edit.again:
        prove_repeat(unchanged=plan(result) is None)
    return new
