"""A bar for long work: phase, rows or bytes, rate and time left on a terminal, lines elsewhere.

Knows nothing of what is being done.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from tfx.cli.output import Screen
    from tfx.upgrade.model import Progress

_STEP_PERCENT = 10


class Bar:
    """Draws what a worker tells; rich is imported only when a terminal sees it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pause()

    def told(self, progress: Progress) -> None:
        """Show one line of progress."""
        done, total = progress.rows_done, progress.rows_total
        if not total:
            done, total = progress.bytes_done, progress.bytes_total
        name = f"{progress.phase} {progress.table}".strip()
        if self._screen.draws:
            self._draw(name, done, total)
        elif total:
            percent = done * 100 // total // _STEP_PERCENT * _STEP_PERCENT
            unit = "rows" if progress.rows_total else "bytes"
            self._screen.progress(f"{name}: {percent} % of {total:,} {unit}")
        else:
            self._screen.progress(name)

    def pause(self) -> None:
        """Take the bar away, so that a question or a result can be read."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None
            self._phase = ""

    def _draw(self, name: str, done: int, total: int) -> None:
        bar = self._started()
        if self._task is None or name != self._phase:
            if self._task is not None:
                bar.remove_task(self._task)
            self._phase = name
            self._task = bar.add_task(name, total=total or None, rate="")
        speed = next((each.speed for each in bar.tasks if each.id == self._task), None)
        rate = f"{speed:,.0f}/s" if speed else ""
        bar.update(self._task, completed=done, total=total or None, rate=rate)

    def _started(self) -> RichProgress:
        if self._bar is None:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._screen.quiet_ticker()
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._screen.console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self._bar
