"""Commands that can be pasted and still work after redaction: the home directory as `~` (D-20).

Knows no check and runs nothing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000


def command(home: Path, *words: str | Path) -> str:
    """Return one command line, each word quoted, the home directory spelled `~`.

    A name that no text can show (bytes that are no UTF-8, control characters) is spelled with
    octal escapes, as bash, zsh and ksh read them.
    """
    homes = _homes(home)
    return " ".join(_with_home(homes, str(word)) for word in words)


def at_home(home: Path, path: Path) -> Path:
    """Return a path below the home directory by the name that HOME has, whatever link it is."""
    for each in _homes(home):
        if str(path).startswith(f"{each}/"):
            return home / str(path)[len(each) + 1 :]
    return path


def _homes(home: Path) -> tuple[str, ...]:
    """Return the spellings of the home directory, the longest first (`/` is nobody's)."""
    spellings = {str(home), os.path.realpath(home)} - {"/"}
    return tuple(sorted(spellings, key=len, reverse=True))


def _with_home(homes: Sequence[str], word: str) -> str:
    if word in homes:
        return "~"
    for home in homes:
        if word.startswith(f"{home}/"):
            rest = word[len(home) + 1 :]
            return f"~/{_quoted(rest)}" if rest else "~/"
    return _quoted(word)


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = (
        f"\\{each}" if each in "\\'" else each if each.isprintable() else _octal(each)
        for each in word
    )
    return f"$'{''.join(escaped)}'"


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def listed(items: Iterable[str], most: int = 4) -> str:
    """Return items joined by commas; more than `most` end in a number."""
    found = list(items)
    shown = ", ".join(found[:most])
    return f"{shown} and {len(found) - most} more" if len(found) > most else shown


def age(age_ms: int) -> str:
    """Return how long ago something was, in its largest fitting unit."""
    if age_ms >= 2 * DAY_MS:
        return f"{age_ms // DAY_MS} days"
    if age_ms >= HOUR_MS:
        return f"{age_ms // HOUR_MS} h"
    return f"{age_ms // MINUTE_MS} min" if age_ms >= MINUTE_MS else "less than a minute"


def shortened(text: str, most: int) -> str:
    """Return a text cut to `most` characters, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
