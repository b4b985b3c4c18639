"""`tfx doctor`: its options, its questions, and which view is drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish_anywhere, globals_of

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.doctor.model import Question
    from tfx.doctor.options import Options
    from tfx.doctor.report import DoctorData, ListData
    from tfx.result import Result

EPILOG = """Nothing changes without --fix. A fix never overwrites what you edited and never
recreates what you deleted; `tfx setup --undo RUN` takes it back. Exit status: 0 nothing above a
warning, 1 a check failed (with --strict also a warning), 2 usage, 3 a bug in tfx,
130 interrupted."""

# problems that the view shows as rows
_TOLD = frozenset({"check-fail", "check-warn", "check-unknown"})
_NAMES_SHOWN = 3
_HEARTBEAT_S = 2.0  # D-26


def doctor(
    ctx: typer.Context,
    checks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CHECK]...", help="Ids, groups or patterns such as 'cli.*'."),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Show, ask, and repair.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --fix: show the plans; write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do not ask.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Clear tfx's own caches only.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CHECK", help="Only these; may be repeated."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", metavar="CHECK", help="Not these; may be repeated, and wins."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the checks; run none.")] = False,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="CHECK", help="What checks do; run none.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 for warnings and unknowns too.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", help="Seconds for each probe.")
    ] = 5.0,
    network: Annotated[
        bool, typer.Option("--network", help="Also look beyond this machine.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also full database checks, and servers of others.")
    ] = False,
    all_shells: Annotated[
        bool, typer.Option("--all-shells", help="Every installed shell in every mode.")
    ] = False,
) -> None:
    """Find out why agent CLIs, hooks, skills or the hub do not work.

    Changes nothing without `--fix`. Looks at every agent in every shell, at what tfx installed, at
    the hub and at the machine.
    """

    def options(screen: Screen) -> Options:
        from tfx.doctor.options import Options

        return Options(
            checks=tuple(checks or ()),
            only=tuple(only or ()),
            skip=tuple(skip or ()),
            fix=fix,
            dry_run=dry_run,
            yes=yes,
            reset=reset,
            strict=strict,
            timeout_s=timeout,
            network=network,
            deep=deep,
            all_shells=all_shells,
            shows_yours=wishes.verbose and not wishes.json and screen.on_terminal,
        )

    def feature(screen: Screen) -> Result[DoctorData | ListData]:
        from tfx.doctor.registry import CHECKS
        from tfx.doctor.report import explained, listed_checks
        from tfx.doctor.selection import find

        if explain is not None:
            return explained(find(CHECKS, explain))
        if list_:
            return listed_checks(CHECKS)
        said = options(screen)
        said.validate()
        screen.silent_s = screen.every_s = _HEARTBEAT_S
        return _look(screen, said)

    wishes = globals_of(ctx)
    watched = sys.stderr.isatty() and not wishes.json
    finish_anywhere(ctx, "doctor", feature, _render, told=_TOLD, watched=watched)


def _look(screen: Screen, options: Options) -> Result[DoctorData]:
    """Look, repair or reset; a refusal is a row, so that no other exit status exists (D-14)."""
    from tfx.core.clock import SystemClock, iso
    from tfx.core.paths import Paths
    from tfx.doctor.report import refused
    from tfx.errors import Exit, TfxError

    started_at = iso(SystemClock().now_ms())
    try:
        paths = Paths.resolve(only_looking=True)
        screen.home = str(paths.home)
        screen.colourless = bool(paths.env.get("NO_COLOR"))
        return _done(screen, paths, options)
    except TfxError as error:
        if error.exit is Exit.USAGE:
            raise
        return refused(error, options, started_at)


def _done(screen: Screen, paths: Paths, options: Options) -> Result[DoctorData]:
    if options.reset:
        from tfx.doctor.reset import reset

        return reset(paths, options, show=screen.note)
    from tfx.doctor.examine import examine

    ask = _Asker(screen) if screen.interactive else None
    return examine(paths, options, say=_Teller(screen), ask=ask)


class _Teller:
    """Names the running checks in the progress line, a few of them."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, text: str) -> None:
        names = text.split(", ")
        more = len(names) - _NAMES_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        self._screen.progress(", ".join(names[:_NAMES_SHOWN]) + rest)


class _Asker:
    """Shows the whole report once, then asks for class A together and for each C alone (K-48)."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = False

    def __call__(self, data: DoctorData, question: Question) -> bool:
        if not self._shown:
            _render(self._screen, data)
            self._shown = True
        for line in question.lines:
            self._screen.line(line, sign="changed")
        return self._screen.ask("Repair this?" if len(question.lines) == 1 else "Repair these?")


def _render(screen: Screen, data: DoctorData | ListData) -> None:
    from tfx.cli import doctor_view
    from tfx.doctor.report import ListData

    if isinstance(data, ListData):
        doctor_view.show_checks(screen, data)
    elif screen.fancy:
        from tfx.cli import doctor_picture

        doctor_picture.show(screen.console(), data, verbose=screen.wishes.verbose)
    else:
        doctor_view.show(screen, data)
