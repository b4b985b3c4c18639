"""Say where and why a text is not JSON, for a person who has to mend it.

Only ever called on a text that the reader could not match; never quotes it, as it may hold secrets.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn

from tfx.config.jsonc.text import (
    COLON,
    SCALAR,
    STRING,
    STRING_START,
    Flaw,
    Grammar,
    refuse,
)


class Expected(Enum):
    """What the reader wanted to match when it failed."""

    VALUE = "value"
    MEMBER = "member"
    ELEMENT = "element"
    MEMBER_END = "member-end"
    ELEMENT_END = "element-end"
    END = "end"


_NOTHING = re.compile(r"(?!)")
_MEMBER_END = (re.compile(r"[,}]"), "a comma or a closing brace")
_ELEMENT_END = (re.compile(r"[,\]]"), "a comma or a closing bracket")
_VALUE = (SCALAR, "a value")
_STEPS: dict[Expected, tuple[tuple[re.Pattern[str], str], ...]] = {
    Expected.VALUE: (_VALUE,),
    Expected.MEMBER: ((STRING, "a key in double quotes"), (COLON, "a colon"), _VALUE, _MEMBER_END),
    Expected.ELEMENT: (_VALUE, _ELEMENT_END),
    Expected.MEMBER_END: (_MEMBER_END,),
    Expected.ELEMENT_END: (_ELEMENT_END,),
    Expected.END: ((_NOTHING, "the end of the file"),),
}
_NOT_NUMBERS = re.compile(r"[-+]?(?:NaN|Infinity)")


def refuse_syntax(text: str, at: int, grammar: Grammar, expected: Expected) -> NoReturn:
    """Raise UnparsableFile at the exact place where a text stops being what was expected."""
    steps = iter(_STEPS[expected])
    pattern, wanted = next(steps)
    at = grammar.skip(text, at)
    while found := pattern.match(text, at):
        at = grammar.skip(text, found.end())
        pattern, wanted = next(steps, (_NOTHING, wanted))
    if text.startswith('"', at):
        start = STRING_START.match(text, at)
        if start is not None and not STRING.match(text, at):
            at = start.end()
            refuse(text, at, _string_fault(text, at), Flaw.SYNTAX)
    refuse(text, at, _fault(text, at, grammar, wanted), Flaw.SYNTAX)


def _string_fault(text: str, at: int) -> str:
    if at >= len(text) or text[at] in "\r\n":
        return "a string that is not closed"
    if text[at] == "\\":
        return "an escape that JSON does not know"
    return "a control character in a string"


def _fault(text: str, at: int, grammar: Grammar, wanted: str) -> str:
    if at >= len(text):
        return f"the file ends where {wanted} should stand"
    if text.startswith(("//", "/*"), at):
        return _comment_fault(text, at, grammar)
    if text[at] in "]}" and text[:at].rstrip(" \t\r\n").endswith(","):
        return "a trailing comma before it, which strict JSON does not allow"
    if _NOT_NUMBERS.match(text, at):
        return "NaN or Infinity, which are no JSON values"
    thing = "a single quote" if text[at] == "'" else "something else"
    return f"{thing} where {wanted} should stand"


def _comment_fault(text: str, at: int, grammar: Grammar) -> str:
    if not grammar.trailing_comma:
        return "a comment, which strict JSON does not allow"
    if text.startswith("/*", at):
        return "a comment that is not closed"
    return "a comment line with a character in it that some programs take for its end"
