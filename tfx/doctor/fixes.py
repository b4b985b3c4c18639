"""Repair what may be repaired: plans, a yes for each class, one run in setup's journal.

Has no writer of its own: the plan engine reads again, backs up, writes and records (D-118).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tfx.core import locks
from tfx.core.paths import Paths, refuse_home_of_another
from tfx.doctor.checks.itself import newer_writer
from tfx.doctor.facts import Facts
from tfx.doctor.model import FixClass, Question
from tfx.doctor.redaction import Redactor
from tfx.doctor.report import FixRow
from tfx.doctor.run import Found
from tfx.errors import TfxError, UnsafeEnvironment
from tfx.hub import state as state_file
from tfx.plan.actions import Action, Desired, OutcomeStatus, Report
from tfx.plan.engine import Engine
from tfx.plan.steps import mark_of
from tfx.plan.upkeep_run import UNREADABLE, is_upkeep, keep_up

_LOCK_PURPOSE = "doctor"
_OPERATION = "doctor --fix"


@dataclass(frozen=True, slots=True)
class Fix:
    """One finding that can be repaired, and its actions."""

    id: str
    target: str
    fix_class: FixClass
    actions: tuple[Action, ...]
    under_hub_lock: bool

    def row(self, outcome: str, reason: str = "") -> FixRow:
        """Return what became of it."""
        return FixRow(self.id, self.target, self.fix_class.value, outcome, reason)

    @property
    def line(self) -> str:
        """The fix in one line, for the question."""
        return f"{self.id} {self.target}: {', '.join(a.kind.value for a in self.actions)}"


@dataclass(frozen=True, slots=True)
class Planned:
    """All fixes of a run; `refusal` says why none may be applied (D-117, D-127)."""

    fixes: tuple[Fix, ...]
    refusal: str | None = None

    def as_rows(self, outcome: str) -> tuple[FixRow, ...]:
        """Return a row for each fix that is not applied."""
        if self.refusal is not None:
            return tuple(fix.row("refused", self.refusal) for fix in self.fixes)
        return tuple(fix.row(outcome) for fix in self.fixes)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of the fixes, and the run that `tfx setup --undo` takes back."""

    rows: tuple[FixRow, ...]
    run: str | None = None
    changed: bool = False


def plan(found: Sequence[Found], facts: Facts, redactor: Redactor) -> Planned:
    """Return the fixes of what was found; what two rows would do is done once. Writes nothing."""
    planned: set[tuple[object, ...]] = set()
    fixes: list[Fix] = []
    for each in found:
        repair = each.finding.repair
        marks = set() if repair is None else {mark_of(action) for action in repair.actions}
        if repair is None or not marks - planned:
            continue
        planned |= marks
        target = redactor.text(each.finding.target)
        fixes.append(
            Fix(
                each.check.id,
                target,
                repair.fix_class,
                repair.actions,
                repair.under_hub_lock,
            )
        )
    return Planned(tuple(fixes), redactor.text(refusal) if (refusal := _refusal(facts)) else None)


def _refusal(facts: Facts) -> str | None:
    try:
        refuse_home_of_another(Paths.resolve(facts.paths.env).home)
    except UnsafeEnvironment as error:
        return error.message
    return newer_writer(facts)


def apply(
    planned: Planned,
    facts: Facts,
    agreed: Callable[[Question], bool],
    redactor: Redactor,
    say: Callable[[str], None],
) -> Done:
    """Ask for each class, then apply what was agreed to in one run of setup's journal.

    Each fix is a transaction of its own: one that fails stops no other (D-125).
    """
    if planned.refusal is not None or not planned.fixes:
        return Done(planned.as_rows("refused"))
    chosen = _agreed(planned.fixes, agreed)
    declined = [fix.row("declined") for fix in planned.fixes if fix not in chosen]
    if not chosen:
        return Done(tuple(declined))
    with _hub_lock(facts, chosen) as free:
        able = [fix for fix in chosen if free or not fix.under_hub_lock]
        blocked = [f.row("refused", "a hub is running") for f in chosen if f not in able]
        if not able:
            return Done((*declined, *blocked))
        report, refused = _carried_out(facts, able, say)
    rows = (*declined, *blocked, *_told(able, report, refused, redactor))
    return Done(rows, report.run, changed=bool(report.run or report.recovered))


