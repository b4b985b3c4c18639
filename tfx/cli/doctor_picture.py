"""The view of a doctor's report on a terminal, drawn with rich.

Draws the same rows as the plain view and computes nothing of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tfx.cli.doctor_view import (
    Line,
    count_line,
    details_of,
    fix_lines,
    groups_of,
    is_named,
    lines_of,
    slow_line,
    undo_line,
)
from tfx.doctor.model import Row, Status

if TYPE_CHECKING:
    from rich.console import Console

    from tfx.doctor.report import DoctorData

_MARKS: Mapping[Status, tuple[str, str]] = {
    Status.OK: ("✓", "green"),
    Status.INFO: ("·", "dim"),
    Status.WARN: ("!", "yellow"),
    Status.FAIL: ("✗", "bold red"),
    Status.UNKNOWN: ("?", "magenta"),
    Status.SKIP: ("-", "dim"),
}
_ANSWERS: Mapping[str, tuple[str, str]] = {
    "found": ("✓", "green"),
    "shell-only": ("~", "yellow"),
    "not-found": ("✗", "red"),
    "unknown": ("?", "magenta"),
}
_WIDEST = 42
_MARK_WIDTH = 3  # with the spaces around it
_NARROWEST = 24  # of a summary; below that it stands under its name
_WHOLE = 1000


def show(console: Console, data: DoctorData, *, verbose: bool) -> None:
    """Draw the report: a table for each group, remedies below their row, the counts last."""
    for name, rows in groups_of(data):
        lines = list(lines_of(rows, verbose=verbose, named=is_named(data)))
        if not lines:
            continue
        console.print(Text(f"\n{name}", style="bold"))
        _show_matrix(console, rows)
        width = min(_WIDEST, max(len(line.name) for line in lines))
        beside = console.width - width - _MARK_WIDTH >= _NARROWEST
        for line in lines:
            if beside:
                console.print(_in_columns(line, width))
            else:
                mark, style = _MARKS[line.row.status]
                console.print(Text(mark, style=style).append(f" {line.name}", style=""))
                console.print(Text(f"  {line.summary}"))
            _show_more(console, line.row, verbose=verbose)
    console.print()
    for line_of_fix in fix_lines(data):
        console.print(Text(line_of_fix))
    for text in (undo_line(data), slow_line(data)):
        if text is not None:
            console.print(Text(text, style="dim"))
    console.print(Text(count_line(data, " · "), style="bold"))


def _in_columns(line: Line, width: int) -> Table:
    mark, style = _MARKS[line.row.status]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=width, overflow="fold")
    table.add_column(overflow="fold")
    table.add_row(Text(mark, style=style), Text(line.name), Text(line.summary))
    return table


def _show_more(console: Console, row: Row, *, verbose: bool) -> None:
    if row.status in {Status.OK, Status.SKIP} and not verbose:
        return
    for remedy in row.remediation:
        console.print(Text(f"    {remedy.text}" + (":" if remedy.command else ""), style="dim"))
        if remedy.command:
            console.print(Text(f"      {remedy.command}", style="cyan"))
    if verbose or "traceback" in row.details:
        for text in details_of(row):
            console.print(Text(f"    {text}", style="dim"))


def _show_matrix(console: Console, rows: Sequence[Row]) -> None:
    """Draw the grid of agents and cells, or a line for each agent where it does not fit."""
    found = _answers(rows)
    if not found:
        return
    table = _matrix(found)
    wide = console.options.update(width=_WHOLE, max_width=_WHOLE)
    if Measurement.get(console, wide, table).maximum <= console.width:
        console.print(table)
        return
    for name, answers in found.items():
        text = Text(f" {name}:")
        for label, cell in answers.items():
            text.append(f" {label} ", style="dim").append_text(_mark(cell))
        console.print(text)


def _answers(rows: Sequence[Row]) -> dict[str, Mapping[str, object]]:
    """Return the cells of each agent that some shell finds, from the details of `cli.matrix`."""
    found: dict[str, Mapping[str, object]] = {}
    for row in rows:
        cells = row.details.get("cells")
        if row.id == "cli.matrix" and isinstance(cells, dict) and row.status is not Status.SKIP:
            found[row.target] = cells
    return found


def _matrix(found: Mapping[str, Mapping[str, object]]) -> Table:
    labels = list(dict.fromkeys(label for each in found.values() for label in each))
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("")
    for label in labels:
        table.add_column(label, justify="center", no_wrap=True)
    for name, answers in found.items():
        table.add_row(name, *(_mark(answers.get(label)) for label in labels))
    return table


def _mark(cell: object) -> Text:
    answer = cell.get("answer") if isinstance(cell, dict) else None
    mark, style = _ANSWERS.get(str(answer), (" ", ""))
    return Text(mark, style=style)
