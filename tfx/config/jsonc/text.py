"""The letter of JSON and JSONC: bytes to text and back, the grammar, positions, refusals.

Knows neither values nor edits.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NoReturn

from tfx.errors import BeyondLimits, UnparsableFile

BOM = codecs.BOM_UTF8
MAX_BYTES = 32 * 1024 * 1024  # S-66
MAX_DEPTH = 200  # S-66: far above any client's file, far below Python's recursion limit


class Dialect(StrEnum):
    """What a client accepts in its file: strict JSON, or comments and trailing commas (S-67)."""

    JSON = "json"
    JSONC = "jsonc"


class Flaw(StrEnum):
    """Why a document is refused; `details["reason"]` of the UnparsableFile."""

    SYNTAX = "syntax"
    ENCODING = "encoding"
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    DUPLICATE_KEY = "duplicate-key"
    WRONG_TYPE = "wrong-type"


_SPACE = r"[ \t\r\n]*+"
# Programs differ on whether a lone CR, U+2028 or U+2029 ends a line comment, and so on which text
# is live; such a comment is refused unless nothing follows. At the end of the file a comment needs
# no newline.
_LINE_COMMENT = r"//[^\n\r\u2028\u2029]*+(?=\r*+(?:\n|\Z))"
_BLOCK_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/"
_COMMENT = rf"(?:{_LINE_COMMENT}|{_BLOCK_COMMENT})"
_CHARACTERS = r'[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
_STRING = rf'"({_CHARACTERS})"'
_NUMBER = r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)"
_LITERAL = r"(true|false|null)"
_SCALAR = rf"(?:{_STRING}|{_NUMBER}|{_LITERAL})"

COMMENT = re.compile(_COMMENT)
SPACE = re.compile(_SPACE)
STRING = re.compile(_STRING)
STRING_START = re.compile(rf'"{_CHARACTERS}')
SCALAR = re.compile(_SCALAR)
COLON = re.compile(":")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The compiled patterns of one dialect; all are anchored at a position and linear in time.

    member: key, string, number, literal, delimiter behind a scalar, or opening bracket.
    element: the same without the key. follow: the delimiter behind a container.
    """

    trivia: re.Pattern[str]
    key: re.Pattern[str]
    root: re.Pattern[str]
    member: re.Pattern[str]
    element: re.Pattern[str]
    follow_member: re.Pattern[str]
    follow_element: re.Pattern[str]
    close_object: re.Pattern[str]
    close_array: re.Pattern[str]
    trailing_comma: bool

    def skip(self, text: str, at: int) -> int:
        """Return the index behind the white space and comments at an index."""
        found = self.trivia.match(text, at)
        return found.end() if found else at


@cache
def grammar(dialect: Dialect) -> Grammar:
    """Return the patterns of a dialect, compiled once."""
    trivia = _SPACE if dialect is Dialect.JSON else rf"(?:[ \t\r\n]++|{_COMMENT})*+"
    key = rf"{trivia}{_STRING}{trivia}:{trivia}"
    return Grammar(
        trivia=re.compile(trivia),
        key=re.compile(key),
        root=re.compile(rf"{trivia}(?:{_SCALAR}|([{{\[]))"),
        member=re.compile(rf"{key}(?:{_SCALAR}{trivia}([,}}])|([{{\[]))"),
        element=re.compile(rf"{trivia}(?:{_SCALAR}{trivia}([,\]])|([{{\[]))"),
        follow_member=re.compile(rf"{trivia}([,}}])"),
        follow_element=re.compile(rf"{trivia}([,\]])"),
        close_object=re.compile(rf"{trivia}\}}"),
        close_array=re.compile(rf"{trivia}\]"),
        trailing_comma=dialect is Dialect.JSONC,
    )


def decode(data: bytes) -> tuple[bytes, str]:
    """Split bytes into their BOM (or b"") and their text.

    Raises BeyondLimits for more than 32 MiB (S-66), UnparsableFile for bytes that are not UTF-8
    and for NUL (S-54, S-96).
    """
    if len(data) > MAX_BYTES:
        raise BeyondLimits(
            f"the file has {len(data)} bytes, more than the limit of {MAX_BYTES}",
            details={"reason": Flaw.TOO_LARGE.value, "limit_bytes": MAX_BYTES},
        )
    bom = BOM if data.startswith(BOM) else b""
    raw = data[len(bom) :]
    try:
        text, fault = raw.decode("utf-8"), -1
    except UnicodeDecodeError as error:
        text, fault = "", error.start
    if fault >= 0:
        # outside of the handler: the codec's error carries the whole file, secrets included
        text = raw[:fault].decode("utf-8")
        refuse(text, len(text), "bytes that are not UTF-8", Flaw.ENCODING)
    nul = text.find("\0")
    if nul >= 0:
        refuse(text, nul, "a NUL character, which no JSON text may hold", Flaw.ENCODING)
    return bom, text


def position(text: str, at: int) -> tuple[int, int]:
    """Return the 1-based line and column (in characters) of an index."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def refuse(text: str, at: int, what: str, flaw: Flaw) -> NoReturn:
    """Raise UnparsableFile (BeyondLimits for TOO_DEEP) with line and column of an index.

    Both count from 1, the column in characters.

    `what` never quotes the document: it may hold secrets.
    """
    line, column = position(text, at)
    kind = BeyondLimits if flaw is Flaw.TOO_DEEP else UnparsableFile
    raise kind(
        f"line {line}, column {column}: {what}",
        details={"line": line, "column": column, "reason": flaw.value},
    )
