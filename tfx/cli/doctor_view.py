"""The plain view of a doctor's report, ready to paste; and which rows either view shows.

Knows no colour and no rich; the marks are ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfx.doctor.model import Row, Status

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.doctor.report import DoctorData, FixRow, ListData
    from tfx.errors import JsonValue

_MARKS = {
    Status.OK: "[ok]",
    Status.INFO: "[--]",
    Status.WARN: "[!!]",
    Status.FAIL: "[XX]",
    Status.UNKNOWN: "[??]",
    Status.SKIP: "[--]",
}
_WIDEST = 40
_TARGETS_SHOWN = 4
_DIGEST_SHOWN = 12
COUNTED = (Status.OK, Status.INFO, Status.WARN, Status.FAIL, Status.UNKNOWN, Status.SKIP)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a view: a row, or the ok rows of one check together."""

    row: Row
    name: str
    summary: str


def lines_of(rows: Sequence[Row], *, verbose: bool, named: bool) -> Iterator[Line]:
    """Yield what is shown of the rows of one group: skipped ones and each ok row if `verbose`.

    Otherwise the ok rows of one check are one line that names their targets. With `named` the
    checks were asked for by name, so each of them says at least why it had nothing to look at.
    """
    together: set[str] = set()
    spoken = {row.id for row in rows if row.status is not Status.SKIP}
    for row in rows:
        if row.status is Status.SKIP and not verbose:
            if named and row.id not in spoken:
                spoken.add(row.id)
                yield Line(row, f"{row.id} {row.target}", f"not looked at: {row.summary}")
            continue
        if row.status is not Status.OK or verbose:
            yield Line(row, f"{row.id} {row.target}", row.summary)
            continue
        if row.id in together:
            continue
        together.add(row.id)
        fine = [each for each in rows if each.id == row.id and each.status is Status.OK]
        if len(fine) == 1:
            yield Line(row, f"{row.id} {row.target}", row.summary)
        else:
            names = [each.target for each in fine]
            shown = ", ".join(names[:_TARGETS_SHOWN])
            more = len(names) - _TARGETS_SHOWN
            yield Line(row, row.id, shown + (f" and {more} more" if more > 0 else ""))


def groups_of(data: DoctorData) -> Iterator[tuple[str, list[Row]]]:
    """Yield the groups that have rows, in the order of the report."""
    for name in dict.fromkeys(row.group for row in data.rows):
        yield name.value, [row for row in data.rows if row.group is name]


def count_line(data: DoctorData, separator: str) -> str:
    """Return the last line: how many rows of each status (D-28)."""
    always = {Status.OK, Status.INFO, Status.WARN, Status.FAIL, Status.UNKNOWN}
    shown = [
        f"{number} {status.value}"
        for status in COUNTED
        if (number := data.counts[status.value]) or status in always
    ]
    return separator.join(shown)


def is_named(data: DoctorData) -> bool:
    """Say whether the checks were chosen by name."""
    return bool(data.options["checks"] or data.options["only"])


def fix_lines(data: DoctorData) -> Iterator[str]:
    """Yield what became of each fix, what a pending one would do (D-5), and how it is done.

    Before a question each is planned: what it would do is shown, and the question says the rest.
    """
    plans = {(row.id, row.target): row.fix for row in data.rows if row.fix is not None}
    for fix in data.fixes:
        yield fix_line(fix)
        if fix.outcome in {"pending", "planned"}:
            yield from _plan_lines(plans.get((fix.id, fix.target), {}))
    if any(fix.outcome == "pending" for fix in data.fixes):
        yield "Nothing was written; to do this: tfx doctor --fix --yes"
    elif data.options["fix"] and not data.fixes:
        yield "Nothing here is for --fix to repair."


def _plan_lines(fix: Mapping[str, JsonValue]) -> Iterator[str]:
    plan = fix.get("plan")
    actions = plan.get("actions") if isinstance(plan, dict) else None
    for action in actions if isinstance(actions, list) else ():
        if isinstance(action, dict):
            before, after = _state(action.get("before")), _state(action.get("after"))
            yield f"  {action['kind']} {action['target']}: {before} -> {after}"
            yield from (f"    {line}" for line in str(action["diff"]).splitlines())


