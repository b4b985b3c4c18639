"""Commands that can be pasted and still work after redaction: the home directory as `~` (D-20).

Knows no check and runs nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path


def command(home: Path, *words: str | Path) -> str:
    """Return one command line, each word quoted, the home directory spelled `~`."""
    return " ".join(_quoted(home, str(word)) for word in words)


def _quoted(home: Path, word: str) -> str:
    inside = f"{home}/"
    if word.startswith(inside):
        return "~/" + (shlex.quote(word[len(inside) :]) if word != inside else "")
    return "~" if word == str(home) else shlex.quote(word)


def listed(items: Iterable[str], most: int = 4) -> str:
    """Return items joined by commas; more than `most` end in a number."""
    found = list(items)
    shown = ", ".join(found[:most])
    return f"{shown} and {len(found) - most} more" if len(found) > most else shown


def shortened(text: str, most: int) -> str:
    """Return a text cut to `most` characters, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
