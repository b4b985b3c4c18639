"""One strict reader and one canonical writer of JSON (EV-J1 … EV-J4, EV-L10).

Knows nothing of what the documents mean.
"""

from __future__ import annotations

import json

import msgspec

from tfx.errors import InvalidRequest, JsonValue

_encoder = msgspec.json.Encoder(order="deterministic")


def check(data: bytes) -> None:
    """Raise InvalidRequest `bad-json` unless data is one strict JSON document.

    Refused beside what the grammar refuses: duplicate keys (readers disagree about which one
    counts), NUL and lone surrogates in strings, NaN and infinities, bytes that are not UTF-8.
    """
    parse(data)


def parse(data: bytes) -> JsonValue:
    """Return the document; raises InvalidRequest `bad-json` as `check` does."""
    try:
        text = data.decode("utf-8")
        value: JsonValue = _decoder.decode(text)
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest(f"not strict JSON: {_reason(error)}", code="bad-json") from error
    if "\\u" in text:
        _refuse_unstorable(value)
    return value


def canonical(data: bytes) -> bytes:
    """Return the canonical form of a document that passed `check`: sorted keys, no spaces.

    Raises InvalidRequest `bad-json` for what is not JSON at all.
    """
    try:
        return _encoder.encode(msgspec.json.decode(data))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidRequest(f"not JSON: {error}", code="bad-json") from error


def dump(value: object) -> bytes:
    """Return the canonical form of plain values and msgspec structs."""
    return _encoder.encode(value)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:64]!r} stands twice in one object")
            seen.add(key)
    return members


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:32]} is too large for a number")
    return value


def _refuse_unstorable(value: JsonValue) -> None:
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidRequest("a string holds NUL or a lone surrogate", code="bad-json")
    elif isinstance(value, list):
        for item in value:
            _refuse_unstorable(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(item)


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
