"""A body into its request type, or an error that names field, limit and received type (H-28).

Knows no operation; what passes means the same to every reader behind it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from tfx.core import canonical_json
from tfx.errors import InvalidRequest, JsonValue

T = TypeVar("T", bound=msgspec.Struct)

_FIELD = re.compile(r" - at `\$\.?(.*?)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*?)`")
_MISSING = re.compile(r"^Object missing required field `(.*?)`")
_GOT = re.compile(r"^Expected `(.*?)`, got `(.*?)`")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def decode(body: bytes, decoder: msgspec.json.Decoder[T], fields: Sequence[str]) -> T:
    """Return the request in a body.

    Raises InvalidRequest `bad-json` for text that is not strict JSON, `invalid-request` naming
    field, limit and received type otherwise, with the nearest known name for an unknown field
    (H-28).
    """
    try:
        request = decoder.decode(body)
    except msgspec.ValidationError as error:
        canonical_json.check(body)  # what is not strict JSON is told as that
        raise _explained(str(error), body, fields) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        canonical_json.check(body)
        raise InvalidRequest(f"the body is not strict JSON: {error}", code="bad-json") from None
    # msgspec keeps the last of two equal keys and does not look into what it carries raw
    canonical_json.check(body)
    return request


def _explained(text: str, body: bytes, fields: Sequence[str]) -> InvalidRequest:
    place = _FIELD.search(text)
    where = place.group(1) if place else ""
    what = text[: place.start()] if place else text
    if unknown := _UNKNOWN.match(what):
        return _unknown_field(unknown.group(1), where, fields)
    if missing := _MISSING.match(what):
        name = f"{where}.{missing.group(1)}" if where else missing.group(1)
        return InvalidRequest(
            f"the field {name} is required", details={"field": name, "received": "nothing"}
        )
    got = _GOT.match(what)
    received = got.group(2) if got else _type_at(body, where)
    limit = got.group(1) if got else what.removeprefix("Expected ").replace("`", "")
    subject = where or "the body"
    message = f"{subject} must be {limit}, not {received}" if got else f"{subject}: {what}"
    return InvalidRequest(
        message.replace("`", ""),
        details={"field": where, "limit": limit, "received": received},
    )


def _unknown_field(name: str, where: str, fields: Sequence[str]) -> InvalidRequest:
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5) if not where else []
    details: dict[str, JsonValue] = {"field": f"{where}.{name}" if where else name}
    if not where:
        details["known"] = list(fields)
    if near:
        details["nearest"] = near[0]
    return InvalidRequest(
        f"there is no field {name}" + (f" in {where}" if where else ""),
        code="unknown-field",
        hint=f"did you mean {near[0]}?" if near else None,
        details=details,
    )


def _type_at(body: bytes, where: str) -> str:
    value = json.loads(body)
    for name, index in _STEP.findall(where):
        if name and isinstance(value, dict):
            value = value.get(name)
        elif index.isdecimal() and isinstance(value, list):
            value = value[int(index)]
        else:
            return "a value out of range"
    words = {str: "text", bool: "bool", int: "int", float: "float", list: "array", dict: "object"}
    word = words.get(type(value), "null")
    return f"{word} of {len(value)} characters" if isinstance(value, str) else word
