"""Tables for people: one look everywhere, nothing cut off, whole lines where there is no terminal.

Knows no content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType
    from rich.table import Table

    from tfx.cli.output import Screen

_WHOLE: Final = 1000
_NOTHING: Final = frozenset({"", "-"})


def table_of(*columns: str) -> Table:
    """Return an empty table with these headings; the first column names the row."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)


def print_table(screen: Screen, table: Table) -> None:
    """Print in the width of the terminal, or whole where there is none; plain means ASCII lines.

    Where the terminal is narrower than the table each row is a few lines: names and ids are there
    to be copied, so none is ever cut.
    """
    from rich.box import ASCII

    console = screen.console()
    if not console.is_terminal:
        console.width = _WHOLE
    if screen.plain:
        table.box = ASCII
    if _needs(console, table) <= console.width:
        console.print(table)
        return
    for line in _records(table):
        screen.line(line)


def _needs(console: Console, table: Table) -> int:
    """Return the columns that the table takes when nothing is cut or wrapped."""
    from rich.measure import Measurement

    wide = console.options.update(width=_WHOLE, max_width=_WHOLE)
    return Measurement.get(console, wide, table).maximum


def _records(table: Table) -> Iterator[str]:
    """Yield each row as its name and, indented below, what is not empty of it."""
    heads = [str(column.header) for column in table.columns]
    columns = [[_text(cell) for cell in column.cells] for column in table.columns]
    told = [head for head, column in zip(heads, columns, strict=True) if not {*column} <= _NOTHING]
    width = max(map(len, told[1:]), default=0)
    for cells in zip(*columns, strict=True):
        name, *rest = cells
        yield name
        for head, value in zip(heads[1:], rest, strict=True):
            if value not in _NOTHING:
                yield f"  {head:<{width}}  {value}"


def _text(cell: RenderableType) -> str:
    return str(cell)
