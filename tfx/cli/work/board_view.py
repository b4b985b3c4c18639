"""The board for people: columns by status on a wide terminal, else one block for each status.

Draws a board; asks nobody. Without a terminal it is plain lines that a script can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tfx.cli.work.views import show_locks
from tfx.cli.work.words import ago, ends_in, safe, standing
from tfx.hub.work_models import TaskStatus

if TYPE_CHECKING:
    from rich.table import Table

    from tfx.cli.output import Screen
    from tfx.cli.work.boards import Board
    from tfx.hub.wire.work import LeaseView, TaskLine

_NARROWEST: Final = 22
_STYLES: Final = {
    TaskStatus.ACCEPTED: "cyan",
    TaskStatus.ASSIGNED: "blue",
    TaskStatus.IN_PROGRESS: "green",
    TaskStatus.BLOCKED: "red",
    TaskStatus.IN_REVIEW: "magenta",
}
_Groups = Mapping[TaskStatus, Sequence["TaskLine"]]


def show_board(screen: Screen, board: Board) -> None:
    """Draw the board."""
    screen.line(f"board of {safe(board.room)}, revision {board.revision}")
    show_locks(screen, board.locks, board.locks_total)
    groups = _grouped(board.tasks)
    if not groups:
        screen.line("nothing is on it: tfx task add 'TITLE' --accept", sign="info")
        return
    held = {each.task: each for each in board.leases}
    console = screen.console()
    if console.is_terminal and console.width >= _NARROWEST * len(groups):
        console.print(_columns(groups, held))
        return
    for status, tasks in groups.items():
        screen.line(f"{status.value} ({len(tasks)})")
        for task in tasks:
            rest = "; ".join(_facts(task, held.get(task.task)))
            screen.line(f"  #{task.task} {safe(task.title)}{f' [{rest}]' if rest else ''}")


def _grouped(tasks: Sequence[TaskLine]) -> _Groups:
    """Return the tasks by status, in the order of a task's life, the most urgent first."""
    found = {
        status: sorted(
            (task for task in tasks if task.status is status),
            key=lambda task: (-task.priority, task.task),
        )
        for status in TaskStatus
    }
    return {status: group for status, group in found.items() if group}


def _facts(task: TaskLine, lease: LeaseView | None) -> Iterator[str]:
    """Yield who has it, when that one was last heard of, who reviews, and why it is not ready."""
    if lease is not None:
        yield f"{lease.agent_id}, beat {ago(lease.last_beat_ms)}"
        if lease.expires_at_ms is not None:
            yield ends_in(lease.expires_at_ms)
    elif task.holder is not None:
        yield task.holder
    elif task.agent_id is not None:
        yield f"{task.agent_id}, no lease"
    elif task.label is not None:
        yield f"{task.label}, no lease"
    if task.reviewer is not None:
        yield f"review by {task.reviewer}"
    waits = standing(task.waits_for, ready=task.ready)
    if waits:
        yield waits
    if task.priority != _USUAL:
        yield f"priority {task.priority}"


def _columns(groups: _Groups, held: Mapping[int, LeaseView]) -> Table:
    from rich.box import ROUNDED
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    def card(task: TaskLine) -> Panel:
        text = Text(f"#{task.task} {safe(task.title)}", overflow="fold")
        for fact in _facts(task, held.get(task.task)):
            text.append(f"\n{fact}", style="dim")
        style = _STYLES.get(task.status, "dim")
        return Panel(text, box=ROUNDED, border_style=style, padding=(0, 1))

    table = Table(box=None, expand=True, padding=0, header_style="bold")
    for status, tasks in groups.items():
        table.add_column(f"{status.value} ({len(tasks)})", ratio=1, overflow="fold")
    table.add_row(*(Group(*map(card, tasks)) for tasks in groups.values()))
    return table


_USUAL: Final = 5
