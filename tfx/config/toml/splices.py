"""Which characters of a TOML text to insert, replace or delete for one change.

Knows no policy: it is told that a path is absent before `insertion` and present before
`deletion`, and the caller checks the outcome. Each pair of opposites restores the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfx.config.keypath import KeyPath
from tfx.config.toml.document import Document
from tfx.config.toml.spans import Item, Section, Steps, Value
from tfx.errors import JsonValue

_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_EMPTY_LINE = re.compile(r"\r?\n")
_HEAD_COMMENT = re.compile(r"(?P<lines>(?:#[^\n]*\n)+)\r?\n")


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str = ""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with every splice done; they must not overlap."""
    parts: list[str] = []
    at = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        parts += (text[at : splice.start], splice.text)
        at = splice.end
    return "".join((*parts, text[at:]))


def insertion(doc: Document, path: KeyPath, value: JsonValue) -> list[Splice]:
    """Write an absent path into the nearest table above it, in the spelling used there.

    A new table becomes a section at the end of the file, a new key a line behind the last key
    of its table; below an inline table or dotted keys the same spelling goes on (S-70).
    """
    for depth in range(len(path) - 1, -1, -1):
        home, key = path[:depth], path[depth:]
        item = doc.item(home) if home else None
        if item is not None:
            return element_insertion(doc, item.value, f"{spell_key(key)} = {spell(value)}")
        section = doc.section(home)
        dotted = _last_dotted(doc, home)
        if section is None and dotted is not None:
            owner, pair = dotted
            return _line_after_pair(doc, pair, path[len(owner.path) :], value)
        if section is None and not _child_headers(doc, home):
            continue
        if isinstance(value, dict):
            return _section_at_end(doc, f"[{spell_key(path)}]", value)
        if len(key) > 1:
            return _section_at_end(doc, f"[{spell_key(path[:-1])}]", {path[-1]: value})
        if section is None:
            return _header_above(doc, home, key, value)
        return _line_in_section(doc, section, key, value)
    raise AssertionError("the root is always there")


def deletion(doc: Document, path: KeyPath) -> list[Splice]:
    """Take a path out: its pairs, its sections, or the first of its keys in an inline table.

    Comments in front of and behind what goes stay. The empty line before a section goes too.
    """
    for depth in range(len(path) - 1, 0, -1):
        item = doc.item(path[:depth])
        if item is not None:
            items = item.value.items
            index = next(i for i, inner in enumerate(items) if _is_under(inner.path, path))
            return element_removal(doc, item.value, index)
    return _statements_removal(doc, path)


def array_table_insertion(
    doc: Document, path: KeyPath, value: dict[str, JsonValue]
) -> list[Splice]:
    """Append a `[[path]]` section at the end of the file."""
    return _section_at_end(doc, f"[[{spell_key(path)}]]", value)


def array_table_removal(doc: Document, path: KeyPath, index: int) -> list[Splice]:
    """Take one element of an array of tables out, with its sub-tables."""
    return _statements_removal(doc, (*path, index))


def element_insertion(doc: Document, container: Value, element: str) -> list[Splice]:
    """Append to an array or an inline table, on a line of its own where the last one has that."""
    if not container.items:
        spaced = doc.text[container.start : container.end] == "{}"
        text = f" {element} " if spaced else element
        return [Splice(container.start + 1, container.start + 1, text)]
    last = container.items[-1]
    stop = last.value.end if last.comma is None else last.comma + 1
    if not _begins_line(doc, container, last) or not _ends_line(doc, stop):
        after = f", {element}" if last.comma is None else f" {element},"
        return [Splice(stop, stop, after)]
    below = _line_end(doc, stop)
    indent = doc.text[_line_start(doc, last.start) : last.start]
    if last.comma is None:
        return [Splice(stop, stop, ","), Splice(below, below, f"{indent}{element}{doc.eol}")]
    return [Splice(below, below, f"{indent}{element},{doc.eol}")]


def element_removal(doc: Document, container: Value, index: int) -> list[Splice]:
    """Take one element of an array or inline table out, with one comma."""
    item = container.items[index]
    previous = container.items[index - 1] if index else None
    stop = item.value.end if item.comma is None else item.comma + 1
    if doc.text[container.start : item.start] == "{ " and doc.text[stop : container.end] == " }":
        return [Splice(container.start + 1, container.end - 1)]
    if _begins_line(doc, container, item) and _ends_line(doc, stop):
        splices = [Splice(_line_start(doc, item.start), _line_end(doc, stop))]
        if item.comma is None and previous is not None and previous.comma is not None:
            splices.append(Splice(previous.comma, previous.comma + 1))
        return splices
    if previous is None or previous.comma is None:
        following = container.items[index + 1].start if index + 1 < len(container.items) else stop
        gap = doc.text[stop:following]
        return [Splice(item.start, stop if gap.strip(" \t") else following)]
    comma_to_go = previous.comma if item.comma is None else previous.comma + 1
    if doc.text[previous.comma + 1 : item.start].strip(" \t\r\n"):
        return [Splice(comma_to_go, previous.comma + 1), Splice(item.start, stop)]
    return [Splice(comma_to_go, stop)]


def spell_key(path: Sequence[str]) -> str:
    """Return a key path in TOML: bare where possible, else quoted."""
    import tomlkit  # noqa: PLC0415  (slow to import, and reading does not need it)

    return tomlkit.key(list(path)).as_string()


