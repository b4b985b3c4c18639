"""What `tfx doctor` tells, as one frozen result for people and programs (D-30).

Computes counts, verdict and exit status from the rows alone.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tfx import __version__
from tfx.doctor.model import Check, Explanation, Group, Remedy, Row, Status, worst
from tfx.doctor.options import Options
from tfx.errors import Exit, JsonValue, Kind, TfxError
from tfx.result import Problem, Result
from tfx.result import Status as Outcome

SCHEMA = 1
SLOW_MS = 1000
_SHOWN = (Status.OK, Status.INFO, Status.WARN, Status.FAIL, Status.UNKNOWN, Status.SKIP)


@dataclass(frozen=True, slots=True)
class FixRow:
    """What became of one fix: applied, declined, refused or failed; pending in a dry run.

    Planned is one that is about to be asked for.
    """

    id: str
    target: str
    fix_class: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlowCheck:
    """A check that took over a second (D-22)."""

    id: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class DoctorData:
    """The payload; its key set is pinned by a test and `schema` counts its changes."""

    schema: int
    version: str
    platform: str
    started_at: str
    duration_ms: int
    options: Mapping[str, JsonValue]
    counts: Mapping[str, int]
    verdict: str
    rows: tuple[Row, ...]
    slow: tuple[SlowCheck, ...]
    fixes: tuple[FixRow, ...]
    run: str | None
    redacted: bool = True


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check as `--list` and `--explain` show it (D-8, D-9)."""

    id: str
    group: str
    title: str
    default: bool
    slow: bool
    network: bool
    deep: bool
    fix: str
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class ListData:
    """The checks in registry order."""

    checks: tuple[CheckRow, ...]


def listed_checks(checks: Sequence[Check]) -> Result[ListData]:
    """Return every check without running one."""
    return Result(ListData(tuple(_check_row(check) for check in checks)))


def explained(checks: Sequence[Check]) -> Result[ListData]:
    """Return checks with their explanations."""
    rows = (replace(_check_row(check), explanation=check.explanation) for check in checks)
    return Result(ListData(tuple(rows)))


def _check_row(check: Check) -> CheckRow:
    return CheckRow(
        check.id,
        check.group.value,
        check.title,
        check.default,
        check.slow,
        check.network,
        check.deep,
        check.fix.value,
    )


def data_of(
    rows: tuple[Row, ...],
    options: Options,
    *,
    started_at: str,
    duration_ms: int,
    fixes: tuple[FixRow, ...] = (),
    run: str | None = None,
) -> DoctorData:
    """Return the payload of a run."""
    return DoctorData(
        schema=SCHEMA,
        version=__version__,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        started_at=started_at,
        duration_ms=duration_ms,
        options=_shown_options(options),
        counts={status.value: sum(r.status is status for r in rows) for status in _SHOWN},
        verdict=worst(row.status for row in rows).value,
        rows=rows,
        slow=_slow(rows),
        fixes=fixes,
        run=run,
    )


def _shown_options(options: Options) -> dict[str, JsonValue]:
    return {
        "checks": [*options.checks],
        "only": [*options.only],
        "skip": [*options.skip],
        "fix": options.fix,
        "dry_run": options.dry_run,
        "yes": options.yes,
        "reset": options.reset,
        "strict": options.strict,
        "timeout_s": options.timeout_s,
        "network": options.network,
        "deep": options.deep,
        "all_shells": options.all_shells,
    }


def _slow(rows: tuple[Row, ...]) -> tuple[SlowCheck, ...]:
    spent: dict[str, int] = {}
    for row in rows:
        spent[row.id] = spent.get(row.id, 0) + row.duration_ms
    return tuple(SlowCheck(each, ms) for each, ms in spent.items() if ms > SLOW_MS)


def result_of(data: DoctorData, *, strict: bool) -> Result[DoctorData]:
    """Return the result: exit 1 for a failure, with `strict` for a warning too (D-10, D-14)."""
    bad = {Status.FAIL} | ({Status.WARN, Status.UNKNOWN} if strict else set())
    failing = [row for row in data.rows if row.status in bad]
    problems = tuple(_problem(row) for row in failing)
    if failing:
        return Result(data, Outcome.FAILED, problems, Exit.FAILED)
    warned = any(row.status in {Status.WARN, Status.UNKNOWN} for row in data.rows)
    return Result(data, Outcome.WARNING if warned else Outcome.OK)


def refused(error: TfxError, options: Options, started_at: str) -> Result[DoctorData]:
    """Return the report of an environment in which nothing can be looked at: one row (D-14)."""
    remedies = (Remedy(error.hint),) if error.hint else ()
    row = Row("self", Group.SETUP, "environment", Status.FAIL, error.message, {}, remedies, None, 0)
    return result_of(data_of((row,), options, started_at=started_at, duration_ms=0), strict=False)


def _problem(row: Row) -> Problem:
    hint = next((r.command or r.text for r in row.remediation), None)
    where: dict[str, JsonValue] = {"id": row.id, "target": row.target, "status": row.status.value}
    summary = f"{row.id} {row.target}: {row.summary}"
    return Problem(f"check-{row.status.value}", Kind.OPERATION_FAILED, summary, hint, where)
