"""What one entry of a shared file is now, and the edits that create, update or remove it.

Knows values and key paths only; an entry counts as modified when a leaf that we wrote differs
(S-56).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfx.config.keypath import MISSING, KeyPath, Missing, canonical, leaves, value_digest
from tfx.errors import JsonValue
from tfx.plan.actions import State, WantedEntry
from tfx.plan.documents import Append, DeleteKey, Edit, RemoveElement, SetKey, array, lookup
from tfx.plan.look import Obstacle
from tfx.plan.records import EntryRecord, entry_name


@dataclass(frozen=True, slots=True)
class EntryItem:
    """One place in a shared file: what is wanted there and what is recorded."""

    wanted: WantedEntry | None
    record: EntryRecord | None

    @property
    def _either(self) -> WantedEntry | EntryRecord:
        either = self.wanted or self.record
        if either is None:
            raise ValueError("neither wanted nor recorded")
        return either

    @property
    def agent(self) -> str:
        """Whose configuration it is."""
        return self._either.agent

    @property
    def key(self) -> KeyPath:
        """Where it stands."""
        return self._either.key

    @property
    def element(self) -> bool:
        """True for an element of the array at `key`."""
        return self._either.element

    @property
    def asset(self) -> str:
        """The name it goes by."""
        return self._either.asset

    @property
    def new(self) -> State | None:
        """N of the decision table."""
        return None if self.wanted is None else State(value_digest(self.wanted.value))

    def name(self, target: Path) -> str:
        """Return its unique name in the manifest."""
        return entry_name(str(target), self.key, self.asset if self.element else None)


def disk_state(document: JsonValue, item: EntryItem) -> State | None:
    """Return D: B or N where our leaves say so, else the hash of the whole value.

    Raises Obstacle when a wanted entry has no room because a parent is no container.
    """
    try:
        if item.element:
            return _element_state(array(document, item.key), item)
        value = lookup(document, item.key)
    except Obstacle:
        if item.wanted is None:
            return None
        raise
    return None if value is MISSING else _value_state(value, item)


def _element_state(elements: list[JsonValue], item: EntryItem) -> State | None:
    there = {value_digest(element) for element in elements}
    base = item.record.state if item.record else None
    if base is not None and base.sha256 in there:
        return base
    new = item.new
    return new if new is not None and new.sha256 in there else None


def _value_state(value: JsonValue, item: EntryItem) -> State:
    base = item.record.state if item.record else None
    if item.wanted is not None and item.new is not None and _is_new(value, item):
        return item.new
    if item.record is not None and base is not None:
        ours = _only(value, item.record.leaves)
        if ours is not MISSING and value_digest(ours) == base.sha256:
            return base
    return State(value_digest(value))


def _is_new(value: JsonValue, item: EntryItem) -> bool:
    wanted = item.wanted
    if wanted is None:
        return False
    if item.record is None or item.record.state is None:
        return canonical(value) == canonical(wanted.value)
    ours = _only(value, tuple(leaves(wanted.value)))
    same = ours is not MISSING and canonical(ours) == canonical(wanted.value)
    return same and not any(_at(value, leaf) is not MISSING for leaf in _stale(item))


def _stale(item: EntryItem) -> list[KeyPath]:
    """Return the leaves of B that are none of N."""
    if item.record is None or item.wanted is None:
        return []
    new = leaves(item.wanted.value)
    return [leaf for leaf in item.record.leaves if leaf not in new]


def _at(value: JsonValue, path: KeyPath) -> JsonValue | Missing:
    try:
        return lookup(value, path)
    except Obstacle:
        return MISSING


def _only(value: JsonValue, paths: Iterable[KeyPath]) -> JsonValue | Missing:
    """Return the value with nothing but these leaves, MISSING when one of them is not there."""
    ours: dict[str, JsonValue] = {}
    for path in paths:
        leaf = _at(value, path)
        if leaf is MISSING:
            return MISSING
        if not path:
            return leaf
        here = ours
        for key in path[:-1]:
            inner = here.setdefault(key, {})
            if not isinstance(inner, dict):
                return MISSING
            here = inner
        here[path[-1]] = leaf
    return ours


def creation(item: EntryItem) -> tuple[Edit, ...]:
    """Return the edits that put a wanted entry where nothing is."""
    wanted = item.wanted
    if wanted is None:
        raise ValueError("only a wanted entry is created")
    if wanted.element:
        return (Append(wanted.key, wanted.value),)
    return (SetKey(wanted.key, wanted.value),)


def replacement(item: EntryItem, value: JsonValue | Missing = MISSING) -> tuple[Edit, ...]:
    """Return the edits that put the wanted (or the given) value over whatever is there."""
    if value is MISSING:
        if item.wanted is None:
            raise ValueError("only a wanted entry replaces another")
        value = item.wanted.value
    return (SetKey(item.key, value),)


def missing_parents(document: JsonValue, wanted: WantedEntry) -> tuple[KeyPath, ...]:
    """Return the containers that the creation of an entry makes (S-56)."""
    last = len(wanted.key) + 1 if wanted.element else len(wanted.key)
    paths = (wanted.key[:depth] for depth in range(1, last))
    return tuple(path for path in paths if _at(document, path) is MISSING)


def update(document: JsonValue, item: EntryItem) -> tuple[Edit, ...]:
    """Return the edits that lead from B to N and keep what others added inside (S-56)."""
    wanted, key = item.wanted, item.key
    if wanted is None:
        raise ValueError("only a wanted entry is updated")
    if wanted.element:
        return tuple(_element_update(document, item))
    new = leaves(wanted.value)
    stale = _stale(item)
    value = _at(document, key)
    if () in new or () in stale or not isinstance(value, dict):
        return (SetKey(key, wanted.value),)
    edits: list[Edit] = [DeleteKey((*key, *path)) for path in _emptied(value, stale, new)]
    changed = [(leaf, item) for leaf, item in new.items() if _differs(value, leaf, item)]
    edits += [SetKey((*key, *leaf), item) for leaf, item in changed]
    return tuple(edits)


def _differs(value: JsonValue, leaf: KeyPath, wanted: JsonValue) -> bool:
    found = _at(value, leaf)
    return found is MISSING or canonical(found) != canonical(wanted)


def _emptied(
    value: JsonValue, stale: list[KeyPath], new: dict[KeyPath, JsonValue]
) -> Iterator[KeyPath]:
    """Yield what to delete: a stale leaf, or the container that holds nothing but stale leaves."""
    covered: set[KeyPath] = set()
    for leaf in stale:
        path = leaf
        for depth in range(len(leaf) - 1, 0, -1):
            inside = leaves(_plain(_at(value, leaf[:depth])), leaf[:depth])
            if any(new_leaf[:depth] == leaf[:depth] for new_leaf in new) or set(inside) - set(
                stale
            ):
                break
            path = leaf[:depth]
        if path not in covered and _at(value, path) is not MISSING:
            covered.add(path)
            yield path


def _plain(value: JsonValue | Missing) -> JsonValue:
    return None if value is MISSING else value


def _element_update(document: JsonValue, item: EntryItem) -> Iterator[Edit]:
    """Take out every copy of B; leave one N, or append it."""
    old, wanted, new = item.record, item.wanted, item.new
    if wanted is None or new is None:
        return
    if old is not None and old.value_sha256 != new.sha256:
        yield from _without(array(document, item.key), item, old)
    copies = _copies(document, item)
    if not copies:
        yield Append(item.key, wanted.value)
    yield from (RemoveElement(item.key, element) for element in copies[1:])


def _without(
    elements: list[JsonValue], item: EntryItem, record: EntryRecord | None
) -> Iterator[Edit]:
    """Yield the removal of each copy of the recorded element: the value is what is ours (S-56)."""
    for element in elements:
        if record is not None and value_digest(element) == record.value_sha256:
            yield RemoveElement(item.key, element)


def is_doubled(document: JsonValue, item: EntryItem) -> bool:
    """Say whether the wanted element stands in its array more than once."""
    return len(_copies(document, item)) > 1


def _copies(document: JsonValue, item: EntryItem) -> list[JsonValue]:
    if item.new is None or not item.element:
        return []
    elements = array(document, item.key)
    return [element for element in elements if value_digest(element) == item.new.sha256]


def deletion(
    document: JsonValue, item: EntryItem, orphans: Iterable[KeyPath] = ()
) -> tuple[Edit, ...]:
    """Return the edits that take an entry out, and its parents when we made them (S-56).

    `orphans` are containers of ours whose own entry is gone already.
    """
    record = item.record
    if record is None:
        raise ValueError("only a recorded entry is deleted")
    if record.element:
        edits: list[Edit] = list(_without(array(document, item.key), item, record))
    else:
        edits = [DeleteKey(item.key)]
    ours = {*record.created, *(path for path in orphans if path == item.key[: len(path)])}
    return (*edits, *_emptied_parents(document, record, ours))


def _emptied_parents(
    document: JsonValue, record: EntryRecord, ours: Iterable[KeyPath]
) -> Iterator[Edit]:
    """Yield the containers of ours that hold nothing more once the entry is gone."""
    gone = record.key
    single = not record.element
    for path in sorted(ours, key=len, reverse=True):
        inside = _at(document, path)
        if record.element and path == record.key:
            single = isinstance(inside, list) and all(
                value_digest(element) == record.value_sha256 for element in inside
            )
        elif isinstance(inside, dict):
            single = single and set(inside) == {gone[len(path)]}
        else:
            single = False
        if not single:
            return
        yield DeleteKey(path)
        gone = path
