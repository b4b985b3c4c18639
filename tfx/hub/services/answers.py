"""What a person may answer: JSON Schema, checked when asked and when answered (H-67).

Knows neither requests nor SQL; a message about a content never quotes it (H-46).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.core import canonical_json
from tfx.errors import InvalidRequest, JsonValue

if TYPE_CHECKING:
    from jsonschema import ValidationError

_DEEPEST: Final = 32
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})


def check_schema(schema: bytes) -> None:
    """Raise InvalidRequest `bad-schema` unless this is a JSON Schema that needs no network."""
    document = canonical_json.parse(schema)
    _refuse_foreign(document, 0)
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415  (10 MB that only hubs with human requests pay)

    try:
        Draft202012Validator.check_schema(_as_schema(document))
    except SchemaError as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise InvalidRequest(
            f"requested_schema is no JSON Schema: {error.validator} at /{where}",
            code="bad-schema",
            details={"field": "requested_schema", "path": where},
        ) from None
    try:
        _first_error(document, {})
    except _unusable():
        raise _bad("refers to nothing, or to itself without an end") from None


def check_content(schema: bytes, content: bytes) -> None:
    """Raise InvalidRequest `bad-content` naming path and rule unless the content fits.

    A schema that cannot be applied binds nothing: one that another hub let in (K-36), or a deep
    reference to nothing. The person's answer is worth more than the check.
    """
    try:
        check_schema(schema)
        error = _first_error(canonical_json.parse(schema), canonical_json.parse(content))
    except InvalidRequest:
        return
    except _unusable():
        return
    if error is None:
        return
    steps = "/".join(str(step) for step in error.absolute_path)
    rule = str(error.validator)
    missing = _missing(error.validator_value, error.instance) if rule == "required" else None
    raise InvalidRequest(
        f"content does not fit the requested schema: {rule} at /{steps}"
        + (f" ({missing})" if missing else ""),
        code="bad-content",
        details={"field": "content", "path": steps, "rule": rule},
    )


def _first_error(schema: JsonValue, content: JsonValue) -> ValidationError | None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (the same)
    from referencing import Registry  # noqa: PLC0415  (the same)

    validator = Draft202012Validator(_as_schema(schema), registry=Registry())
    return next(iter(validator.iter_errors(content)), None)


def _unusable() -> tuple[type[Exception], ...]:
    from referencing.exceptions import Unresolvable  # noqa: PLC0415  (the same)

    return RecursionError, Unresolvable


def _as_schema(document: JsonValue) -> dict[str, JsonValue]:
    return document if isinstance(document, dict) else {}


def _missing(required: object, instance: object) -> str | None:
    if not isinstance(required, list) or not isinstance(instance, dict):
        return None
    return ", ".join(str(name) for name in required if name not in instance)


def _refuse_foreign(value: JsonValue, depth: int) -> None:
    """Refuse references out of the document: checking an answer opens no connection."""
    if depth > _DEEPEST:
        raise _bad("is nested too deeply")
    if isinstance(value, dict):
        for key, each in value.items():
            if key in _REFERENCES and not (isinstance(each, str) and each.startswith("#")):
                raise _bad("refers to something outside itself")
            _refuse_foreign(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            _refuse_foreign(each, depth + 1)


def _bad(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"requested_schema {what}", code="bad-schema", details={"field": "requested_schema"}
    )
