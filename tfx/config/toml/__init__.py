"""Edit one key path of a TOML file and leave every other byte as it is.

Knows neither whose file it is nor where it lies: bytes in, bytes out, and a refusal otherwise.
Every edit is spliced into the text; `tomllib` then has to agree that the new document holds the
wanted value and that everything else has the value it had before (S-57, S-69).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tfx.config.keypath import MISSING, KeyPath, Missing
from tfx.config.toml.document import Document, load, same, to_json
from tfx.config.toml.spans import MAX_DEPTH
from tfx.config.toml.splices import (
    Splice,
    array_table_insertion,
    array_table_removal,
    deletion,
    element_insertion,
    element_removal,
    insertion,
    spell,
    spliced,
)
from tfx.errors import InvalidRequest, JsonValue, OperationFailed, UnparsableFile

_INTEGER_BITS = 63


def parse(data: bytes) -> JsonValue:
    """Return the document as JSON; dates and times become ISO 8601 strings.

    Raises UnparsableFile with line and column (S-54).
    """
    return to_json(load(data).root)


def get(data: bytes, path: KeyPath) -> JsonValue | Missing:
    """Return the value at a path as `parse` has it, or MISSING; () is the document.

    Raises UnparsableFile, also when something above the path is no table.
    """
    value = _loaded(data, path).value(path)
    return value if isinstance(value, Missing) else to_json(value)


def set_key(data: bytes, path: KeyPath, value: JsonValue) -> bytes:
    """Give a key path exactly this value, creating the tables above it; the same again: same bytes.

    An entry that is there keeps its place and spelling; only what differs in it is touched.
    Raises UnparsableFile when the file is not TOML or something above the path is no table,
    InvalidRequest when TOML has no form for the value.
    """
    _require_writable(path, value)
    before = _loaded(data, path)
    return _committed(before, _set(before, path, value), path, value)


def merge_key(data: bytes, path: KeyPath, value: JsonValue) -> bytes:
    """Give each leaf of a value its place below the path; other keys in there stay (S-56).

    Raises as set_key.
    """
    _require_writable(path, value)
    before = _loaded(data, path)
    wanted = _merged(before.value(path), value)
    return _committed(before, _merge(before, path, value), path, wanted)


def delete_key(data: bytes, path: KeyPath) -> bytes:
    """Take a key path out in whatever spelling it stands there; absent: same bytes.

    After a set_key that created it this restores the bytes of before, but for headers of tables
    that set_key had to create above a value that is no table: those are paths of their own.
    A table that was only there by what goes is gone with it. Comments around the entry stay.
    Raises UnparsableFile.
    """
    _require_writable(path)
    before = _loaded(data, path)
    return _committed(before, _delete(before, path), path, MISSING)


def append(data: bytes, path: KeyPath, value: JsonValue) -> bytes:
    """Append an element to the array at a path, which is created when absent.

    An array that has an equal element already: same bytes, so that doing it twice does nothing.
    Raises as set_key; UnparsableFile also when the value there is no array.
    """
    _require_writable(path, [value])
    before = _loaded(data, path)
    array = before.value(path)
    if isinstance(array, Missing):
        after = _spliced(before, insertion(before, path, [value]))
        return _committed(before, after, path, [value])
    if not isinstance(array, list):
        raise before.refusal(path, f"{_named(path)} is not an array")
    if any(same(element, value) for element in array):
        return data
    item = before.item(path)
    if item is not None:
        splices = element_insertion(before, item.value, spell(value))
    elif isinstance(value, dict):
        splices = array_table_insertion(before, path, value)
    else:
        raise before.refusal(path, f"{_named(path)} is an array of tables")
    return _committed(before, _spliced(before, splices), path, [*array, value])


def remove_element(data: bytes, path: KeyPath, value: JsonValue) -> bytes:
    """Take the first element equal to a value out of an array; none: same bytes.

    The last `[[table]]` takes its array with it. Raises UnparsableFile.
    """
    _require_writable(path)
    before = _loaded(data, path)
    array = before.value(path)
    if not isinstance(array, list):
        return data
    index = next((index for index, item in enumerate(array) if same(item, value)), None)
    if index is None:
        return data
    item = before.item(path)
    if item is None:
        splices = array_table_removal(before, path, index)
    else:
        splices = element_removal(before, item.value, index)
    wanted = [*array[:index], *array[index + 1 :]]
    gone = item is None and not wanted
    return _committed(before, _spliced(before, splices), path, MISSING if gone else wanted)


def _loaded(data: bytes, path: KeyPath) -> Document:
    """Read a document in which everything above the path is a table or not there (S-54)."""
    doc = load(data)
    for depth in range(1, len(path)):
        above = doc.value(path[:depth])
        if not isinstance(above, dict | Missing):
            what = "an array" if isinstance(above, list) else "a single value"
            raise doc.refusal(path[:depth], f"{_named(path[:depth])} is {what}, not a table")
    return doc


def _set(doc: Document, path: KeyPath, value: JsonValue) -> Document:
    old = doc.value(path)
    if same(old, value):
        return doc
    if isinstance(old, dict) and isinstance(value, dict):
        for key, inner in value.items():
            doc = _set(doc, (*path, key), inner)
        for key in [key for key in old if key not in value]:
            doc = _delete(doc, (*path, key))
        return doc if value else _create(doc, path, value)
    item = doc.item(path)
    if item is not None:
        return _spliced(doc, [Splice(item.value.start, item.value.end, spell(value))])
    return _create(_delete(doc, path), path, value)


def _create(doc: Document, path: KeyPath, value: JsonValue) -> Document:
    if not isinstance(doc.value(path), Missing):
        return doc
    return _spliced(doc, insertion(doc, path, value))


def _merge(doc: Document, path: KeyPath, value: JsonValue) -> Document:
    if isinstance(value, dict) and isinstance(doc.value(path), dict):
        for key, inner in value.items():
            doc = _merge(doc, (*path, key), inner)
        return doc
    return _set(doc, path, value)


def _merged(old: object, value: JsonValue) -> object:
    if isinstance(value, dict) and isinstance(old, dict):
        return old | {key: _merged(old.get(key, MISSING), inner) for key, inner in value.items()}
    return value


def _delete(doc: Document, path: KeyPath) -> Document:
    """Delete until nothing is left: keys in one inline table go one by one."""
    while not isinstance(doc.value(path), Missing):
        doc = _spliced(doc, deletion(doc, path))
    return doc


def _spliced(doc: Document, splices: Iterable[Splice]) -> Document:
    """Return the document after an edit.

    Raises OperationFailed when the result is not TOML: then the edit is at fault, not the file.
    """
    data = doc.bom + spliced(doc.text, splices).encode()
    if data == doc.data:
        raise OperationFailed("the edit would change nothing; the file is left as it is")
    try:
        return load(data)
    except UnparsableFile as error:
        raise OperationFailed(
            f"the edit would break the file ({error.message}); it is left as it is"
        ) from None


def _committed(before: Document, after: Document, path: KeyPath, wanted: object | Missing) -> bytes:
    """Return the new bytes if the path has the wanted value and nothing else moved (S-57)."""
    ours = same(after.value(path), wanted)
    if ours and same(_without(before.root, path), _without(after.root, path)):
        return after.data
    what = "a change elsewhere" if ours else "another value than the wanted one"
    raise OperationFailed(
        f"the edit of {_named(path)} would make {what}; the file is left as it is",
        details={"key": list(path)},
    )


def _without(table: object, path: KeyPath) -> object:
    """Return a table without a path and without the tables that hold nothing but it."""
    if not isinstance(table, dict) or path[0] not in table:
        return table
    kept = dict(table)
    inner = kept.pop(path[0])
    inner = _without(inner, path[1:]) if len(path) > 1 else {}
    return kept if inner == {} else kept | {path[0]: inner}


def _require_writable(path: KeyPath, value: JsonValue = "") -> None:
    """Raise InvalidRequest for a path or a value that cannot be written as TOML."""
    if not path:
        raise InvalidRequest("the key path of an edit needs a key")
    for key in path:
        _require_text(key, path)
    _require_representable(value, path)


def _require_representable(value: JsonValue, path: KeyPath, depth: int = 0) -> None:
    """Raise InvalidRequest for what TOML cannot say or its readers cannot read."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _require_text(key, path)
            _require_representable(inner, (*path, key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _require_representable(inner, path, depth + 1)
    elif isinstance(value, str):
        _require_text(value, path)
    elif value is None:
        raise InvalidRequest(f"{_named(path)}: TOML has no null")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequest(f"{_named(path)}: not a finite number")
    elif isinstance(value, int) and (value if value >= 0 else ~value).bit_length() > _INTEGER_BITS:
        raise InvalidRequest(f"{_named(path)}: an integer beyond 64 bits")
    if len(path) + depth > MAX_DEPTH:
        raise InvalidRequest(f"{_named(path[:3])}…: nested more than {MAX_DEPTH} levels deep")


def _require_text(text: str, path: KeyPath) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{_named(path)}: not valid Unicode text") from None


def _named(path: KeyPath) -> str:
    return ".".join(path).encode(errors="backslashreplace").decode()
