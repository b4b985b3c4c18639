"""The words of doctor as frozen data: a check, what it finds, the row that is reported.

Knows no check by name and nothing of how rows are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.doctor.facts import Facts
    from tfx.plan.actions import Action

SUMMARY_CHARACTERS = 100


class Status(StrEnum):
    """What a row says (D-18). SKIP: not applicable. UNKNOWN: could not be found out."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    UNKNOWN = "unknown"


_WEIGHT = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.INFO, Status.OK, Status.SKIP)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst: fail > unknown > warn > info > ok = skip; ok for none (D-18)."""
    found = min(statuses, key=_WEIGHT.index, default=Status.OK)
    return Status.OK if found is Status.SKIP else found


class Group(StrEnum):
    """The closed list of groups (D-17)."""

    SHELLS = "shells"
    AGENTS = "agents"
    SETUP = "setup"
    HUB = "hub"
    MACHINE = "machine"


class FixClass(StrEnum):
    """How a finding is repaired (D-21): by itself, after a yes, by hand only."""

    AUTO = "A"
    CONSENT = "C"
    MANUAL = "M"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What the user can do; `command` is ready to paste, `shell` the shell it is for (D-20)."""

    text: str
    command: str | None = None
    shell: str | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """The fix of a finding: actions of the plan engine, carried out in setup's journal (D-118).

    `under_hub_lock`: only while nobody holds the hub's lock (K-22).
    """

    fix_class: FixClass
    actions: tuple[Action, ...] = ()
    under_hub_lock: bool = False


MANUAL = Repair(FixClass.MANUAL)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check says of one target. `details` is an ordered map of facts and evidence."""

    target: str
    status: Status
    summary: str
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    repair: Repair | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The static text of `--explain` (D-9)."""

    what: str
    why: str
    reads: str
    by_hand: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check: a generator of findings (D-25).

    `slow` checks start first. `network` and `deep` name the option without which a check that
    is not asked for by name stays off. `least_s` raises the limit of a check whose probes have
    time-outs of their own (D-24). `fix` is the strongest class its findings may have.
    """

    id: str
    group: Group
    title: str
    explanation: Explanation
    run: Callable[[Facts], Iterator[Finding]]
    slow: bool = False
    network: bool = False
    deep: bool = False
    least_s: float = 0
    fix: FixClass = FixClass.MANUAL

    @property
    def default(self) -> bool:
        """Whether it runs without being asked for."""
        return not self.network and not self.deep


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before fixes are applied: all of class A at once, each of C alone (K-48)."""

    fix_class: FixClass
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report, redacted (D-17 … D-22); `fix` is `{class, plan?}`."""

    id: str
    group: Group
    target: str
    status: Status
    summary: str
    details: Mapping[str, JsonValue]
    remediation: tuple[Remedy, ...]
    fix: Mapping[str, JsonValue] | None
    duration_ms: int
