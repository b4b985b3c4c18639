"""`tfx hub start|stop|status|restart|ensure|logs`: the life of the daemon."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish, globals_of, leave

if TYPE_CHECKING:
    from pathlib import Path

    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.daemon.readiness import Ready
    from tfx.hub.daemon.report import HubData
    from tfx.hub.state import RunWishes
    from tfx.result import Result

PortOption = Annotated[
    int | None,
    typer.Option("--port", metavar="N", help="Listen on exactly this port; 0 is any free one."),
]


def start(
    ctx: typer.Context,
    port: PortOption = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in the foreground, for service managers.")
    ] = False,
    idle_exit: Annotated[
        int | None,
        typer.Option("--idle-exit", metavar="S", help="Exit after S seconds without any use."),
    ] = None,
) -> None:
    """Start the hub and wait until it serves.

    Does nothing when it already runs. Without --port, port 27888 is preferred and a
    free one taken when a stranger holds it.
    """

    def feature(screen: Screen, paths: Paths) -> Result[HubData]:
        from tfx.hub.daemon import report
        from tfx.hub.state import RunWishes

        wishes = RunWishes(port, idle_exit)
        if foreground:
            _stay(screen, paths, wishes)
        screen.progress("starting the hub")
        return report.start(paths, wishes)

    finish(ctx, "hub start", feature, _show_hub)


def bridge(
    tools: Annotated[
        str, typer.Option("--tools", metavar="NAME[,NAME]", help="Toolsets to offer.")
    ] = "bus",
) -> None:
    """Speak MCP on standard input and output for one agent.

    `tfx setup` writes it into the agents' settings. It starts the hub when needed, survives its
    restarts, and ends with its input.
    """
    from tfx.hub.bridge.run import main

    raise typer.Exit(main(["--tools", tools]))


def stop(ctx: typer.Context) -> None:
    """Stop the hub; returns when its lock is free. Nothing running is fine."""

    def feature(screen: Screen, paths: Paths) -> Result[HubData]:
        from tfx.hub.daemon import report

        screen.progress("stopping the hub")
        return report.stop_hub(paths)

    finish(ctx, "hub stop", feature, _show_note)


def restart(ctx: typer.Context) -> None:
    """Stop the hub, then start it with the same wishes."""

    def feature(screen: Screen, paths: Paths) -> Result[HubData]:
        from tfx.hub.daemon import report

        screen.progress("restarting the hub")
        return report.restart(paths)

    finish(ctx, "hub restart", feature, _show_hub)


def ensure(ctx: typer.Context) -> None:
    """Start the hub unless it runs; never asks. For hooks and scripts."""

    def feature(screen: Screen, paths: Paths) -> Result[HubData]:
        from tfx.hub.daemon import report

        screen.progress("starting the hub")
        return report.ensure(paths)

    finish(ctx, "hub ensure", feature, _show_hub)


def status(ctx: typer.Context) -> None:
    """Show whether the hub runs, and what waits in it. Exit 0 running, 4 otherwise."""

    def feature(_screen: Screen, paths: Paths) -> Result[HubData]:
        from tfx.hub.daemon import report

        return report.status(paths)

    finish(ctx, "hub status", feature, _show_status)


def logs(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
    lines: Annotated[
        int,
        typer.Option(
            "--lines", "-n", metavar="N", min=0, max=100_000, help="How many of the last lines."
        ),
    ] = 50,
) -> None:
    """Show the hub's log; works while the hub is down."""
    if follow:
        _follow_log(ctx, lines)

    def feature(_screen: Screen, paths: Paths) -> Result[dict[str, str | list[str]]]:
        from tfx.hub.daemon import logs as feature_module
        from tfx.hub.places import HubFiles
        from tfx.result import Result

        path = HubFiles.of(paths).log
        return Result({"log": str(path), "lines": feature_module.last_lines(path, lines)})

    def render(screen: Screen, data: dict[str, str | list[str]]) -> None:
        if not data["lines"]:
            screen.note(f"nothing is logged in {data['log']} yet")
        for line in data["lines"]:
            screen.line(line)

    finish(ctx, "hub logs", feature, render)


def _follow_log(ctx: typer.Context, lines: int) -> None:
    """Print the last lines and every further one: NDJSON with `--json` (K-7)."""
    from tfx.core.paths import Paths
    from tfx.errors import Exit
    from tfx.hub.daemon import logs as feature_module
    from tfx.hub.places import HubFiles

    path = HubFiles.of(Paths.resolve()).log
    as_json = globals_of(ctx).json
    with contextlib.suppress(BrokenPipeError):
        for line in feature_module.follow(path, lines):
            _print_line(line, as_json)
    leave(Exit.OK)


def _print_line(line: str, as_json: bool) -> None:
    sys.stdout.write((json.dumps({"line": line}) if as_json else line) + "\n")
    sys.stdout.flush()


def _stay(screen: Screen, paths: Paths, wishes: RunWishes) -> None:
    """Be the hub until it ends; the result is shown once, when it serves."""
    from tfx.errors import Exit, TfxError
    from tfx.hub.daemon import logs as log_module
    from tfx.hub.daemon import report
    from tfx.hub.daemon.run import Voice
    from tfx.hub.daemon.serve import serve

    told = threading.Event()

    def tell() -> None:
        screen.show("hub start", report.status(paths), _show_hub)
        sys.stdout.flush()

    def ready(_facts: Ready) -> None:
        told.set()
        # the answer to the probe comes from the loop that calls this
        threading.Thread(target=tell, daemon=True).start()

    def log(_path: Path) -> None:
        log_module.to_stderr()

    try:
        serve(paths, wishes, Voice(ready, log))
    except TfxError as error:
        if not told.is_set():
            raise
        from tfx.result import Problem

        screen.problem(Problem.of(error))
        leave(error.exit)
    leave(Exit.OK)


def _show_hub(screen: Screen, data: HubData) -> None:
    screen.line(f"the hub runs at {data.url} (pid {data.pid}, tfx {data.version})", sign="ok")
    screen.line(f"  database  {data.database}")
    screen.line(f"  log       {data.log}")
    for note in data.notes:
        screen.note(note)
    if data.started:
        screen.line('  next      tfx hub publish --to AGENT --deferred "hello"')


def _show_note(screen: Screen, data: HubData) -> None:
    for note in data.notes:
        screen.line(note, sign="ok")


def _show_status(screen: Screen, data: HubData) -> None:
    from tfx.cli.hub.views import show_status

    show_status(screen, data)
