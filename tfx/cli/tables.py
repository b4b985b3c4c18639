"""Tables for people: one look everywhere, whole lines where there is no terminal.

Knows no content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

    from tfx.cli.output import Screen

_WHOLE: Final = 1000


def table_of(*columns: str) -> Table:
    """Return an empty table with these headings."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)


def print_table(screen: Screen, table: Table) -> None:
    """Print in the width of the terminal, or whole where there is none; plain means ASCII lines."""
    from rich.box import ASCII

    console = screen.console()
    if not console.is_terminal:
        console.width = _WHOLE
    if screen.plain:
        table.box = ASCII
    console.print(table)
