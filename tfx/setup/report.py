"""What a run of setup tells: rows, counts and problems, made from what the engine read again.

Knows neither how a run is done nor how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tfx.agents.detect import Detected, Presence
from tfx.agents.model import Writes
from tfx.agents.versions import AgentVersion
from tfx.errors import Exit, JsonValue, Kind
from tfx.plan.actions import Action, ActionKind, OutcomeStatus, Plan, Report
from tfx.plan.outcomes import outcome_of
from tfx.result import Problem, Result, Status
from tfx.setup.options import Mode


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent CLI: is it here, in which version, and does this run look after it."""

    name: str
    label: str
    installed: bool
    version: str | None
    path: str | None
    selected: bool
    note: str


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action and how it went; `status` is `pending` when nothing was applied."""

    kind: str
    target: str
    agent: str
    status: str
    reason: str
    hint: str | None = None
    detail: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many items ended how; `pending` counts what a run without writing would change."""

    changed: int = 0
    unchanged: int = 0
    conflicts: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class SetupData:
    """The outcome of a run, judged by re-reading; `run` is null when nothing was written."""

    run: str | None
    mode: str
    agents: tuple[AgentRow, ...]
    actions: tuple[ActionRow, ...]
    counts: Counts
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRow:
    """One earlier run that `--undo` can take back."""

    run: str
    operation: str
    at: str
    changes: int
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunsData:
    """The runs, newest first."""

    runs: tuple[RunRow, ...]


def declined(data: SetupData, command: str) -> Result[SetupData]:
    """Return the result of a run that the user did not want: nothing was written.

    `command` is what applies the plan without a question.
    """
    problem = Problem(
        "declined",
        Kind.STATE_CONFLICT,
        "nothing was changed: the question was not answered with yes",
        f"{command} applies the plan without asking",
    )
    return Result(data, Status.FAILED, (problem,))


def reported(
    report: Report,
    agents: tuple[AgentRow, ...],
    notes: tuple[str, ...],
    absent: tuple[Problem, ...],
    merges: Mapping[str, str] | None = None,
) -> Result[SetupData]:
    """Return the result of an applied run, from what the engine read again (S-6).

    `merges` are merge commands by target (S-36).
    """
    merge = merges or {}
    rows = tuple(
        ActionRow(
            o.action.kind.value,
            o.action.target,
            ", ".join(o.action.agents),
            o.status.value,
            o.reason,
            o.hint,
            _detail(
                snippet=o.snippet,
                backup=o.backup,
                staged=o.staged,
                merge=merge.get(o.action.target),
            ),
        )
        for o in report.outcomes
    )
    counts = Counts(
        changed=report.count(OutcomeStatus.CHANGED),
        unchanged=report.count(OutcomeStatus.UNCHANGED),
        conflicts=report.count(OutcomeStatus.CONFLICT),
        failed=sum(
            report.count(status)
            for status in (OutcomeStatus.FAILED, OutcomeStatus.REFUSED, OutcomeStatus.PARTIAL)
        ),
        skipped=report.count(OutcomeStatus.SKIPPED),
    )
    recovered = tuple(f"finished the interrupted run {run} first" for run in report.recovered)
    data = SetupData(report.run, Mode.APPLY.value, agents, rows, counts, (*recovered, *notes))
    return judged(data, absent)


def judged(data: SetupData, absent: tuple[Problem, ...]) -> Result[SetupData]:
    """Return the result of rows that are final: a problem for each that did not go well."""
    problems = (*(_problem(row) for row in data.actions if row.status in _BAD), *absent)
    return Result(data, _status(data, absent), problems)


def with_rows(data: SetupData, rows: tuple[ActionRow, ...]) -> SetupData:
    """Return the data with further rows, counted in."""
    counts = data.counts
    statuses = [row.status for row in rows]
    more = replace(
        counts,
        changed=counts.changed + statuses.count("changed"),
        conflicts=counts.conflicts + statuses.count("conflict"),
        failed=counts.failed + statuses.count("failed"),
        pending=counts.pending + statuses.count("pending"),
    )
    return replace(data, actions=(*data.actions, *rows), counts=more)


_BAD = {"conflict", "failed", "refused", "partial"}


