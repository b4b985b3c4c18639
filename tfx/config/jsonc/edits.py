"""Which splices make a verb come true in a document, and the value the document then has.

Knows nothing of bytes, and proves nothing: jsonc.py does. A verb that has nothing to do is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tfx.config.jsonc.layout import (
    Container,
    Place,
    container_at,
    doubled_within,
    locate,
    only,
    require,
)
from tfx.config.jsonc.reader import Document
from tfx.config.jsonc.splices import (
    Member,
    Splice,
    fill_empty_file,
    insertion,
    removal,
    replacement,
)
from tfx.config.jsonc.values import keeps_shape, merged, same, value_at, with_value
from tfx.config.keypath import MISSING, KeyPath
from tfx.errors import JsonValue

_Object: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Edit:
    """Splices in order, the spans they are meant to take away, and the document they must give.

    `again`: the same verb will find something to do once more (a second equal element).
    """

    splices: Sequence[Splice]
    expected: JsonValue
    targets: Sequence[tuple[int, int]] = ()
    again: bool = False


def set_key(document: Document, path: KeyPath, value: JsonValue) -> Edit | None:
    """Plan that the value at a path becomes exactly this one."""
    place = locate(document, path)
    if place.missing:
        return _added(document, place, path, value)
    old = value_at(document.value, path)
    clean = not doubled_within(document, place.item)
    if clean and same(old, value):
        return None
    expected = with_value(document.value, path, value)
    if clean and isinstance(old, dict) and isinstance(value, dict) and keeps_shape(old, value):
        return _leaf_by_leaf(document, place, path, (old, value), expected)
    return _replaced(document, place, value, expected)


def merge_key(document: Document, path: KeyPath, value: JsonValue) -> Edit | None:
    """Plan that each leaf of a value stands below a path, beside what else is there."""
    place = locate(document, path)
    if place.missing:
        return _added(document, place, path, value)
    old = value_at(document.value, path)
    if isinstance(value, dict) and isinstance(old, dict):
        expected = with_value(document.value, path, merged(old, value))
        return _leaf_by_leaf(document, place, path, (old, value), expected)
    if isinstance(value, dict) and value:
        require(document, place.item.value, "{", path)
    if same(old, value) and not doubled_within(document, place.item):
        return None
    return _replaced(document, place, value, with_value(document.value, path, value))


def delete_key(document: Document, path: KeyPath) -> Edit | None:
    """Plan that nothing stands at a path; its parents stay."""
    place = locate(document, path)
    if place.missing:
        return None
    expected = with_value(document.value, path, MISSING)
    return _taken_out(document, place.containers[-1], place.index, expected)


def append(document: Document, path: KeyPath, value: JsonValue) -> Edit | None:
    """Plan that the array at a path has an element that equals the value."""
    place = locate(document, path)
    if place.missing:
        return _added(document, place, path, [value])
    array = _array_at(document, place, path)
    elements = _elements(document, path)
    if any(same(element, value) for element in elements):
        return None
    splices = insertion(document.text, (*place.containers, array), [(None, value)])
    return Edit(splices, with_value(document.value, path, [*elements, value]))


def remove_element(document: Document, path: KeyPath, value: JsonValue) -> Edit | None:
    """Plan that the first element that equals the value leaves the array at a path."""
    place = locate(document, path)
    if place.missing:
        return None
    array = _array_at(document, place, path)
    elements = _elements(document, path)
    equal = [index for index, element in enumerate(elements) if same(element, value)]
    if not equal:
        return None
    rest = elements[: equal[0]] + elements[equal[0] + 1 :]
    expected = with_value(document.value, path, rest)
    return _taken_out(document, array, equal[0], expected, again=len(equal) > 1)


def _added(document: Document, place: Place, path: KeyPath, value: JsonValue) -> Edit:
    """Add the first missing member, with the rest of the path inside of it."""
    whole = value
    for key in reversed(place.missing[1:]):
        whole = {key: whole}
    members: list[Member] = [(place.missing[0], whole)]
    if place.containers:
        splices = insertion(document.text, place.containers, members)
    else:
        splices = fill_empty_file(document.text, members)
    return Edit(splices, with_value(document.value, path, value))


def _replaced(document: Document, place: Place, value: JsonValue, expected: JsonValue) -> Edit:
    splice = replacement(document.text, place.containers, place.index, value)
    return Edit((splice,), expected, ((splice.start, splice.end),))


def _taken_out(
    document: Document,
    container: Container,
    index: int,
    expected: JsonValue,
    *,
    again: bool = False,
) -> Edit:
    splices = removal(document.text, container, index)
    item = container.items[index]
    targets = [(item.start, item.end)]
    if splices[0].start == container.opening:  # the whole document goes, an empty file comes back
        targets.insert(0, (container.opening, container.opening + 1))
        targets.append((container.closing, container.closing + 1))
    return Edit(splices, expected, targets, again)


def _array_at(document: Document, place: Place, path: KeyPath) -> Container:
    require(document, place.item.value, "[", path)
    return container_at(document, place.item.value)


def _elements(document: Document, path: KeyPath) -> list[JsonValue]:
    elements = value_at(document.value, path)
    return elements if isinstance(elements, list) else []


def _leaf_by_leaf(
    document: Document,
    place: Place,
    path: KeyPath,
    change: tuple[_Object, _Object],
    expected: JsonValue,
) -> Edit | None:
    """Replace the leaves that differ and add those that are missing, at every level.

    A key that stands twice, or something else than an object above a leaf, is refused (S-54).
    """
    text = document.text
    splices: list[Splice] = []
    targets: list[tuple[int, int]] = []
    inner = (*place.containers, container_at(document, place.item.value))
    waiting = [(inner, *change, path)]
    while waiting:
        containers, old, new, above = waiting.pop()
        positions = {item.key: index for index, item in enumerate(containers[-1].items)}
        missing: list[Member] = []
        for key, value in new.items():
            at = (*above, key)
            if key not in positions:
                missing.append((key, value))
                continue
            index, there = positions[key], old[key]
            item = containers[-1].items[index]
            if containers[-1].opening in document.doubled:
                only(document, containers[-1], key, at)
            if isinstance(value, dict) and isinstance(there, dict):
                child = container_at(document, item.value)
                waiting.append(((*containers, child), there, value, at))
                continue
            if isinstance(value, dict) and value:
                require(document, item.value, "{", at)
            if not same(there, value):
                splices.append(replacement(text, containers, index, value))
                targets.append((item.value, item.end))
        if missing:
            splices += insertion(text, containers, missing)
    if not splices:
        return None
    splices.sort(key=lambda splice: splice.start)
    return Edit(splices, expected, sorted(targets))
