"""What a step tells of itself, for the receipt.

Knows no schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Tell: TypeAlias = Callable[[str, int, int], None]
"""Called with a table, rows done and rows in total."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that the next version cannot represent; it stays in the backup (K-37)."""

    table: str
    key: str
    rowid: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step did: rows left out, values dropped (K-38), tables not taken (K-39), time.

    `last_activity_ms` is the source's, `shift_ms` how far open deadlines moved (K-35).
    """

    left_out: tuple[LeftOut, ...] = ()
    dropped_values: dict[str, int] = field(default_factory=dict)
    not_taken: dict[str, int] = field(default_factory=dict)
    last_activity_ms: int | None = None
    shift_ms: int = 0


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what the steps of one chain did together.

    Counts and shifts add up; the last activity is the one that the first step saw.
    """
    dropped: Counter[str] = Counter()
    not_taken: Counter[str] = Counter()
    for each in outcomes:
        dropped.update(each.dropped_values)
        not_taken.update(each.not_taken)
    known = [each.last_activity_ms for each in outcomes if each.last_activity_ms is not None]
    return Outcome(
        left_out=tuple(row for each in outcomes for row in each.left_out),
        dropped_values=dict(dropped),
        not_taken=dict(not_taken),
        last_activity_ms=known[0] if known else None,
        shift_ms=sum(each.shift_ms for each in outcomes),
    )
