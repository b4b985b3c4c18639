"""Where the members of a container stand in the text, and the way to a key path.

Knows the text of a document that was read, not how it is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfx.config.jsonc.reader import Document, unescape
from tfx.config.jsonc.text import COMMENT, SCALAR, SPACE, Flaw, grammar, refuse
from tfx.config.keypath import KeyPath


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an element of an array, by indices into the text.

    `start` is the first character of the key, or of the element, which has the key "". `comma` is
    the comma behind it or -1.
    """

    key: str
    start: int
    value: int
    end: int
    comma: int


@dataclass(frozen=True, slots=True)
class Container:
    """An object or an array; `opening` and `closing` are the indices of its brackets."""

    opening: int
    closing: int
    items: tuple[Item, ...]

    def before(self, index: int) -> int:
        """Return where the white space and comments in front of an item begin."""
        return self.items[index - 1].comma + 1 if index else self.opening + 1


@dataclass(frozen=True, slots=True)
class Place:
    """What exists of a key path: its containers from the root, then the value or nothing.

    `index` is the position in the last container, or -1 when `missing` begins with the first key
    that is not there. An empty file has no container at all.
    """

    containers: tuple[Container, ...]
    index: int
    missing: KeyPath

    @property
    def item(self) -> Item:
        """The member that stands at the path; only when nothing is missing."""
        return self.containers[-1].items[self.index]


def container_at(document: Document, opening: int) -> Container:
    """Return the container whose bracket opens at an index, with its direct items only."""
    text, patterns = document.text, grammar(document.dialect)
    keyed = text[opening] == "{"
    items: list[Item] = []
    at = opening + 1
    while True:
        start = patterns.skip(text, at)
        if text[start] in "]}":
            return Container(opening, start, tuple(items))
        key, value = "", start
        if keyed and (found := patterns.key.match(text, start)):
            key, value = unescape(found[1]), found.end()
        end = document.ends.get(value, -1)
        if end < 0 and (scalar := SCALAR.match(text, value)):
            end = scalar.end()
        delimiter = patterns.skip(text, end)
        comma = delimiter if text[delimiter] == "," else -1
        items.append(Item(key, start, value, end, comma))
        at = delimiter + 1 if comma >= 0 else delimiter


def locate(document: Document, path: KeyPath) -> Place:
    """Follow a key path through the objects of a document.

    Raises UnparsableFile where a key on the path stands twice, or where something else than an
    object stands on the way (S-54).
    """
    if document.root < 0:
        return Place((), -1, path)
    containers: list[Container] = []
    at, index = document.root, -1
    for depth, key in enumerate(path):
        require(document, at, "{", path[:depth])
        here = container_at(document, at)
        containers.append(here)
        index = only(document, here, key, path[: depth + 1])
        if index < 0:
            return Place(tuple(containers), -1, path[depth:])
        at = here.items[index].value
    return Place(tuple(containers), index, ())


def only(document: Document, container: Container, key: str, path: KeyPath) -> int:
    """Return the position of the one item with a key, or -1; refuse a second one."""
    found = [index for index, item in enumerate(container.items) if item.key == key]
    if len(found) > 1:
        at = container.items[found[1]].start
        refuse(document.text, at, f"the key {shown(path)} a second time", Flaw.DUPLICATE_KEY)
    return found[0] if found else -1


def require(document: Document, at: int, bracket: str, path: KeyPath) -> None:
    """Refuse what is not an object ("{") or not an array ("[")."""
    if document.text[at] != bracket:
        kind = "an object" if bracket == "{" else "an array"
        refuse(document.text, at, f"{shown(path)} is not {kind}", Flaw.WRONG_TYPE)


def shown(path: KeyPath) -> str:
    """Return a key path as people read it."""
    return ".".join(path) if path else "the document"


def doubled_within(document: Document, item: Item) -> bool:
    """Return whether some object inside an item holds a key twice."""
    return any(item.value <= opening < item.end for opening in document.doubled)


def comments(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Return the spans of the comments in a stretch of white space, commas and comments."""
    found: list[tuple[int, int]] = []
    at = text.find("/", start, end)
    while at >= 0:
        comment = COMMENT.match(text, at)
        after = comment.end() if comment else end
        found.append((at, after))
        at = text.find("/", after, end)
    return tuple(found)


def blank(text: str, at: int) -> int:
    """Return the index behind the white space at an index."""
    found = SPACE.match(text, at)
    return found.end() if found else at


def breaks_line(text: str, start: int, end: int) -> bool:
    """Return whether a stretch of trivia holds a newline outside its comments."""
    for comment_start, comment_end in comments(text, start, end):
        if "\n" in text[start:comment_start]:
            return True
        start = comment_end
    return "\n" in text[start:end]


def on_own_line(text: str, container: Container, index: int) -> bool:
    """Return whether a newline stands between an item and what precedes it."""
    return breaks_line(text, container.before(index), container.items[index].start)


def line_indent(text: str, at: int) -> str:
    """Return the spaces and tabs at the start of the line that holds an index."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < at and text[end] in " \t":
        end += 1
    return text[start:end]
