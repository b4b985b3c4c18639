"""The step from triflux's bus (version 1) to the log: every row enters by an `imported` event.

Knows the two schemas; needs the SQL functions `is_utf8`, `event_id`, `json_texts`, `json_clean`
and `human_digest` on the connection (K-36, K-40).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that version 2 cannot represent; it stays in the backup (K-37)."""

    table: str
    key: str
    rowid: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the step did: rows left out, values dropped (K-38), tables not taken (K-39), time.

    `last_activity_ms` is the source's, `shift_ms` how far open deadlines moved (K-35).
    """

    left_out: tuple[LeftOut, ...] = ()
    dropped_values: dict[str, int] = field(default_factory=dict)
    not_taken: dict[str, int] = field(default_factory=dict)
    last_activity_ms: int | None = None
    shift_ms: int = 0
