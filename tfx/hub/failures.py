"""Errors on the wire: the same code, kind, message, hint and details on every transport.

Knows no transport; both directions are here so that a client raises what the hub raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    AuthenticationRequired,
    InvalidRequest,
    JsonValue,
    Kind,
    NotFound,
    OperationFailed,
    StateConflict,
    TfxError,
)

ErrorDocument = dict[str, JsonValue]
E = TypeVar("E", bound=TfxError)

HTTP_STATUS: Mapping[Kind, int] = {
    Kind.INVALID_REQUEST: 400,
    Kind.AUTHENTICATION_REQUIRED: 401,
    Kind.ACCESS_DENIED: 403,
    Kind.NOT_FOUND: 404,
    Kind.STATE_CONFLICT: 409,
    Kind.AGENT_UNAVAILABLE: 503,
    Kind.OPERATION_FAILED: 500,
}

_CLASS_OF_KIND: Mapping[Kind, type[TfxError]] = {
    Kind.INVALID_REQUEST: InvalidRequest,
    Kind.AUTHENTICATION_REQUIRED: AuthenticationRequired,
    Kind.ACCESS_DENIED: AccessDenied,
    Kind.NOT_FOUND: NotFound,
    Kind.STATE_CONFLICT: StateConflict,
    Kind.AGENT_UNAVAILABLE: AgentUnavailable,
    Kind.OPERATION_FAILED: OperationFailed,
}


def to_wire(error: TfxError) -> ErrorDocument:
    """Return `{code, kind, message, hint, details}` (H-27)."""
    return {
        "code": error.reason,
        "kind": error.kind.value,
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
    }


def from_wire(document: object) -> TfxError:
    """Return the error that a document describes; a shape we do not know is operation-failed."""
    if not isinstance(document, dict):
        return OperationFailed("the hub answered in a shape that is not understood")
    try:
        kind = Kind(document.get("kind", ""))
    except ValueError:
        kind = Kind.OPERATION_FAILED
    code = str(document.get("code") or kind.value)
    hint = document.get("hint")
    details = document.get("details")
    return _class_of(code, kind)(
        str(document.get("message") or code),
        code=code,
        hint=hint if isinstance(hint, str) else None,
        details=details if isinstance(details, dict) else None,
    )


def _class_of(code: str, kind: Kind) -> type[TfxError]:
    base = _CLASS_OF_KIND[kind]
    return next((each for each in _family(TfxError) if each.code == code), base)


def _family(cls: type[E]) -> Iterator[type[E]]:
    for child in cls.__subclasses__():
        yield child
        yield from _family(child)