def _state(state: JsonValue) -> str:
    if not isinstance(state, dict):
        return "nothing"
    digest, mode = state.get("sha256"), state.get("mode")
    words = [
        f"sha256 {str(digest)[:_DIGEST_SHOWN]}" if digest else "",
        f"mode {mode}" if mode else "",
    ]
    return ", ".join(word for word in words if word) or "as it is"


def slow_line(data: DoctorData) -> str | None:
    """Return which checks took over a second (D-22), or None."""
    if not data.slow:
        return None
    return "slow checks: " + ", ".join(
        f"{each.id} {each.duration_ms / 1000:.1f} s" for each in data.slow
    )


def fix_line(fix: FixRow) -> str:
    """Return what became of one fix."""
    why = f": {fix.reason}" if fix.reason else ""
    return f"{fix.outcome}: {fix.id} {fix.target} (class {fix.fix_class}){why}"


def undo_line(data: DoctorData) -> str | None:
    """Return how the fixes are taken back, or None when nothing was written."""
    return None if data.run is None else f"Take it back with: tfx setup --undo {data.run}"


def show(screen: Screen, data: DoctorData) -> None:
    """Print three columns: mark, check and target, summary; remedies below, indented (D-29)."""
    for name, rows in groups_of(data):
        lines = list(lines_of(rows, verbose=screen.wishes.verbose, named=is_named(data)))
        if not lines:
            continue
        screen.line(name)
        width = min(_WIDEST, max(len(line.name) for line in lines))
        for line in lines:
            screen.line(f"{_MARKS[line.row.status]} {line.name:{width}}  {line.summary}")
            _show_more(screen, line.row)
    for text in fix_lines(data):
        screen.line(text)
    for more in (undo_line(data), slow_line(data)):
        if more is not None:
            screen.line(more)
    screen.line(count_line(data, ", " if screen.plain else " · "))


def _show_more(screen: Screen, row: Row) -> None:
    if row.status in {Status.OK, Status.SKIP} and not screen.wishes.verbose:
        return
    for remedy in row.remediation:
        screen.line(f"       {remedy.text}" + (":" if remedy.command else ""))
        if remedy.command:
            screen.line(f"         {remedy.command}")
    if screen.wishes.verbose or "traceback" in row.details:
        for text in details_of(row):
            screen.line(f"       {text}")


def details_of(row: Row) -> Iterator[str]:
    """Yield the details of a row as lines of text."""
    for name, value in row.details.items():
        if isinstance(value, list):
            yield f"{name}: " + ("" if value else "none")
            yield from (f"  {_said(item)}" for item in value)
        elif isinstance(value, dict):
            yield f"{name}:"
            yield from (f"  {key}: {_said(item)}" for key, item in value.items())
        elif isinstance(value, str) and "\n" in value:
            yield f"{name}:"
            yield from (f"  {line}" for line in value.splitlines())
        else:
            yield f"{name}: {_said(value)}"


def _said(value: JsonValue) -> str:
    """Return a value as people write it: nothing for what is not known."""
    if isinstance(value, dict):
        known = {name: _said(each) for name, each in value.items()}
        return ", ".join(f"{name} {each}" for name, each in known.items() if each)
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return "" if value is None else str(value)


def show_checks(screen: Screen, data: ListData) -> None:
    """Print the checks of `--list`, or the explanation of one."""
    width = max(len(check.id) for check in data.checks)
    told = False
    for check in data.checks:
        words = [check.group, "default" if check.default else "off by default"]
        words += [word for word, said in (("slow", check.slow), ("network", check.network)) if said]
        words += ["deep"] if check.deep else []
        words.append(f"fix {check.fix}")
        told = told or check.explanation is not None
        screen.line(f"{check.id:{width}}  {check.title}  [{', '.join(words)}]")
        if check.explanation is not None:
            text = check.explanation
            for title, what in (
                ("what", text.what),
                ("why", text.why),
                ("reads", text.reads),
                ("by hand", text.by_hand),
            ):
                screen.line(f"  {title}: {what}")
    if not told:
        screen.note("fix: A by --fix, C after a yes of its own, M by hand (`--explain CHECK`)")
