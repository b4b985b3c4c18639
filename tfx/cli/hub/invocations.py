"""`tfx hub invocations`: what runs and ran for agents; look whether it still does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.invocations import InvocationsResult, ProbeResult
    from tfx.result import Result

app = new_app("invocations", "List what runs and ran for agents.")
app.info.no_args_is_help = False


@app.callback(invoke_without_command=True)
def invocations(
    ctx: typer.Context,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="AGENT", help="Only of this agent.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="Only running, finished or lost ones."),
    ] = None,
    room: Annotated[
        str | None, typer.Option("--room", metavar="ROOM", help="The room of --task.")
    ] = None,
    task: Annotated[
        int | None, typer.Option("--task", metavar="N", min=1, help="Only of this task.")
    ] = None,
    before: Annotated[
        int | None, typer.Option("--before", metavar="SEQ", min=0, help="Continue behind this one.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
    ] = 50,
) -> None:
    """List what runs and ran for agents, newest first."""
    if ctx.invoked_subcommand is not None:
        return

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[InvocationsResult]]:
        from tfx.cli.hub.calls import call, workspace_at
        from tfx.hub.wire.invocations import InvocationsResult

        fields = {
            "agent_id": agent,
            "state": state,
            "room": None if room is None else workspace_at(room),
            "task": task,
            "before": before,
            "limit": limit,
        }
        return call(paths, "invocations", fields, InvocationsResult)

    def render(screen: Screen, data: Answered[InvocationsResult]) -> None:
        from tfx.cli.hub.seats import show_invocations

        show_invocations(screen, data.struct)

    finish(ctx, "hub invocations", feature, render)


@app.command("probe", cls=Command)
def probe(ctx: typer.Context) -> None:
    """Look at every process that is recorded as running.

    Those that are gone are lost from now on. The hub does the same every few seconds.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[ProbeResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.invocations import ProbeResult

        return call(paths, "invocations_probe", {}, ProbeResult)

    def render(screen: Screen, data: Answered[ProbeResult]) -> None:
        for each in data.struct.lost:
            screen.line(f"lost: {each}", sign="warn")
        screen.line(f"looked at {data.struct.looked_at}, lost {len(data.struct.lost)}", sign="ok")

    finish(ctx, "hub invocations probe", feature, render)
