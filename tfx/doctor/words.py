"""Commands that can be pasted and still work after redaction: the home directory as `~` (D-20).

Knows no check and runs nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000


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
