"""How a document is written where something is to be added, and values written that way.

Knows the layout of a document, not what is edited. Nothing here depends on the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfx.config.jsonc.layout import Container, line_indent, on_own_line
from tfx.errors import JsonValue

_INDENTED = re.compile(r"\n([ \t]+)[\"{\[]")
DEFAULT_UNIT = "  "


@dataclass(frozen=True, slots=True)
class Style:
    """One place's way of writing.

    `indent` stands before a new item on its own line, `unit` is added per level below it. With
    `inline` everything stays on one line, and these are empty. `colon` and `comma` have their
    spaces with them.
    """

    eol: str
    indent: str
    unit: str
    inline: bool
    colon: str
    comma: str

    @property
    def between(self) -> str:
        """What separates two items."""
        return self.comma if self.inline else f",{self.line}"

    @property
    def line(self) -> str:
        """A newline and the indentation of an item."""
        return f"{self.eol}{self.indent}"

    def item(self, key: str | None, value: JsonValue) -> str:
        """Write a member, or with no key an element; text that is not ASCII stays as it is."""
        if self.inline:
            written = json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        else:
            separators = (",", self.colon)
            written = json.dumps(
                value, ensure_ascii=False, indent=self.unit, separators=separators
            ).replace("\n", self.line)
        if key is None:
            return written
        return f"{json.dumps(key, ensure_ascii=False)}{self.colon}{written}"


def eol_of(text: str) -> str:
    """Return the line ending of a text, that of its first line; LF when it has none."""
    newline = text.find("\n")
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def inline_style(text: str, containers: Sequence[Container]) -> Style:
    """Return the style for an item among others on a line.

    Like `line_style` it is for the last of these containers, which lie in each other. It looks at
    nothing beyond them, so that many of them can be edited in linear time.
    """
    colon = colon_of(text, containers)
    comma = comma_of(text, containers[-1], colon)
    return Style(eol="", indent="", unit="", inline=True, colon=colon, comma=comma)


def line_style(text: str, containers: Sequence[Container], indent: str | None = None) -> Style:
    """Return the style for an item on a line of its own.

    `indent` is what stands before its neighbours; None: one level more than before the bracket.
    """
    unit = unit_of(text, containers)
    if indent is None:
        indent = line_indent(text, containers[-1].opening) + unit
    colon = colon_of(text, containers)
    return Style(eol_of(text), indent, unit, inline=False, colon=colon, comma=", ")


def unit_of(text: str, containers: Sequence[Container]) -> str:
    """Return one level of indentation, from as near as it can be seen."""
    for container in reversed(containers):
        outer = line_indent(text, container.opening)
        for index in (len(container.items) - 1, 0) if container.items else ():
            if on_own_line(text, container, index):
                inner = line_indent(text, container.items[index].start)
                if inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
    found = _INDENTED.search(text)
    return found[1] if found else DEFAULT_UNIT


def colon_of(text: str, containers: Sequence[Container]) -> str:
    """Return the colon with the spaces that the nearest member has around it."""
    for container in reversed(containers):
        if container.items:
            last = container.items[-1]
            keyed = text[last.start : last.value]
            head = keyed.rstrip(" \t")
            if head.endswith(":"):
                after = " " if head != keyed else ""
                return f" :{after}" if head[-2] in " \t" else f":{after}"
    return ": "


def comma_of(text: str, container: Container, colon: str) -> str:
    """Return the comma between items of one line."""
    if len(container.items) > 1:
        behind = text[container.items[0].comma + 1]
        return ", " if behind in " \t\r\n" else ","
    return ", " if colon.endswith(" ") else ","
