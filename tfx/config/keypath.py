"""Where a value stands in a document, and how two values are compared.

Knows no file format: jsonc.py and toml.py offer the same five verbs over these types.

    parse(data) -> JsonValue                         raises UnparsableFile with line and column
    get(data, path) -> JsonValue | Missing
    set_key(data, path, value) -> bytes              creates parents; same value again: same bytes
    delete_key(data, path) -> bytes                  absent: same bytes
    append(data, path, value) -> bytes               to the array at path, created when absent
    remove_element(data, path, value) -> bytes       the first equal element; none: same bytes
"""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import Literal, TypeAlias

from tfx.errors import JsonValue

KeyPath: TypeAlias = tuple[str, ...]


class Missing(Enum):
    """The type of MISSING: a key that is not there, told apart from null."""

    MISSING = "missing"


MISSING: Literal[Missing.MISSING] = Missing.MISSING


def canonical(value: JsonValue) -> bytes:
    """Return the one JSON spelling of a value: sorted keys, no white space, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def value_digest(value: JsonValue) -> str:
    """Return the SHA-256 of the canonical JSON of a value (S-106: values, not bytes)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def leaves(value: JsonValue, at: KeyPath = ()) -> dict[KeyPath, JsonValue]:
    """Return the leaves of a value by key path; arrays and empty objects are leaves (S-56)."""
    if isinstance(value, dict) and value:
        found: dict[KeyPath, JsonValue] = {}
        for key, item in value.items():
            found |= leaves(item, (*at, key))
        return found
    return {at: value}
