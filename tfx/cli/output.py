"""The screen: two renderers of one result, progress and questions, on streams passed in.

Computes nothing about the machine; rich is imported only when something is drawn for people.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO, TypeVar, cast

from tfx.result import Problem, Result, Status, envelope, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

T = TypeVar("T")

SILENT_S = 1.0
_STEP_S = 0.2
# All but the tab and the end of a line; also what turns the direction of a text round.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SIGNS = {"ok": "✓", "changed": "+", "warn": "!", "bad": "✗", "info": "·"}
_ASCII_SIGNS = {"ok": "ok", "changed": "+", "warn": "!", "bad": "x", "info": "-"}
_STYLES = {"ok": "green", "changed": "cyan", "warn": "yellow", "bad": "red", "info": "dim"}


class Wishes(Protocol):
    """The global options as the screen needs them."""

    json: bool
    quiet: bool
    verbose: bool
    ascii: bool


class Screen:
    """Where a command speaks: results on stdout, everything else on stderr."""

    def __init__(self, wishes: Wishes, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.wishes = wishes
        self._in, self._out, self._err = stdin, stdout, stderr
        self._started = time.monotonic()
        self._phase = ""
        self._drawn = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._ticker: threading.Thread | None = None
        for stream in (stdout, stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        self.home = ""
        self.silent_s = SILENT_S  # before the first line of progress
        self.every_s = _STEP_S  # between two of them
        self.colourless = False
        self.plain = wishes.ascii or not _speaks_unicode(stdout)

    # progress ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start watching the clock: work over a second is announced (nothing before)."""
        if not self.wishes.quiet:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop announcing and clear the progress line."""
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
        with self._lock:
            self._erase()

    def progress(self, phase: str) -> None:
        """Say what is being done now; shown on stderr once the command runs over a second."""
        self._phase = phase

    @property
    def draws(self) -> bool:
        """True when progress may be drawn: a terminal on stderr, neither quiet nor plain."""
        return self._err.isatty() and not self.plain and not self.wishes.quiet

    def quiet_ticker(self) -> None:
        """Leave progress to somebody who draws it."""
        self._stop.set()
        with self._lock:
            self._erase()

    def _tick(self) -> None:
        shown = ""
        drawn_at = 0.0
        while not self._stop.wait(_STEP_S):
            waited = time.monotonic() - self._started
            if waited < self.silent_s or 0 <= waited - drawn_at < self.every_s:
                continue
            drawn_at = waited
            with self._lock:
                if self._err.isatty():
                    self._erase()
                    line = self._shortened(f"{self._phase or 'working'} … {waited:.0f} s")
                    self._err.write(line if not self.plain else line.replace("…", "..."))
                    self._drawn = len(line) + 2
                    self._err.flush()
                elif self._phase and self._phase != shown:
                    shown = self._phase
                    self._err.write(self._shortened(f"tfx: {shown}\n"))
                    self._err.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._err.write("\r" + " " * self._drawn + "\r")
            self._err.flush()
            self._drawn = 0

    # questions --------------------------------------------------------------------------

    @property
    def interactive(self) -> bool:
        """True when a person can answer: a terminal on both sides and no `--json`."""
        return self._in.isatty() and self._err.isatty() and not self.wishes.json

    @contextlib.contextmanager
    def aloud(self) -> Iterator[None]:
        """Draw what a question is about, even with `--quiet`."""
        quiet, self.wishes.quiet = self.wishes.quiet, False
        try:
            yield
        finally:
            self.wishes.quiet = quiet

    def ask(self, question: str) -> bool:
        """Ask a yes/no question on stderr; an empty answer or end of input is no."""
        with self._lock:
            self._erase()
            self._err.write(f"{question} [y/N] ")
            self._err.flush()
            answer = self._in.readline().strip().lower()
        self._started = time.monotonic()
        return answer in {"y", "yes"}

    @property
    def on_terminal(self) -> bool:
        """True when results are read on a terminal and go nowhere else."""
        return self._out.isatty()

    @property
    def fancy(self) -> bool:
        """True when colour and boxes may be drawn: a terminal, no `--ascii`, no NO_COLOR."""
        return self._out.isatty() and not self.plain and not self.colourless

    # results ----------------------------------------------------------------------------

    def show(
        self,
        command: str,
        result: Result[T] | Result[None],
        render: Callable[[Screen, T], None],
        *,
        told: frozenset[str] = frozenset(),
    ) -> None:
        """Print the result: one JSON document, or the renderer's view and the problems.

        Problems whose code is in `told` are left to the view, when there is one.
        """
        with contextlib.suppress(BrokenPipeError):
            if self.wishes.json:
                self._print_json(envelope(command, cast("Result[object]", result)))
                return
            drawn = result.data is not None and not self.wishes.quiet
            if result.data is not None and drawn:
                render(self, result.data)
            for problem in result.problems:
                if drawn and problem.code in told:
                    continue
                self.problem(problem, warning=result.status is Status.WARNING)

    def _print_json(self, document: object) -> None:
        escape = not _speaks_unicode(self._out)
        self._out.write(json.dumps(document, ensure_ascii=escape, indent=2) + "\n")

    def problem(self, problem: Problem, *, warning: bool = False) -> None:
        """Print a problem with its hint on stderr."""
        word = "warning" if warning else "error"
        self._err.write(f"{word}: {self._shortened(problem.message)} [{problem.code}]\n")
        if problem.hint:
            self._err.write(f"  hint: {self._shortened(problem.hint)}\n")

    def note(self, text: str) -> None:
        """Print a remark for people on stderr, unless `--quiet`."""
        if not self.wishes.quiet:
            with self._lock:
                self._erase()
                self._err.write(self._shortened(text) + "\n")

    def console(self, *, stderr: bool = False) -> Console:
        """Return rich's console for drawing: no colour without a terminal or with NO_COLOR."""
        from rich.console import Console

        stream = self._err if stderr else self._out
        fancy = stream.isatty() and not self.plain
        return Console(
            file=stream,
            no_color=None if fancy else True,
            force_terminal=fancy,
            highlight=False,
            emoji=False,
            markup=False,
            soft_wrap=True,
        )

    def clear(self) -> None:
        """Start at the top again, on a terminal that can; elsewhere leave an empty line."""
        if self._out.isatty() and not self.plain:
            self._out.write("\x1b[H\x1b[2J")
        else:
            self._out.write("\n")

    def value(self, text: str) -> None:
        """Print a value exactly, for `$(tfx …)` in a shell: no sign, no shortening."""
        self._out.write(printable(text) + "\n")

    def raw(self, text: str, *, stderr: bool = False) -> None:
        """Print text of another program byte for byte; lone surrogates stand for its bytes."""
        stream = self._err if stderr else self._out
        stream.flush()
        binary = getattr(stream, "buffer", None)
        if binary is None:
            stream.write(printable(text))
        else:
            binary.write(text.encode("utf-8", "surrogateescape"))
            binary.flush()

    def line(self, text: str, *, sign: str | None = None) -> None:
        """Print one line on stdout; `sign` is one of ok, changed, warn, bad, info."""
        if self.wishes.quiet and sign in {None, "ok", "changed", "info"}:
            return
        text = self._shortened(text)
        if sign is None:
            self._out.write(text + "\n")
        elif self.plain or not self._out.isatty():
            mark = (_ASCII_SIGNS if self.plain else _SIGNS)[sign]
            self._out.write(f"{mark} {text}\n")
        else:
            from rich.text import Text

            self.console().print(Text(_SIGNS[sign] + " ", style=_STYLES[sign]).append(text))

    def _shortened(self, text: str) -> str:
        """Return text with the home directory as `~`: people paste what they see.

        Controls become visible: agents wrote some of it, and a terminal obeys.
        """
        short = text.replace(f"{self.home}/", "~/") if self.home else text
        return _CONTROL.sub(_visible, printable(short))


def _visible(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def counted(number: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _speaks_unicode(stream: TextIO) -> bool:
    try:
        "✓…│가".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
