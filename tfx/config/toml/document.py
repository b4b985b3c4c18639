"""A TOML file as read: its bytes, its values and the place of each of them.

Knows nothing of edits; `tomllib` decides what the file says, toml_spans.py where it says it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tfx.config.keypath import MISSING, KeyPath, Missing
from tfx.config.toml.spans import Item, Section, Shape, Steps, scan, unparsable, unparsable_at
from tfx.errors import BeyondLimits, JsonValue, UnparsableFile

BOM = b"\xef\xbb\xbf"
MAX_BYTES = 8 * 1024 * 1024
"""Larger files are refused (S-110): no client writes such a configuration."""

Table: TypeAlias = dict[str, object]
"""A table as tomllib returns it: values include datetime objects."""

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Document:
    """One TOML file: byte order mark, text, values and sections."""

    bom: bytes
    text: str
    root: Table
    sections: tuple[Section, ...]

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.bom + self.text.encode()

    @property
    def eol(self) -> Literal["\n", "\r\n"]:
        """The line end of most lines (S-69)."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows > self.text.count("\n") - windows else "\n"

    def value(self, path: KeyPath) -> object | Missing:
        """Return the value at a path as tomllib has it, or MISSING."""
        found: object = self.root
        for step in path:
            if not isinstance(found, dict) or step not in found:
                return MISSING
            found = found[step]
        return found

    def item(self, path: Steps) -> Item | None:
        """Return the one pair that writes the whole value of a path, if there is one."""
        return next((item for item in self.items() if item.path == path), None)

    def items(self) -> Iterator[Item]:
        """Yield every pair and element, those inside brackets after the one around them."""
        for section in self.sections:
            yield from _walk(section.pairs)

    def section(self, path: Steps) -> Section | None:
        """Return the section whose header names this path; the root for the empty one."""
        return next((section for section in self.sections if section.path == path), None)

    def offset(self, path: Steps) -> int:
        """Return where a path is first written, 0 when it is written nowhere."""
        depth = len(path)
        headers = [s.start for s in self.sections[1:] if s.path[:depth] == path]
        pairs = [item.start for item in self.items() if item.path[:depth] == path]
        return min(headers + pairs, default=0)

    def refusal(self, path: Steps, what: str) -> UnparsableFile:
        """Return the refusal that names the place of a path."""
        return unparsable(self.text, self.offset(path), what)


def load(data: bytes) -> Document:
    """Read a TOML file; an empty one is an empty document.

    Raises UnparsableFile with line and column for anything but valid TOML in UTF-8, for nesting
    beyond MAX_DEPTH and for files above MAX_BYTES (S-54, S-55).
    """
    if len(data) > MAX_BYTES:
        raise BeyondLimits(f"larger than {MAX_BYTES // 1024**2} MiB")
    bom = BOM if data.startswith(BOM) else b""
    text = _decode(data[len(bom) :])
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _located(text, str(error)) from None
    except RecursionError:
        scan(text)
        raise BeyondLimits("nested too deeply") from None
    return Document(bom, text, root, scan(text))


def same(one: object, other: object) -> bool:
    """Say whether two values are equal in type and value; not-a-number equals itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def to_json(value: object) -> JsonValue:
    """Return a TOML value as JSON: dates and times become ISO 8601 strings."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"no TOML value: {type(value).__name__}")


def _walk(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if item.value.shape is not Shape.SCALAR:
            yield from _walk(item.value.items)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise unparsable(before, len(before), "not UTF-8") from None


def _located(text: str, message: str) -> UnparsableFile:
    """Turn tomllib's message into a refusal; it names the place at the end of its message."""
    match = _PLACE.search(message)
    what = _PLACE.sub("", message)
    if match is None or match[1] is None:
        return unparsable(text, len(text), what)
    return unparsable_at(int(match[1]), int(match[2]), what)
