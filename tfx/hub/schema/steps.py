"""The way from each version to the next: one step a pair, and what a step tells of itself.

Knows no file, lock or backup; upgrade runs the steps inside its one transaction (U-38).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from tfx.core.database import Connection
from tfx.hub.schema.from_v1 import Outcome, prove, scan, transform

Tell: TypeAlias = Callable[[str, int, int], None]
"""Called with a table, rows done and rows in total."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `needs` are the SQL functions that the caller adds to the connection.

    `scan` finds rows that cannot be represented and writes nothing to the database. `transform`
    runs inside the caller's exclusive transaction. `prove` compares every row with the verified
    backup, attached as `old`, and returns what differs. Only a step that `may_leave_out` rows
    goes on when the scan found some (K-37).
    """

    source: int
    target: int
    may_leave_out: bool
    rebuilt: tuple[str, ...]
    scan: Callable[[Connection], Outcome]
    transform: Callable[[Connection, int, Tell], Outcome]
    prove: Callable[[Connection, Outcome, Tell], tuple[str, ...]]


STEPS: Final[Mapping[int, Step]] = MappingProxyType(
    {
        1: Step(
            source=1,
            target=2,
            may_leave_out=True,
            rebuilt=("agents", "messages", "message_inbox", "human_requests", "dead_letters"),
            scan=scan.look,
            transform=transform.run,
            prove=prove.run,
        )
    }
)
"""Each step by the version it starts from."""


def chain(version: int, target: int) -> tuple[Step, ...]:
    """Return the steps from a version to the target, in order."""
    return tuple(STEPS[each] for each in range(version, target))
