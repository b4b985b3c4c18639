"""The input schema of a tool, generated from the request type of its operation (H-33, H-37).

Knows JSON Schema and msgspec, no operation. What a reader can do without is left out: names of
types, defaults that are null, empty or false, references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from tfx.errors import JsonValue

Schema = dict[str, JsonValue]

_REF: Final = "#/$defs/{name}"
_DROPPED: Final = frozenset({"title", "minLength", "maxLength", "contentEncoding"})


def input_schema(request: type[msgspec.Struct], *, hidden: frozenset[str]) -> Schema:
    """Return the schema of a request without the `hidden` fields."""
    (root,), parts = msgspec.json.schema_components([request], ref_template=_REF)
    whole = _resolved(cast("Schema", root), cast("dict[str, Schema]", parts))
    properties = cast("dict[str, Schema]", whole["properties"])
    shown: Schema = {
        name: _field(value) for name, value in properties.items() if name not in hidden
    }
    schema: Schema = {"type": "object", "properties": shown}
    required = [name for name in cast("list[str]", whole.get("required", [])) if name in shown]
    if required:
        schema["required"] = cast("list[JsonValue]", required)
    schema["additionalProperties"] = False
    return schema


def _field(value: Schema) -> Schema:
    field = {key: each for key, each in value.items() if key != "default" or each}
    return {"type": "string", **field} if "enum" in field else field


def _resolved(schema: Schema, parts: Mapping[str, Schema]) -> Schema:
    """Return a schema without references, `null` alternatives and words for readers of code."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = _resolved(parts[reference.rpartition("/")[2]], parts)
        target.pop("description", None)
        return {**target, **{key: each for key, each in schema.items() if key != "$ref"}}
    options = schema.get("anyOf")
    if isinstance(options, list):
        real = [each for each in options if isinstance(each, dict) and each.get("type") != "null"]
        if len(real) == 1:
            rest = {key: each for key, each in schema.items() if key != "anyOf"}
            return {**_resolved(real[0], parts), **rest}
    return {key: _within(key, value, parts) for key, value in schema.items() if key not in _DROPPED}


def _within(key: str, value: JsonValue, parts: Mapping[str, Schema]) -> JsonValue:
    if key == "properties" and isinstance(value, dict):
        return {name: _resolved(cast("Schema", each), parts) for name, each in value.items()}
    if key == "items" and isinstance(value, dict):
        return _resolved(value, parts)
    return value