def _status(data: SetupData, absent: tuple[Problem, ...]) -> Status:
    """Return the first that applies of refused, unavailable, conflict or failed, ok (S-7)."""
    statuses = {row.status for row in data.actions}
    if "refused" in statuses:
        return Status.REFUSED
    if absent:
        return Status.UNAVAILABLE
    if statuses & {"failed", "partial"}:
        return Status.FAILED
    return Status.CONFLICT if "conflict" in statuses else Status.OK


def planned(
    mode: Mode,
    agents: tuple[AgentRow, ...],
    plan: Plan,
    notes: tuple[str, ...],
    *,
    removing: bool = False,
    merges: Mapping[str, str] | None = None,
) -> SetupData:
    """Return the rows and counts of a plan that nothing has applied."""
    merge = merges or {}
    rows = tuple(
        _planned_row(action, merge.get(action.target), removing=removing)
        for action in (*plan.actions, *plan.settled)
    )
    by_status = [row.status for row in rows]
    counts = Counts(
        unchanged=by_status.count("unchanged"),
        conflicts=by_status.count("conflict"),
        failed=by_status.count("refused"),
        skipped=by_status.count("skipped"),
        pending=by_status.count("pending"),
    )
    return SetupData(None, mode.value, agents, rows, counts, notes)


_PLANNED_STATUS = {
    ActionKind.CONFLICT: "conflict",
    ActionKind.REFUSED: "refused",
    ActionKind.UNCHANGED: "unchanged",
    ActionKind.KEPT: "unchanged",
    ActionKind.SKIPPED: "skipped",
}


def _planned_row(action: Action, merge: str | None, *, removing: bool) -> ActionRow:
    outcome = outcome_of(action, removing=removing)
    status = _PLANNED_STATUS.get(action.kind, "pending")
    if outcome.status is OutcomeStatus.CONFLICT:
        status = "conflict"
    return ActionRow(
        action.kind.value,
        action.target,
        ", ".join(action.agents),
        status,
        outcome.reason,
        action.hint,
        _detail(
            line=action.line or None,
            column=action.column or None,
            warning=action.warning,
            merge=merge,
        ),
    )


def planned_result(
    data: SetupData, plan: Plan, absent: tuple[Problem, ...], mode: Mode
) -> Result[SetupData]:
    """Return the result of a plan; with --check anything pending is a failure."""
    problems = (*(_problem(row) for row in data.actions if row.status in _BAD), *absent)
    status = _status(data, absent)
    pending = mode is Mode.CHECK and bool(plan.actions)
    if pending and status is Status.OK:
        return Result(data, Status.FAILED, problems, Exit.FAILED)
    return Result(data, status, problems)


def _problem(row: ActionRow) -> Problem:
    kind = {"refused": Kind.INVALID_REQUEST, "conflict": Kind.STATE_CONFLICT}
    where: dict[str, JsonValue] = {"target": row.target, **row.detail}
    return Problem(
        row.status,
        kind.get(row.status, Kind.OPERATION_FAILED),
        row.reason if row.target.partition(":")[0] in row.reason else f"{row.target}: {row.reason}",
        row.hint,
        where,
    )


def _detail(**values: object) -> dict[str, JsonValue]:
    return {
        name: value if isinstance(value, int | str) else str(value)
        for name, value in values.items()
        if value is not None
    }


def agent_rows(
    found: tuple[Detected, ...], scope: tuple[Detected, ...], named: tuple[str, ...]
) -> tuple[AgentRow, ...]:
    """Return a row for each agent that is here or was named."""
    selected = {one.agent.name for one in scope}
    return tuple(
        AgentRow(
            one.agent.name,
            one.agent.label,
            one.is_installed,
            one.version.text if isinstance(one.version, AgentVersion) else None,
            str(one.program) if one.program else None,
            one.agent.name in selected,
            one.note or _why_not(one),
        )
        for one in found
        if one.presence is not Presence.ABSENT or one.agent.name in named
    )


def _why_not(found: Detected) -> str:
    if found.presence is Presence.ABSENT:
        return "not on PATH"
    if found.agent.writes == Writes():
        return "reported only: no tested fact says where and how to write"
    return "" if isinstance(found.version, AgentVersion) else found.version.reason


def absent(row: AgentRow) -> Problem:
    """Return the problem of a named agent that is not there (exit 4)."""
    return Problem(
        "agent-absent",
        Kind.AGENT_UNAVAILABLE,
        f"{row.label} is not on PATH, so nothing was done for it",
        f"install {row.label}, or leave --agent {row.name} out",
        {"agent": row.name},
    )
