"""Prove an edit before its bytes are given to anybody (S-61).

Shares neither tokeniser nor value builder with the editor: it reads the result with the standard
library, comments and trailing commas taken out by an expression of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NoReturn

from tfx.config.jsonc.splices import Splice
from tfx.config.jsonc.text import BOM, Dialect
from tfx.config.keypath import canonical
from tfx.errors import JsonValue, OperationFailed

_MAX_DIGITS = 640  # longer integers are doubles, as in the reader
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"|//[^\n]*+|/\*.*?\*/', re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*+[}\]])', re.DOTALL)


def independent_value(data: bytes, dialect: Dialect) -> JsonValue:
    """Read a document with the standard library; white space alone is an empty object.

    Raises ValueError for what is no JSON; RecursionError when the caller's stack is nearly full.
    """
    text = data.removeprefix(BOM).decode("utf-8")
    if not text.strip():
        return {}
    if dialect is Dialect.JSONC:
        text = _STRING_OR_COMMENT.sub(_string_or_space, text)
        text = _STRING_OR_TRAILING_COMMA.sub(_string_or_space, text)
    value: JsonValue = json.loads(text, parse_int=_integer, parse_constant=_no_constant)
    return value


def _string_or_space(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON values")


def prove_value(data: bytes, dialect: Dialect, read: JsonValue, expected: JsonValue) -> None:
    """Check that the editor's own reading and an independent one are the expected document.

    Raises OperationFailed, which names the check and holds nothing of the document.
    """
    wanted = canonical(expected)
    if canonical(read) != wanted:
        _fail("the document read back is not the expected one")
    try:
        independent = independent_value(data, dialect)
    except (ValueError, RecursionError):
        _fail("an independent reader cannot read the result")
    if canonical(independent) != wanted:
        _fail("an independent reader does not see the expected document")


def prove_splices(
    old: str, new: str, splices: Sequence[Splice], targets: Sequence[tuple[int, int]]
) -> None:
    """Check that outside of the splices all text is equal, and that they take away no other's text.

    `targets` are the spans of the old text that the edit is meant to replace or take out; apart
    from them a splice may remove white space and commas only. Raises OperationFailed.
    """
    at = shift = 0
    for splice in splices:
        if splice.start < at or splice.end < splice.start:
            _fail("the splices overlap")
        if old[at : splice.start] != new[at + shift : splice.start + shift]:
            _fail("text outside the splice changed")
        if _outside(old, splice, targets).strip(" \t\r\n,"):
            _fail("text that belongs to somebody else would go")
        at = splice.end
        shift += len(splice.put) - (splice.end - splice.start)
    if old[at:] != new[at + shift :]:
        _fail("text outside the splice changed")


def prove_repeat(*, unchanged: bool) -> None:
    """Check that the same operation again has nothing to do. Raises OperationFailed."""
    if not unchanged:
        _fail("the same operation again is not a no-op")


def _outside(old: str, splice: Splice, targets: Sequence[tuple[int, int]]) -> str:
    """Return what a splice removes apart from the targets."""
    kept: list[str] = []
    at = splice.start
    for start, end in targets:
        if at <= start < splice.end:
            kept.append(old[at:start])
            at = max(at, end)
    return "".join((*kept, old[at : splice.end]))


def _fail(check: str) -> NoReturn:
    raise OperationFailed(
        f"the edit was given up, nothing is written: {check}",
        code="edit-not-proven",
        details={"check": check},
    )
