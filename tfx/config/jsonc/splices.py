"""The splices that add items to a container or take one out, so that each undoes the other.

Knows layout and style, not key paths or values. Adding never removes a character, and what it
adds can be told from the text alone; taking out removes that, and never a comment (S-62, S-64).
The pairs:

    [.. last R]          [.. last, NEW R]          the comma goes right behind `last`; a comment on
                                                   the line of `last` stays between comma and NEW
    [.. last, R]         [.. last, NEW, R]         a trailing comma stays one
    [C R]                [C NEW R]                 C ends with the last comment inside
    [W]  on its own      [⏎NEW W⏎]                 W is white space or nothing
    [W]  within a line   [W NEW W]
    W, an empty file     {⏎⏎NEW⏎}W⏎                the blank line tells it from a file of {}
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tfx.config.jsonc.layout import (
    Container,
    Item,
    blank,
    breaks_line,
    comments,
    line_indent,
    on_own_line,
)
from tfx.config.jsonc.style import DEFAULT_UNIT, Style, eol_of, inline_style, line_style
from tfx.errors import JsonValue

Member: TypeAlias = tuple[str | None, JsonValue]  # key (None in an array) and value


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the text from `start` to `end` (exclusive) by `put`."""

    start: int
    end: int
    put: str


def apply(text: str, splices: Sequence[Splice]) -> str:
    """Return a text with splices carried out; they are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for splice in splices:
        pieces += (text[at : splice.start], splice.put)
        at = splice.end
    return "".join((*pieces, text[at:]))


def fill_empty_file(text: str, members: Sequence[Member]) -> list[Splice]:
    """Write the first object into a file of white space."""
    eol = eol_of(text)
    style = Style(eol, DEFAULT_UNIT, DEFAULT_UNIT, inline=False, colon=": ", comma=", ")
    put = f"{{{eol}{style.line}{_join(style, members)}{eol}}}"
    return [Splice(0, 0, put), Splice(len(text), len(text), eol)]


def insertion(
    text: str, containers: Sequence[Container], members: Sequence[Member]
) -> list[Splice]:
    """Add members behind all items of the last of these containers, which lie in each other."""
    container = containers[-1]
    if container.items:
        return _behind_last(text, containers, members)
    inside = comments(text, container.opening + 1, container.closing)
    if inside:
        return _behind_comment(text, containers, inside[-1], members)
    return _into_blank(text, containers, members)


def _behind_last(
    text: str, containers: Sequence[Container], members: Sequence[Member]
) -> list[Splice]:
    container = containers[-1]
    last = container.items[-1]
    trailing = last.comma >= 0
    base = last.comma + 1 if trailing else last.end
    at, cut_off = _end_of_line_comments(text, base, container.closing)
    if on_own_line(text, container, len(container.items) - 1):
        style = line_style(text, containers, line_indent(text, last.start))
    else:
        style = line_style(text, containers) if cut_off else inline_style(text, containers)
    lead = style.comma[1:] if style.inline else style.line
    put = f"{lead}{_join(style, members)}"
    if trailing:
        return [Splice(at, at, f"{put},")]
    if at == base:
        return [Splice(at, at, f",{put}")]
    return [Splice(base, base, ","), Splice(at, at, put)]


def _end_of_line_comments(text: str, start: int, end: int) -> tuple[int, bool]:
    """Return where the comments end that begin on the line of `start`, else `start`.

    The second value tells whether the last of them lasts until the end of its line.
    """
    at, cut_off = start, False
    for comment_start, comment_end in comments(text, start, end):
        if "\n" in text[at:comment_start]:
            break
        at, cut_off = comment_end, text.startswith("//", comment_start)
    return at, cut_off


def _behind_comment(
    text: str, containers: Sequence[Container], comment: tuple[int, int], members: Sequence[Member]
) -> list[Splice]:
    start, at = comment
    if not breaks_line(text, at, containers[-1].closing):
        return [Splice(at, at, f" {_join(inline_style(text, containers), members)}")]
    indent = line_indent(text, start)
    own_line = text.startswith("\n", start - len(indent) - 1)
    style = line_style(text, containers, indent if own_line else None)
    return [Splice(at, at, f"{style.line}{_join(style, members)}")]


def _into_blank(
    text: str, containers: Sequence[Container], members: Sequence[Member]
) -> list[Splice]:
    container = containers[-1]
    at, end = container.opening + 1, container.closing
    inside = text[at:end]
    if "\n" not in inside and _within_a_line(text, containers):
        return [Splice(at, at, f"{inside}{_join(inline_style(text, containers), members)}")]
    style = line_style(text, containers)
    tail = f"{style.eol}{line_indent(text, container.opening)}"
    return [Splice(at, at, f"{style.line}{_join(style, members)}"), Splice(end, end, tail)]


def _within_a_line(text: str, containers: Sequence[Container]) -> bool:
    """Return whether the item that holds the last container shares its line with others."""
    if len(containers) < 2:  # noqa: PLR2004  (the root is in no container)
        return False
    parent, opening = containers[-2], containers[-1].opening
    index = bisect_left(parent.items, opening, key=lambda item: item.value)
    return not on_own_line(text, parent, index)


def _join(style: Style, members: Sequence[Member]) -> str:
    return style.between.join(style.item(key, value) for key, value in members)


def replacement(text: str, containers: Sequence[Container], index: int, value: JsonValue) -> Splice:
    """Write another value over that of an item of the last of these containers."""
    container = containers[-1]
    item = container.items[index]
    one_line = "\n" not in text[item.value : item.end]
    if one_line and not on_own_line(text, container, index):
        style = inline_style(text, containers)
    else:
        style = line_style(text, containers, line_indent(text, item.start))
    return Splice(item.value, item.end, style.item(None, value))


def removal(text: str, container: Container, index: int) -> list[Splice]:
    """Take one item out, with one comma and the white space that came with it."""
    item = container.items[index]
    if index < len(container.items) - 1:
        return _out_of_the_middle(text, item)
    if index:
        return _off_the_end(text, container, index)
    return _the_only_one(text, container)


def _out_of_the_middle(text: str, item: Item) -> list[Splice]:
    if comments(text, item.end, item.comma):
        after = blank(text, item.end)
        return [Splice(item.start, after, ""), Splice(item.comma, item.comma + 1, "")]
    return [Splice(item.start, blank(text, item.comma + 1), "")]


def _off_the_end(text: str, container: Container, index: int) -> list[Splice]:
    item, previous = container.items[index], container.items[index - 1]
    splices = _last_item(text, container, index)
    if item.comma >= 0:
        return splices
    comma = previous.comma
    start = previous.end if blank(text, previous.end) == comma else comma
    if "\n" not in text[start:comma]:
        start = comma
    return [Splice(start, comma + 1, ""), *splices]


def _last_item(text: str, container: Container, index: int) -> list[Splice]:
    """Remove the last item and its own comma; keep the lines of the comments around it."""
    item = container.items[index]
    base, after = item.end, blank(text, item.end)
    comma_apart = item.comma > after
    if item.comma == after:
        base, after = item.comma + 1, blank(text, item.comma + 1)
    inside = comments(text, container.before(index), item.start)
    start = inside[-1][1] if inside else container.before(index)
    newline = text.find("\n", base, after)
    if text.startswith("/", after) and newline < 0:
        start, base = item.start, after  # that comment takes the item's place
    elif inside and text.startswith("//", inside[-1][0]):
        if newline < 0:
            start = item.start  # what follows must not get into the comment line in front
        else:
            base += len(text[base:newline].rstrip("\r"))
    splices = [Splice(start, base, "")]
    if comma_apart:
        splices.append(Splice(item.comma, item.comma + 1, ""))
    return splices


def _the_only_one(text: str, container: Container) -> list[Splice]:
    item = container.items[0]
    opening, closing = container.opening, container.closing
    if comments(text, opening + 1, item.start) or comments(text, item.end, closing):
        return _last_item(text, container, 0)
    after = item.comma + 1 if item.comma >= 0 else item.end
    lead, tail = text[opening + 1 : item.start], text[after:closing]
    newline = lead.find("\n")
    if newline < 0:
        return [Splice(item.start if lead == tail else opening + 1, closing, "")]
    eol = "\r\n" if lead[:newline].endswith("\r") else "\n"
    if _fills_empty_file(text, container, eol):
        return [Splice(0, closing + 1, ""), Splice(len(text) - len(eol), len(text), "")]
    cut = tail.rfind(eol)
    if cut < 0:
        return [Splice(opening + 1, closing, "")]
    return [Splice(opening + 1, after, ""), Splice(after + cut, closing, "")]


def _fills_empty_file(text: str, container: Container, eol: str) -> bool:
    """Return whether the document is as `fill_empty_file` wrote it."""
    item, closing = container.items[0], container.closing
    rest = text[closing + 1 :]
    return (
        text.startswith(f"{{{eol}{eol}")
        and not text[1 + 2 * len(eol) : item.start].strip(" \t")
        and text[item.end : closing] == eol
        and rest.endswith(eol)
        and not rest.strip(" \t\r\n")
    )