def _carried_out(
    facts: Facts, able: Sequence[Fix], say: Callable[[str], None]
) -> tuple[Report, TfxError | None]:
    """Repair; where manifest or journal cannot be read, what needs neither (D-125)."""
    try:
        return _repair(facts, able, say), None
    except TfxError as error:
        own = [fix for fix in able if is_upkeep(fix.actions)]
        if error.reason not in UNREADABLE or not own:
            return Report(None, ()), error
        actions = [action for fix in own for action in fix.actions]
        with contextlib.suppress(TfxError):  # the first refusal tells why
            return keep_up(facts.paths.setup_dir, _OPERATION, actions, _progress(say)), error
        return Report(None, ()), error


def _told(
    able: Sequence[Fix], report: Report, refused: TfxError | None, redactor: Redactor
) -> Iterator[FixRow]:
    for fix in able:
        done = any(outcome.action in fix.actions for outcome in report.outcomes)
        if refused is not None and not done:
            yield fix.row("refused", redactor.text(refused.message))
        else:
            yield _outcome(fix, report, redactor)


def _progress(say: Callable[[str], None]) -> Callable[[Action], None]:
    return lambda action: say(f"repairing {action.target}")


def _agreed(fixes: Sequence[Fix], agreed: Callable[[Question], bool]) -> list[Fix]:
    automatic = [fix for fix in fixes if fix.fix_class is FixClass.AUTO]
    chosen: list[Fix] = []
    if automatic and agreed(Question(FixClass.AUTO, tuple(fix.line for fix in automatic))):
        chosen += automatic
    chosen += [
        fix
        for fix in fixes
        if fix.fix_class is FixClass.CONSENT and agreed(Question(FixClass.CONSENT, (fix.line,)))
    ]
    return chosen


@contextlib.contextmanager
def _hub_lock(facts: Facts, fixes: Sequence[Fix]) -> Iterator[bool]:
    """Hold the hub's lock while files of a dead hub go; False when a hub has it (K-22)."""
    if not any(fix.under_hub_lock for fix in fixes):
        yield True
        return
    try:
        lock = locks.try_lock(facts.probe.files.lock, _LOCK_PURPOSE)
    except OSError:
        lock = None
    if lock is None:
        yield False
        return
    with lock:
        recorded = state_file.read(facts.probe.files.state)
        yield recorded is None or not recorded.lives  # a hub may live without its lock (D-106)


def _repair(facts: Facts, fixes: Sequence[Fix], say: Callable[[str], None]) -> Report:
    engine = Engine(facts.paths.setup_dir, git=facts.paths.program("git"))
    actions = [action for fix in fixes for action in fix.actions]
    needs_desired = any(action.asset for action in actions)
    desired = facts.wanted.desired if needs_desired else Desired()
    return engine.repair(desired, actions, _progress(say))


def _outcome(fix: Fix, report: Report, redactor: Redactor) -> FixRow:
    wanted = {action.target for action in fix.actions}
    if wanted & set(report.recovered):
        return fix.row("applied", "the interrupted run was finished")
    found = [o for o in report.outcomes if o.action.target in wanted]
    good = {OutcomeStatus.CHANGED, OutcomeStatus.UNCHANGED}
    bad = next((o for o in found if o.status not in good), None)
    if not found:
        return fix.row("refused", "it changed since the plan was made; nothing was written")
    if bad is None:
        return fix.row("applied", redactor.text(found[0].reason))
    refused = bad.status in {OutcomeStatus.CONFLICT, OutcomeStatus.REFUSED}
    return fix.row("refused" if refused else "failed", redactor.text(bad.reason))
