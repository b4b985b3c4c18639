"""`tfx route`: its options, and a result kept near the route script's for skills to read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.route.perform import Order
    from tfx.route.result import Delegation, Outcome

EPILOG = """Each CLI's own approvals and sandbox apply. Exit status: 0 success, 1 the agent failed,
crashed or timed out, 2 usage, 4 no usable CLI, 5 refused; the CLI's own status is exit_code."""


def route(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="See `tfx route roles`.")],
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="[PROMPT|-]", help="The text; without it or with -, from stdin."),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(metavar="NAME", help="auto, implement, analyze, review, docs or minimal."),
    ] = "auto",
    timeout: Annotated[
        int | None, typer.Option(metavar="S", help="Seconds; the role has a default.")
    ] = None,
    context: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A text added below the prompt, at most 32 KiB of it."),
    ] = None,
    cli: Annotated[
        str | None, typer.Option("--cli", metavar="NAME", help="Use this CLI and no other.")
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The directory the agent works in.")
    ] = None,
    task: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="A turn of this task; the hub counts it, if it runs."
        ),
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Return a job id at once; see `tfx jobs`.")
    ] = False,
    dangerously_skip_approvals: Annotated[
        bool,
        typer.Option(
            "--dangerously-skip-approvals",
            help="Let the agent do anything unasked; only on a terminal, shown in the result.",
        ),
    ] = False,
) -> None:
    """Run a role's prompt through an agent CLI that suits it.

    The prompt arrives byte for byte on the CLI's standard input. `tfx route roles` lists the
    roles with their CLI, effort and time-out.
    """

    def order() -> Order:
        from tfx.route.perform import Order
        from tfx.route.prompt import Text

        from_stdin = prompt is None or prompt == "-"
        if prompt is None and sys.stdin.isatty():
            raise typer.BadParameter("needs a PROMPT, or one on standard input")
        text = Text(stream=sys.stdin.buffer) if from_stdin else Text(os.fsencode(prompt or ""))
        return Order(
            role=role,
            text=text,
            cwd=Path(cwd or Path.cwd()).absolute(),
            profile=profile or "auto",
            timeout_s=timeout,
            context=None if context is None else context.absolute(),
            cli=cli or None,
            background=background,
            skip_approvals=dangerously_skip_approvals,
            task=task,
            on_terminal=sys.stdin.isatty() and sys.stderr.isatty(),
        )

    def feature(screen: Screen, paths: Paths) -> Result[Outcome | Delegation]:
        from tfx.route.perform import perform

        said = order()
        if sys.stderr.isatty():  # another program that reads our errors gets only errors
            screen.progress(f"running {role}")
        return perform(paths, said)

    if role == "roles" and prompt is None:
        _roles(ctx)
    finish(ctx, "route", feature, _render)


def _roles(ctx: typer.Context) -> None:
    from tfx.result import Result
    from tfx.route.table import Role, bundled

    def feature(_screen: Screen, paths: Paths) -> Result[tuple[Role, ...]]:
        from tfx.config.settings import load

        table = bundled().with_overrides(load(paths).route)
        return Result(tuple(table.roles.values()))

    def render(screen: Screen, roles: tuple[Role, ...]) -> None:
        row_of = "{:<20} {:<14} {:<7} {:>7}  {:<10} {}".format
        screen.line(row_of("role", "cli", "effort", "timeout", "profile", "runs"))
        for row in roles:
            does = row.cli if row.verb.value == "run" else f"{row.cli} {row.verb.value}"
            limit = f"{row.timeout_s} s"
            screen.line(row_of(row.name, does, row.effort, limit, row.profile, row.mode))
        screen.note("native: Claude Code does it as a subagent; overseen: its result needs a look")

    finish(ctx, "route roles", feature, render)


def _render(screen: Screen, data: Outcome | Delegation) -> None:
    from tfx.route.result import Delegation

    if isinstance(data, Delegation):
        screen.raw(
            f"ROUTE_TYPE={data.route_type}\nAGENT={data.agent}\nMODEL={data.model}\n"
            f"RUN_MODE={data.run_mode}\nTIMEOUT={data.timeout_s}\n"
            f"MCP_PROFILE={data.mcp_profile}\nPROMPT={data.prompt}\n"
        )
        return
    if data.background and data.exit_code is None:
        screen.value(data.job)
        screen.note(f"{data.cli} as {data.role} runs in the background: tfx jobs wait {data.job}")
        return
    render_outcome(screen, data)


def render_outcome(screen: Screen, data: Outcome) -> None:
    """Print a run as the route script does: a block of fields, then its output byte for byte."""
    for field in fields(data):
        screen.raw(field + "\n")
    screen.raw("=== OUTPUT ===\n" + data.output)
    if data.errors:
        screen.raw(f"tfx-route: the last error output of {data.cli}:\n", stderr=True)
        screen.raw(data.errors, stderr=True)


def fields(data: Outcome) -> list[str]:
    """Return the lines of the block; what is not known is left out."""
    lines = [
        "=== tfx-route ===",
        f"job: {data.job}",
        f"agent: {data.role}",
        f"cli: {data.cli}",
        *([f"version: {data.version}"] if data.version else []),
        f"path: {data.program}",
        f"profile: {data.profile}",
        *([] if data.task is None else [f"task: {data.task}"]),
    ]
    if data.exit_code is not None:
        lines.append(f"exit_code: {data.exit_code}")
    if data.seconds is not None:
        lines.append(f"elapsed: {data.seconds:.0f}s")
    lines.append(f"status: {data.status}")
    if data.tokens is not None:
        lines.append(f"tokens: {data.tokens}")
    if data.approvals_skipped:
        lines.append("notice: approvals and sandbox were switched off by the caller")
    lines += [f"issue: {issue.code}: {issue.remedy}" for issue in data.issues]
    lines += [f"notice: {notice}" for notice in data.notices]
    if data.output_cut:
        kept = len(data.output.encode("utf-8", "surrogateescape"))
        lines.append(f"notice: output has {data.output_bytes} bytes, the first {kept} are below")
    if data.output_cut or data.status.value != "success":
        lines.append(f"log: {data.log}")
    return lines
