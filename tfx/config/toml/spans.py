"""Where each table, key and value of a TOML document stands in its text.

Knows nothing of edits. It finds positions only: whether the text is TOML at all is for tomllib.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from tfx.errors import BeyondLimits, UnparsableFile

MAX_DEPTH = 64
"""Steps from the root to a value; deeper is refused as excessive nesting (S-54)."""

Steps: TypeAlias = tuple[str | int, ...]
"""A key path with the number of the element where it leads through an array."""

_BLANKS = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"""[^\s.=\]"'#]+""")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?""""{0,2}'
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*|[^\s,\]}#]+")


class Shape(StrEnum):
    """How a value is written."""

    SCALAR = "scalar"
    ARRAY = "array"
    INLINE = "inline"


@dataclass(frozen=True, slots=True)
class Value:
    """A value in the text; an array and an inline table have items."""

    start: int
    end: int
    shape: Shape
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A key with its value, or an element of an array.

    `path` leads from the root, `comma` is the offset of the comma behind it inside brackets.
    """

    path: Steps
    start: int
    value: Value
    comma: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A header and the pairs up to the next header; the first section is the root, without one.

    `start` is the start of the header's line, `body` the offset behind that line.
    """

    path: Steps
    start: int
    body: int
    pairs: tuple[Item, ...] = ()


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, both from 1, the column in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def unparsable(text: str, offset: int, what: str) -> UnparsableFile:
    """Return the refusal that names this place of the text."""
    return unparsable_at(*position(text, offset), what)


def unparsable_at(line: int, column: int, what: str) -> UnparsableFile:
    """Return the refusal that names this place."""
    return UnparsableFile(
        f"line {line}, column {column}: {what}", details={"line": line, "column": column}
    )


def scan(text: str) -> tuple[Section, ...]:
    """Return the sections of a text that tomllib accepts, in the order of the file.

    Raises UnparsableFile for nesting beyond MAX_DEPTH and for text that is not TOML; of the
    latter it may also return some sections.
    """
    return _Scanner(text).sections()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._elements: dict[Steps, int] = {}

    def sections(self) -> tuple[Section, ...]:
        found: list[Section] = []
        section, pairs = Section((), 0, 0), list[Item]()
        while self._skip(_BETWEEN) < len(self._text):
            if self._peek() == "[":
                found.append(dataclasses.replace(section, pairs=tuple(pairs)))
                section, pairs = self._header(), []
            else:
                pairs.append(self._pair(section.path))
        return (*found, dataclasses.replace(section, pairs=tuple(pairs)))

    def _header(self) -> Section:
        start = self._text.rfind("\n", 0, self._at) + 1
        of_array = self._text.startswith("[[", self._at)
        self._at += 2 if of_array else 1
        path = self._resolve(self._key(), of_array=of_array)
        self._expect("]]" if of_array else "]")
        line_end = self._text.find("\n", self._at) + 1 or len(self._text)
        return Section(path, start, line_end)

    def _resolve(self, key: tuple[str, ...], *, of_array: bool) -> Steps:
        """Put the number of the current element behind each array of tables on the way."""
        path: Steps = ()
        for index, step in enumerate(key):
            path = (*path, step)
            if of_array and index == len(key) - 1:
                self._elements[path] = self._elements.get(path, 0) + 1
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
        return path

    def _pair(self, base: Steps) -> Item:
        start = self._at
        path = (*base, *self._key())
        self._expect("=")
        self._skip(_BLANKS)
        return Item(path, start, self._value(path))

    def _key(self) -> tuple[str, ...]:
        steps: list[str] = []
        while True:
            self._skip(_BLANKS)
            if self._peek() in {'"', "'"}:
                quoted = self._take(_STRING)
                steps.append(str(tomllib.loads(f"key = {quoted}")["key"]))
            else:
                steps.append(self._take(_BARE_KEY))
            self._skip(_BLANKS)
            if self._peek() != ".":
                return tuple(steps)
            self._at += 1
            if len(steps) >= MAX_DEPTH:
                raise self._too_deep()

    def _value(self, path: Steps) -> Value:
        if len(path) > MAX_DEPTH:
            raise self._too_deep()
        start, first = self._at, self._peek()
        if first == "[":
            items = self._items(path, "]")
            return Value(start, self._at, Shape.ARRAY, items)
        if first == "{":
            items = self._items(path, "}")
            return Value(start, self._at, Shape.INLINE, items)
        self._take(_STRING if first in {'"', "'"} else _SCALAR)
        return Value(start, self._at, Shape.SCALAR)

    def _items(self, path: Steps, close: str) -> tuple[Item, ...]:
        self._at += 1
        items: list[Item] = []
        while True:
            self._skip(_BETWEEN)
            if self._peek() == close:
                self._at += 1
                return tuple(items)
            if close == "}":
                item = self._pair(path)
            else:
                start, step = self._at, (*path, len(items))
                item = Item(step, start, self._value(step))
            self._skip(_BETWEEN)
            if self._peek() == ",":
                item = dataclasses.replace(item, comma=self._at)
                self._at += 1
            items.append(item)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise unparsable(self._text, self._at, "not TOML")
        self._at = match.end()
        return match.group()

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise unparsable(self._text, self._at, f"not TOML: expected {mark}")
        self._at += len(mark)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _too_deep(self) -> BeyondLimits:
        found = unparsable(self._text, self._at, f"nested more than {MAX_DEPTH} levels deep")
        return BeyondLimits(found.message, details=found.details)
