"""`tfx jobs`: the runs of `tfx route`, in the foreground and in the background."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, leave, new_app
from tfx.cli.output import counted

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.route.overview import JobsList, Logs, Pruned
    from tfx.route.result import Outcome

app = new_app("jobs", "List, read, wait for or cancel runs of `tfx route`.")

_LOG_CAP_BYTES = 16 * 1024 * 1024
_SIGN_OF = {"success": "ok", "running": "changed", "cancelled": "info", "lost": "warn"}

Job = Annotated[str, typer.Argument(metavar="JOB", help="The id that `tfx route` printed.")]


@app.command("list", cls=Command)
def list_jobs(
    ctx: typer.Context,
    running: Annotated[bool, typer.Option("--running", help="Only those that run.")] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Sum up all runs on record per role and CLI.")
    ] = False,
    limit: Annotated[
        int, typer.Option(metavar="N", help="The newest N runs; 0 for all that are kept.")
    ] = 20,
) -> None:
    """List the runs, the newest first."""

    def feature(_screen: Screen, paths: Paths) -> Result[JobsList]:
        from tfx.route import overview

        return overview.list_jobs(paths, running=running, stats=stats, limit=limit)

    finish(ctx, "jobs list", feature, _render_list)


@app.command("show", cls=Command)
def show(ctx: typer.Context, job: Job) -> None:
    """Show one run as it stands, with the beginning of its output."""

    def feature(_screen: Screen, paths: Paths) -> Result[Outcome]:
        from tfx.route import overview

        return overview.show(paths, job)

    finish(ctx, "jobs show", feature, _render_one)


@app.command("wait", cls=Command)
def wait(
    ctx: typer.Context,
    job: Job,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Give up waiting after S seconds.")
    ] = None,
) -> None:
    """Wait for a run and end as `tfx route` would have.

    Exit 0 for success, else 1.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Outcome]:
        from tfx.route import overview

        screen.progress(f"waiting for job {job}")
        return overview.wait(paths, job, timeout)

    finish(ctx, "jobs wait", feature, _render_one)


@app.command("cancel", cls=Command)
def cancel(ctx: typer.Context, job: Job) -> None:
    """End a running job with every process it started."""

    def feature(screen: Screen, paths: Paths) -> Result[Outcome]:
        from tfx.route import overview

        screen.progress(f"ending job {job}")
        return overview.cancel(paths, job)

    def render(screen: Screen, data: Outcome) -> None:
        screen.line(f"job {data.job}: {data.status.value}", sign="ok")

    finish(ctx, "jobs cancel", feature, render)


@app.command("logs", cls=Command)
def logs(
    ctx: typer.Context,
    job: Job,
    errors: Annotated[
        bool, typer.Option("--errors", help="The agent's error output instead.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run is over.")
    ] = False,
) -> None:
    """Print the whole output of a run, byte for byte.

    With --follow and --json: one JSON document a piece.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Logs]:
        from tfx.errors import Exit
        from tfx.route import overview

        as_json = screen.wishes.json
        if as_json and not follow:
            return overview.logs(paths, job, errors=errors, cap_bytes=_LOG_CAP_BYTES)

        decode = codecs.getincrementaldecoder("utf-8")("replace").decode  # over cut characters

        def write(piece: bytes) -> None:
            if not as_json:
                screen.raw(piece.decode("utf-8", "surrogateescape"))
            elif text := decode(piece):
                screen.raw(json.dumps({"job": job, "text": text}) + "\n")

        try:
            overview.stream(paths, job, write, errors=errors, follow=follow)
        except BrokenPipeError:  # `tfx jobs logs JOB | head`
            return leave(Exit.OK)
        return leave(Exit.OK)

    finish(ctx, "jobs logs", feature, lambda screen, data: screen.raw(data.text))


@app.command("prune", cls=Command)
def prune(
    ctx: typer.Context,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", help="By default 7.")
    ] = None,
) -> None:
    """Remove runs that are over, with their logs.

    The sums of `tfx jobs list --stats` stay.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Pruned]:
        from tfx.route import overview

        return overview.prune(paths, days=older_than)

    def render(screen: Screen, data: Pruned) -> None:
        screen.line(f"{counted(len(data.removed), 'job')} removed", sign="ok")

    finish(ctx, "jobs prune", feature, render)


def _render_list(screen: Screen, data: JobsList) -> None:
    if data.stats is not None:
        for row in data.stats:
            times = "" if row.p50_s is None else f", p50 {row.p50_s:.1f} s, p95 {row.p95_s:.1f} s"
            tokens = "" if row.tokens is None else f", {row.tokens} tokens"
            runs = f"{row.runs} runs, {row.success} successful"
            screen.line(f"{row.role} on {row.cli}: {runs}{times}{tokens}")
        return
    if not data.jobs:
        screen.line("no jobs")
    for job in data.jobs:
        took = "" if job.seconds is None else f" {job.seconds:.0f}s"
        text = f"{job.job}  {job.status.value}{took}  {job.role} on {job.cli}"
        screen.line(text, sign=_SIGN_OF.get(job.status.value, "bad"))


def _render_one(screen: Screen, data: Outcome) -> None:
    from tfx.cli.route import render_outcome

    render_outcome(screen, data)
