"""What may be written into a JSON document, and a document's value with one place changed.

Knows values and key paths, no text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from tfx.config.jsonc.text import MAX_DEPTH
from tfx.config.keypath import KeyPath, Missing, canonical
from tfx.errors import InvalidRequest, JsonValue, OperationFailed

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_MAX_BITS = 2048  # every integer a client can mean, with room


def check_path(path: KeyPath) -> None:
    """Raise InvalidRequest for a path that no document can have."""
    if len(path) > MAX_DEPTH:
        raise InvalidRequest(f"a key path has more than {MAX_DEPTH} keys")
    for key in path:
        _check_text(key)


def check_value(value: JsonValue, path: KeyPath) -> None:
    """Raise InvalidRequest for what tfx never writes.

    That is NaN and Infinity, lone surrogates, NUL, nesting beyond the limit, and types that JSON
    does not have.
    """
    waiting: list[tuple[JsonValue, int]] = [(value, len(path))]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, bool) or item is None:
            continue
        elif isinstance(item, int):
            if item.bit_length() > _MAX_BITS:
                raise InvalidRequest("an integer is too large to be written as JSON")
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise InvalidRequest("NaN and Infinity cannot be written as JSON")
        else:
            if depth >= MAX_DEPTH:
                raise InvalidRequest(f"a value has more than {MAX_DEPTH} levels of nesting")
            waiting += [(child, depth + 1) for child in _children(item)]


def _children(item: JsonValue) -> list[JsonValue]:
    if isinstance(item, list):
        return item
    if not isinstance(item, dict):
        raise InvalidRequest(f"a value of type {type(item).__name__} cannot be written as JSON")
    for key in item:
        _check_text(key)
    return list(item.values())


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidRequest(f"a key of type {type(text).__name__} cannot be written as JSON")
    if _NOT_TEXT.search(text):
        raise InvalidRequest("a text with NUL or a lone surrogate cannot be written as JSON")


def same(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values are structurally equal, as value_digest sees them."""
    return left is right or canonical(left) == canonical(right)


def value_at(value: JsonValue, path: KeyPath) -> JsonValue:
    """Return what stands at a key path that was located.

    Raises OperationFailed when nothing does: the layout and the value of a document disagree.
    """
    for key in path:
        if not isinstance(value, dict) or key not in value:
            raise OperationFailed("a place was located in a document that has no value for it")
        value = value[key]
    return value


def with_value(document: JsonValue, path: KeyPath, value: JsonValue | Missing) -> JsonValue:
    """Return a document with a value at a key path, parents created; MISSING takes it out.

    What is off the path is shared with the old document, not copied.
    """
    top: dict[str, JsonValue] = dict(document) if isinstance(document, dict) else {}
    node = top
    for key in path[:-1]:
        child = node.get(key)
        node[key] = copied = dict(child) if isinstance(child, dict) else {}
        node = copied
    if isinstance(value, Missing):
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value
    return top


def merged(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an object with the leaves of another one set in it (S-56)."""
    top = dict(old)
    waiting: list[tuple[dict[str, JsonValue], Mapping[str, JsonValue]]] = [(top, new)]
    while waiting:
        node, leaves = waiting.pop()
        for key, value in leaves.items():
            there = node.get(key)
            if isinstance(value, dict) and isinstance(there, dict):
                node[key] = copied = dict(there)
                waiting.append((copied, value))
            else:
                node[key] = value
    return top


def keeps_shape(old: JsonValue, new: JsonValue) -> bool:
    """Return whether `new` has every key of `old`, and objects only over objects, at each level."""
    waiting = [(old, new)]
    while waiting:
        before, after = waiting.pop()
        if not isinstance(after, dict):
            continue
        if not isinstance(before, dict):
            if after:
                return False
            continue
        if any(key not in after for key in before):
            return False
        waiting += [(before[key], after[key]) for key in before]
    return True
