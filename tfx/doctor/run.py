"""Run the checks side by side and make rows of what they find, in registry order.

Knows no check by name; what breaks, hangs or is not there becomes a row (D-23, D-24).
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfx.core.process import kill_running
from tfx.doctor.facts import Facts
from tfx.doctor.model import SUMMARY_CHARACTERS, Check, Finding, Remedy, Repair, Row, Status
from tfx.doctor.redaction import Redactor
from tfx.doctor.words import shortened
from tfx.errors import JsonValue, TfxError

Say = Callable[[str], None]
_STEP_S = 0.05
_LIMIT = 2.0  # of one probe's time-out (D-24)
_STOOD_STILL_S = 1.0  # no step takes so long unless this process was not let run


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with the check it comes from and the time it took."""

    check: Check
    finding: Finding
    duration_ms: int


@dataclass(slots=True)
class _Work:
    """One check while it runs; the thread appends, the runner reads."""

    check: Check
    limit_s: float
    found: list[Found] = field(default_factory=list)
    started: float = 0.0
    spent_ms: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False


def run_checks(
    checks: Sequence[Check], facts: Facts, say: Say, clock: Callable[[], float] = time.monotonic
) -> tuple[Found, ...]:
    """Return what the checks find, in their order; slow ones start first (D-25).

    `say` hears the ids of the checks that are still running. After an interrupt no probe of
    ours is left running.
    """
    works = [_Work(check, _limit(check, facts.options.timeout_s)) for check in checks]
    try:
        for work in sorted(works, key=lambda work: not work.check.slow):
            work.started = clock()
            threading.Thread(
                target=_carry_out, args=(work, facts), name=f"tfx-{work.check.id}", daemon=True
            ).start()
        _wait(works, say, clock)
    finally:
        facts.cancel.set()
        kill_running()
    return tuple(found for work in works for found in _unique(work))


def _limit(check: Check, timeout_s: float) -> float:
    return max(_LIMIT * timeout_s, check.least_s)


def _wait(works: Sequence[_Work], say: Say, clock: Callable[[], float]) -> None:
    """Wait for all checks, giving up those above their limit.

    A time in which this process stood still, with all its checks, counts against none of them.
    """
    running = list(works)
    lost_s = 0.0
    last = min((work.started for work in works), default=0.0)
    while running:
        say("checking " + ", ".join(work.check.id for work in running))
        running[0].done.wait(_STEP_S)
        now = clock()
        step_s, last = now - last, now
        lost_s += step_s if step_s > _STOOD_STILL_S else 0.0
        for work in running:
            if not work.done.is_set() and now - work.started - lost_s > work.limit_s:
                _give_up(work)
        running = [work for work in running if not work.done.is_set() and not work.given_up]


def _give_up(work: _Work) -> None:
    work.given_up = True
    limit = Finding(
        "time-out",
        Status.UNKNOWN,
        f"timeout: not finished within {work.limit_s:g} s",
        {"reason": "timeout", "limit_s": work.limit_s},
        (Remedy("give it more time", f"tfx doctor {work.check.id} --timeout 60"),),
    )
    work.found = [*work.found, Found(work.check, limit, round(work.limit_s * 1000))]


def _carry_out(work: _Work, facts: Facts) -> None:
    found: list[Found] = []
    last = time.monotonic()
    waited = facts.waited_ms
    try:
        for finding in _guarded(work.check, facts):
            now, now_waited = time.monotonic(), facts.waited_ms
            spent_ms = max(0.0, (now - last) * 1000 - (now_waited - waited))
            last, waited = now, now_waited
            found.append(Found(work.check, finding, round(spent_ms)))
            if not work.given_up:
                work.found = found
    finally:
        work.done.set()


def _guarded(check: Check, facts: Facts) -> Iterator[Finding]:
    """Yield the findings; an exception is one more, and the rest still counts (D-23)."""
    try:
        yield from check.run(facts)
    except TfxError as error:
        yield _refused(error)
    except PermissionError as error:
        yield _closed(facts, error)
    except Exception as error:  # noqa: BLE001  (a check that breaks is a row, never a crash)
        yield _broken(error)


def _refused(error: TfxError) -> Finding:
    remedies = () if error.hint is None else (_hinted(error.hint),)
    details: dict[str, JsonValue] = {"reason": error.reason, **error.details}
    return Finding(error.reason, Status.UNKNOWN, error.message, details, remedies)


def _closed(facts: Facts, error: PermissionError) -> Finding:
    """Return what a place means that this user may not look into: nothing is known (D-23)."""
    named = error.filename if isinstance(error.filename, str) else None
    where = "a place" if named is None else facts.paths.display(Path(named))
    return Finding(
        "no-access",
        Status.UNKNOWN,
        f"{where} may not be looked at: {error.strerror or error}",
        {"reason": "no-access", "path": where},
        (Remedy("see who may: the directories above it have to be yours to enter"),),
    )


def _hinted(hint: str) -> Remedy:
    is_command = hint.startswith("tfx ") and "," not in hint
    return Remedy("run", hint) if is_command else Remedy(hint)


def _broken(error: Exception) -> Finding:
    lines = traceback.format_exception(error)
    trace: list[JsonValue] = [line for text in lines for line in text.rstrip().splitlines()]
    return Finding(
        "check",
        Status.UNKNOWN,
        f"this check broke: {type(error).__name__}: {error}",
        {"reason": "check-broke", "error": type(error).__name__, "traceback": trace},
        (Remedy("this is a bug in tfx: please report it with `--json`"),),
    )


def _unique(work: _Work) -> Sequence[Found]:
    """Return the findings with a number at a target that stands twice (D-17)."""
    seen: dict[str, int] = {}
    unique = []
    for found in list(work.found):
        target = found.finding.target
        seen[target] = seen.get(target, 0) + 1
        if seen[target] > 1:
            finding = replace(found.finding, target=f"{target} ({seen[target]})")
            unique.append(replace(found, finding=finding))
        else:
            unique.append(found)
    return unique


def rows_of(
    found: Sequence[Found],
    redactor: Redactor,
    plan_of: Callable[[Finding], Mapping[str, JsonValue] | None] | None = None,
) -> tuple[Row, ...]:
    """Return the rows, redacted; `plan_of` tells the plan of a finding's repair (D-177)."""
    return tuple(_row(each, redactor, plan_of) for each in found)


def _row(
    found: Found,
    redactor: Redactor,
    plan_of: Callable[[Finding], Mapping[str, JsonValue] | None] | None,
) -> Row:
    clean = redactor.finding(found.finding)
    plan = plan_of(found.finding) if plan_of is not None else None
    return Row(
        found.check.id,
        found.check.group,
        clean.target,
        clean.status,
        shortened(clean.summary, SUMMARY_CHARACTERS),
        _with_whole_summary(clean),
        clean.remedies,
        _fix(found.finding.repair, redactor.details(plan) if plan is not None else None),
        found.duration_ms,
    )


def _with_whole_summary(finding: Finding) -> Mapping[str, JsonValue]:
    whole = " ".join(finding.summary.split())
    if len(whole) <= SUMMARY_CHARACTERS:
        return finding.details
    return {"message": whole, **finding.details}


def _fix(
    repair: Repair | None, plan: Mapping[str, JsonValue] | None
) -> Mapping[str, JsonValue] | None:
    if repair is None:
        return None
    fix: dict[str, JsonValue] = {"class": repair.fix_class.value}
    if plan is not None:
        fix["plan"] = dict(plan)
    return fix