def spell(value: JsonValue) -> str:
    """Return a value in TOML on one line; tables become inline ones."""
    import tomlkit  # noqa: PLC0415  (slow to import, and reading does not need it)

    if isinstance(value, dict):
        pairs = ", ".join(f"{spell_key((key,))} = {spell(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(spell(item) for item in value)}]"
    return tomlkit.item(value).as_string()


def _is_under(path: Steps, top: Steps) -> bool:
    return path[: len(top)] == top


def _last_dotted(doc: Document, home: KeyPath) -> tuple[Section, Item] | None:
    """Return the last dotted pair that makes `home` a table, with its section."""
    found = [
        (section, pair)
        for section in doc.sections
        if len(section.path) < len(home)
        for pair in section.pairs
        if _is_under(pair.path, home)
    ]
    return found[-1] if found else None


def _child_headers(doc: Document, home: KeyPath) -> list[Section]:
    return [section for section in doc.sections[1:] if _is_under(section.path, home)]


def _section_at_end(doc: Document, header: str, value: dict[str, JsonValue]) -> list[Splice]:
    """Append a section with one empty line before it; a missing final line end stays missing."""
    pairs = [f"{spell_key((key,))} = {spell(item)}" for key, item in value.items()]
    body = doc.eol.join([header, *pairs])
    end = len(doc.text)
    if not doc.text:
        return [Splice(0, 0, body + doc.eol)]
    if doc.text.endswith("\n"):
        return [Splice(end, end, doc.eol + body + doc.eol)]
    return [Splice(end, end, 2 * doc.eol + body)]


def _header_above(doc: Document, home: KeyPath, key: KeyPath, value: JsonValue) -> list[Splice]:
    """Give a table that only its sub-tables imply a header of its own, before the first of them."""
    start = _above_comments(doc.text, _child_headers(doc, home)[0].start)
    lines = (f"[{spell_key(home)}]", f"{spell_key(key)} = {spell(value)}", "", "")
    return [Splice(start, start, doc.eol.join(lines))]


def _line_in_section(
    doc: Document, section: Section, key: KeyPath, value: JsonValue
) -> list[Splice]:
    if section.pairs:
        return _line_after_pair(doc, section.pairs[-1], key, value)
    line = f"{spell_key(key)} = {spell(value)}"
    if section is not doc.sections[0]:
        indent = re.match(r"[ \t]*", doc.text[section.start : section.body])
        return _line_at(doc, section.body, (indent.group() if indent else "") + line)
    comment = _HEAD_COMMENT.match(doc.text)
    if comment:  # a paragraph of its own in front of the empty line that closes the comment
        return [Splice(comment.end("lines"), comment.end("lines"), doc.eol + line + doc.eol)]
    apart = doc.eol if doc.text else ""
    return [Splice(0, 0, line + doc.eol + apart)]


def _line_after_pair(doc: Document, pair: Item, key: KeyPath, value: JsonValue) -> list[Splice]:
    indent = doc.text[_line_start(doc, pair.start) : pair.start]
    line = f"{indent}{spell_key(key)} = {spell(value)}"
    return _line_at(doc, _line_end(doc, pair.value.end), line)


def _line_at(doc: Document, at: int, line: str) -> list[Splice]:
    ended = doc.text[:at].endswith("\n")
    return [Splice(at, at, line + doc.eol if ended else doc.eol + line)]


def _statements_removal(doc: Document, path: Steps) -> list[Splice]:
    splices: list[Splice] = []
    for section in doc.sections:
        if section.path and _is_under(section.path, path):
            end = _line_end(doc, section.pairs[-1].value.end) if section.pairs else section.body
            splices.append(Splice(_before_empty_line(doc.text, section.start), end))
            continue
        lines = [
            Splice(_line_start(doc, pair.start), _line_end(doc, pair.value.end))
            for pair in section.pairs
            if _is_under(pair.path, path)
        ]
        if lines and not section.path and len(lines) == len(section.pairs):
            lines = _with_empty_line(doc.text, lines)
        splices += lines
    return _without_last_line_end(doc.text, splices)


def _before_empty_line(text: str, start: int) -> int:
    line = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return line if _EMPTY_LINE.fullmatch(text, line, start) else start


def _above_comments(text: str, start: int) -> int:
    """Return the start of the comment lines that stand directly above a line."""
    while start:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].lstrip(" \t").startswith("#"):
            break
        start = line
    return start


def _with_empty_line(text: str, lines: Sequence[Splice]) -> list[Splice]:
    """Take with the only keys of the root the empty line that came with them, if they began one.

    Behind the comment at the head of the file that is the line before, else the one after.
    """
    first, last = lines[0], lines[-1]
    head = _HEAD_COMMENT.match(text)
    if head and head.end() == first.start:
        return [Splice(head.end("lines"), first.end), *lines[1:]]
    empty = _EMPTY_LINE.match(text, last.end)
    began = first.start == 0 or _before_empty_line(text, first.start) < first.start
    return [*lines[:-1], Splice(last.start, empty.end() if empty and began else last.end)]


def _without_last_line_end(text: str, splices: list[Splice]) -> list[Splice]:
    """Let a text without final line end stay without one when its last lines go."""
    start = len(text)
    for splice in reversed(splices):
        if splice.end != start:
            break
        start = splice.start
    line_end = re.search(r"\r?\n\Z", text[:start])
    if start == len(text) or text.endswith("\n") or line_end is None:
        return splices
    return [*splices, Splice(line_end.start(), start)]


def _line_start(doc: Document, at: int) -> int:
    return doc.text.rfind("\n", 0, at) + 1


def _line_end(doc: Document, at: int) -> int:
    return doc.text.find("\n", at) + 1 or len(doc.text)


def _begins_line(doc: Document, container: Value, item: Item) -> bool:
    start = _line_start(doc, item.start)
    return start > container.start and not doc.text[start : item.start].strip(" \t")


def _ends_line(doc: Document, at: int) -> bool:
    return _REST_OF_LINE.match(doc.text, at) is not None
