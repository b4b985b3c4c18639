"""The verbs of `tfx doctor`: look, look and repair, clear the caches.

Decides nothing about a single finding and shows nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tfx.core.clock import Clock, SystemClock, iso
from tfx.core.paths import Paths
from tfx.doctor.facts import Facts
from tfx.doctor.model import Check, Question
from tfx.doctor.options import Options
from tfx.doctor.redaction import Redactor
from tfx.doctor.registry import CHECKS
from tfx.doctor.report import DoctorData, FixRow, data_of, result_of
from tfx.doctor.run import Found, Say, rows_of, run_checks
from tfx.doctor.selection import choose
from tfx.result import Result

Ask = Callable[[DoctorData, Question], bool]


def examine(
    paths: Paths,
    options: Options,
    *,
    say: Say,
    ask: Ask | None = None,
    checks: Sequence[Check] = CHECKS,
    clock: Clock | None = None,
) -> Result[DoctorData]:
    """Run the chosen checks, and with `fix` repair what may be repaired and look again.

    `ask` is None where nobody can be asked; `fix` without `yes` then only shows the plans (D-6).
    Raises InvalidRequest for contradicting options and unknown checks.
    """
    options.validate()
    clock = clock or SystemClock()
    chosen = choose(checks, options)
    started_at, started = iso(clock.now_ms()), time.monotonic()
    redactor = Redactor(paths)
    facts = Facts(paths, options)
    found = run_checks(chosen, facts, say)
    fixes: tuple[FixRow, ...] = ()
    run: str | None = None

    def told(found: Sequence[Found], facts: Facts) -> DoctorData:
        plan_of = None
        if options.fix:
            from tfx.doctor.plans import plan_shower  # noqa: PLC0415  (start-up rule)

            plan_of = plan_shower(facts)
        return data_of(
            rows_of(found, redactor, plan_of),
            options,
            started_at=started_at,
            duration_ms=round((time.monotonic() - started) * 1000),
            fixes=fixes,
            run=run,
        )

    if not options.fix:
        return result_of(told(found, facts), strict=options.strict)
    from tfx.doctor import fixes as fixing  # noqa: PLC0415  (start-up rule)

    planned = fixing.plan(found, facts, redactor)
    dry = options.dry_run or not (options.yes or ask)
    if dry:
        fixes = planned.as_rows("pending")
        return result_of(told(found, facts), strict=options.strict)

    fixes = planned.as_rows("planned")  # so that the question stands below what it is about

    def agreed(question: Question) -> bool:
        return options.yes or (ask is not None and ask(told(found, facts), question))

    done = fixing.apply(planned, facts, agreed, redactor, say)
    fixes, run = done.rows, done.run
    if done.changed:
        facts = Facts(paths, options)
        found = run_checks(chosen, facts, say)
    return result_of(told(found, facts), strict=options.strict)
