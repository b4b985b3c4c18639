"""A difference told without a word of the user's: positions, our own lines, key paths, types.

Knows neither the disk nor any decision; what it returns may be pasted (D-27).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tfx.config.keypath import KeyPath, canonical, leaves
from tfx.errors import JsonValue

YOURS = "(a line of yours)"


def lines_outline(unified: Iterable[str], ours: Iterable[str]) -> str:
    """Return a unified diff in which each line that is none of `ours` only says so."""
    known = {line.rstrip("\r\n") for line in ours}
    shown = []
    for number, line in enumerate(unified):
        text = line.rstrip("\r\n")
        is_head = number < 2 or text.startswith("@@ ")  # noqa: PLR2004  (the names of both sides)
        hidden = not is_head and text[1:] not in known
        shown.append(f"{text[:1]}{YOURS}" if hidden else text)
    return "".join(f"{line}\n" for line in shown)


def entry_outline(
    key: KeyPath, standing: Sequence[JsonValue], wanted: JsonValue, shown: JsonValue
) -> str:
    """Return which leaves of an entry differ: the user's by type, ours as `shown`."""
    new, words = leaves(wanted), leaves(shown)
    old = leaves(standing[0]) if standing else {}
    told: list[str] = []
    for path in sorted({*old, *new}):
        if path in old and path in new and canonical(old[path]) == canonical(new[path]):
            continue
        name = ".".join((*key, *path))
        told += [f"-{name}: {_type(old[path])}"] if path in old else []
        told += [f"+{name}: {json.dumps(words[path], ensure_ascii=False)}"] if path in new else []
    return "".join(f"{line}\n" for line in told)


def doubles_outline(key: KeyPath, elements: Sequence[JsonValue], wanted: JsonValue) -> str:
    """Return the copies of our element that go; they are ours word by word."""
    ours, text = canonical(wanted), json.dumps(wanted, ensure_ascii=False)
    copies = [at for at, element in enumerate(elements) if canonical(element) == ours]
    return "".join(f"-{'.'.join(key)}[{at}]: {text}\n" for at in copies[1:])


def _type(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an empty object"
