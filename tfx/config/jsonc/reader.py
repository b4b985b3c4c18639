"""Read a whole document: its value, and where each of its containers ends.

Knows nothing of edits or layout. Iterative, so that no nesting can exhaust the stack (S-66).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from tfx.config.jsonc.faults import Expected, refuse_syntax
from tfx.config.jsonc.text import MAX_DEPTH, Dialect, Flaw, Grammar, decode, grammar, refuse
from tfx.errors import JsonValue

# Python refuses to convert longer digit strings when the interpreter is set so (at least 640);
# to every client such a number is a double anyway.
MAX_DIGITS = 640

_LITERALS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))"
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_Container: TypeAlias = dict[str, JsonValue] | list[JsonValue]


@dataclass(frozen=True, slots=True)
class Document:
    """A document as read.

    `ends` maps the index of each opening bracket to the index behind the closing one.
    `doubled` lists the opening brackets of objects that hold a key twice; in `value` the last
    one counts, as it does for the clients. `root` is -1 for an empty file, whose value is {}.
    """

    bom: bytes = field(repr=False)
    text: str = field(repr=False)
    dialect: Dialect
    value: JsonValue = field(repr=False)
    root: int
    ends: dict[int, int] = field(repr=False)
    doubled: frozenset[int] = field(repr=False)


def read(data: bytes, dialect: Dialect) -> Document:
    """Read a document; white space alone is an empty object (S-60).

    Raises UnparsableFile with line and column, for comments and trailing commas in strict JSON
    too (S-54, S-67).
    """
    bom, text = decode(data)
    if not text.strip(" \t\r\n"):
        return Document(bom, text, dialect, {}, -1, {}, frozenset())
    return _Reader(text, grammar(dialect)).document(bom, dialect)


def integer(digits: str) -> int | float:
    """Return the number that digits spell, a float when they are beyond counting."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def unescape(raw: str) -> str:
    """Return the text that the inside of a string literal stands for; lone surrogates stay."""
    return _ESCAPE.sub(_unescaped, raw)


def _unescaped(found: re.Match[str]) -> str:
    high, low, code, short = found.groups()
    if short is not None:
        return _SHORT.get(short, short)
    if code is not None:
        return chr(int(code, 16))
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)


def _scalar(string: str | None, number: str | None, literal: str | None) -> JsonValue:
    if string is not None:
        return unescape(string) if "\\" in string else string
    if number is not None:
        plain = "." not in number and "e" not in number and "E" not in number
        return integer(number) if plain else float(number)
    return _LITERALS[literal or "null"]


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, patterns: Grammar) -> None:
        self.text = text
        self.grammar = patterns
        self.ends: dict[int, int] = {}
        self.doubled: set[int] = set()

    def document(self, bom: bytes, dialect: Dialect) -> Document:
        value: JsonValue
        root = self.grammar.skip(self.text, 0)
        found = self.grammar.root.match(self.text, root)
        if found is None:
            refuse_syntax(self.text, root, self.grammar, Expected.VALUE)
        string, number, literal, opening = found.groups()
        if opening is None:
            value, after = _scalar(string, number, literal), found.end()
        else:
            value, after = self.container(root)
        if self.grammar.skip(self.text, after) != len(self.text):
            refuse_syntax(self.text, after, self.grammar, Expected.END)
        doubled = frozenset(self.doubled)
        return Document(bom, self.text, dialect, value, root, self.ends, doubled)

    def container(self, start: int) -> tuple[_Container, int]:
        """Return the container that opens at `start`, and the index behind it."""
        top = node = self.opened(start)
        outer: list[tuple[int, _Container]] = []
        at = start + 1
        while True:
            if isinstance(node, dict):
                at, child = self.members(start, node, at)
            else:
                at, child = self.elements(start, node, at)
            if child is not None:
                outer.append((start, node))
                if len(outer) >= MAX_DEPTH:
                    refuse(self.text, at, f"more than {MAX_DEPTH} levels of nesting", Flaw.TOO_DEEP)
                start, node, at = at, child, at + 1
                continue
            self.ends[start] = at
            while outer:
                start, node = outer.pop()
                at, more = self.follow(node, at)
                if more:
                    break
                self.ends[start] = at
            else:
                return top, at

    def opened(self, at: int) -> _Container:
        return {} if self.text[at] == "{" else []

    def members(
        self, start: int, node: dict[str, JsonValue], at: int
    ) -> tuple[int, _Container | None]:
        """Read scalar members until the object ends or a container opens in it.

        Returns the index behind the object, or the index of the opening bracket and the child.
        """
        text, member = self.text, self.grammar.member.match
        while True:
            found = member(text, at)
            if found is None:
                return self.closed(self.grammar.close_object, start, at, Expected.MEMBER), None
            key, string, number, literal, delimiter, opening = found.groups()
            if "\\" in key:
                key = unescape(key)
            if key in node:
                self.doubled.add(start)
            at = found.end()
            if opening is not None:
                child = self.opened(at - 1)
                node[key] = child
                return at - 1, child
            node[key] = _scalar(string, number, literal)
            if delimiter == "}":
                return at, None

    def elements(self, start: int, node: list[JsonValue], at: int) -> tuple[int, _Container | None]:
        """Do for an array what `members` does for an object."""
        text, element = self.text, self.grammar.element.match
        while True:
            found = element(text, at)
            if found is None:
                return self.closed(self.grammar.close_array, start, at, Expected.ELEMENT), None
            string, number, literal, delimiter, opening = found.groups()
            at = found.end()
            if opening is not None:
                child = self.opened(at - 1)
                node.append(child)
                return at - 1, child
            node.append(_scalar(string, number, literal))
            if delimiter == "]":
                return at, None

    def closed(self, pattern: re.Pattern[str], start: int, at: int, expected: Expected) -> int:
        """Return the index behind a container that ends at once or behind a trailing comma."""
        found = pattern.match(self.text, at)
        if found is None or (at > start + 1 and not self.grammar.trailing_comma):
            refuse_syntax(self.text, at, self.grammar, expected)
        return found.end()

    def follow(self, node: _Container, at: int) -> tuple[int, bool]:
        """Return the index behind the delimiter that follows a child, and whether it is a comma."""
        in_object = isinstance(node, dict)
        pattern = self.grammar.follow_member if in_object else self.grammar.follow_element
        found = pattern.match(self.text, at)
        if found is None:
            expected = Expected.MEMBER_END if in_object else Expected.ELEMENT_END
            refuse_syntax(self.text, at, self.grammar, expected)
        return found.end(), found[1] == ","
