"""Tables and lengths of time, as all commands of the hub show them.

Knows no answer of the hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from tfx.cli.output import Screen

_WHOLE = 1000
_STEPS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def duration(ms: int) -> str:
    """Return `3 h`, `12 s`, `40 ms`: the largest unit that fits."""
    for size, unit in _STEPS:
        if ms >= size:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def print_table(screen: Screen, table: Table) -> None:
    """Print a table in the width of the terminal, or whole where there is none."""
    console = screen.console()
    if not console.is_terminal:
        console.width = _WHOLE
    console.print(table)


def new_table(*columns: str) -> Table:
    """Return a table with these columns."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
