"""Lengths of time as people type and read them: `4h`, `1h30m`, `45s`, or plain seconds.

Knows no limits of its own: what is too short or too long says the one who asks.
"""

from __future__ import annotations

import re
from typing import Final

from tfx.errors import InvalidRequest

_MS_OF: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "min": 60_000, "s": 1_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(d|h|min|m|s)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_LONGEST_TEXT: Final = 32
_STEPS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def duration(ms: int) -> str:
    """Return `3 h`, `12 s`, `40 ms`: the largest unit that fits."""
    for size, unit in _STEPS:
        if ms >= size:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def milliseconds_within(text: str, option: str, least_ms: int, most_ms: int) -> int:
    """Return a length of time as `milliseconds_of` does, refused outside of its limits.

    Raises InvalidRequest `usage`, naming the option and the limits.
    """
    given = milliseconds_of(text, option)
    if least_ms <= given <= most_ms:
        return given
    what = "short" if given < least_ms else "long"
    raise InvalidRequest(
        f"{option}: {text} is too {what}; {duration(least_ms)} to {duration(most_ms)} are allowed",
        code="usage",
        details={"field": option},
    )


def milliseconds_of(text: str, option: str) -> int:
    """Return a length of time in whole milliseconds; a number without a unit counts seconds.

    Raises InvalidRequest `usage`, naming the option, for anything else.
    """
    given = text.strip()
    if len(given) <= _LONGEST_TEXT:
        if _SECONDS.fullmatch(given):
            return round(float(given) * 1000)
        if _WHOLE.fullmatch(given):
            return round(sum(float(n) * _MS_OF[unit] for n, unit in _PART.findall(given)))
    raise InvalidRequest(
        f"{option}: {text!r} is no length of time",
        code="usage",
        hint=f"{option} 4h, {option} 1h30m, {option} 90 (seconds)",
        details={"field": option},
    )
