"""The way from each version to the next: one step a pair, and what a step tells of itself.

Knows no file, lock or backup; upgrade runs the steps inside its one transaction (U-38).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tfx.core.database import Connection
from tfx.hub.schema import from_v2
from tfx.hub.schema.from_v1 import prove, scan, transform
from tfx.hub.schema.outcome import Outcome, Tell


@dataclass(frozen=True, slots=True)
class Step:
    """One step; it may call the SQL functions that upgrade adds to the connection.

    `scan` finds rows that cannot be represented and writes nothing to the database. `transform`
    runs inside the caller's exclusive transaction. `prove` returns what is not as it must be; it
    runs right after its own step, before the next one. Only a step that `may_leave_out` rows goes
    on when some cannot be represented (K-37). Tables that are `rebuilt` are proven by `prove`,
    against the verified backup attached as `old`; those that are `kept` by their caller, row by
    row.
    """

    source: int
    target: int
    may_leave_out: bool
    rebuilt: tuple[str, ...]
    kept: tuple[str, ...]
    scan: Callable[[Connection], Outcome]
    transform: Callable[[Connection, int, Tell], Outcome]
    prove: Callable[[Connection, Outcome, Tell], tuple[str, ...]]


STEPS: Final[Mapping[int, Step]] = MappingProxyType(
    {
        1: Step(
            source=1,
            target=2,
            may_leave_out=True,
            rebuilt=transform.TABLES,
            kept=(),
            scan=scan.look,
            transform=transform.run,
            prove=prove.run,
        ),
        2: Step(
            source=from_v2.SOURCE,
            target=from_v2.TARGET,
            may_leave_out=False,
            rebuilt=(),
            kept=from_v2.KEPT,
            scan=from_v2.look,
            transform=from_v2.run,
            prove=from_v2.prove,
        ),
    }
)
"""Each step by the version it starts from."""


def chain(version: int, target: int) -> tuple[Step, ...]:
    """Return the steps from a version to the target, in order."""
    return tuple(STEPS[each] for each in range(version, target))
