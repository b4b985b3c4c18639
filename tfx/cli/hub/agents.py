"""`tfx hub agents`: list, retire, prune, free; `tfx hub busy`: one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.agents import AgentsResult, PruneAgentsResult, RetireResult
    from tfx.hub.wire.occupancy import AgentsFreeResult, BusyResult
    from tfx.result import Result

DAY_MS = 86_400_000

app = new_app("agents", "List the agents; retire, prune or free them.")
app.info.no_args_is_help = False


@app.callback(invoke_without_command=True)
def agents(
    ctx: typer.Context,
    include_retired: Annotated[
        bool, typer.Option("--all", help="Show retired agents too.")
    ] = False,
    after: Annotated[
        str | None, typer.Option("--after", metavar="AGENT", help="Continue behind this name.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
    ] = 100,
) -> None:
    """List the agents that the hub knows: who is busy with what, their mail, what they owe."""
    if ctx.invoked_subcommand is not None:
        return

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[AgentsResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.agents import AgentsResult

        fields = {"include_retired": include_retired, "after": after, "limit": limit}
        return call(paths, "agents", fields, AgentsResult)

    def render(screen: Screen, data: Answered[AgentsResult]) -> None:
        from tfx.cli.hub.views import show_agents

        show_agents(screen, data.struct)

    finish(ctx, "hub agents", feature, render)


@app.command("retire", cls=Command)
def retire(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="See `tfx hub agents`.")],
) -> None:
    """Retire an agent: its waiting mail becomes dead letters (operator)."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[RetireResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.agents import RetireResult

        return call(paths, "agents_retire", {"agent_id": agent}, RetireResult)

    def render(screen: Screen, data: Answered[RetireResult]) -> None:
        done = data.struct
        screen.line(f"retired {done.agent_id}; {done.dead_lettered} dead letters", sign="ok")

    finish(ctx, "hub agents retire", feature, render)


@app.command("prune", cls=Command)
def prune(
    ctx: typer.Context,
    apply: Annotated[bool, typer.Option("--apply", help="Retire them.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show whom; the default.")
    ] = False,
    days: Annotated[
        float, typer.Option("--days", metavar="DAYS", min=0, help="Not seen for so many days.")
    ] = 7,
) -> None:
    """Retire every agent that is long offline (operator).

    Without --apply it only shows whom.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[PruneAgentsResult]]:
        from tfx.cli.hub.calls import call
        from tfx.errors import InvalidRequest
        from tfx.hub.wire.agents import PruneAgentsResult

        if apply and dry_run:
            raise InvalidRequest("--apply and --dry-run exclude each other", code="usage")
        fields = {"unseen_ms": round(days * DAY_MS), "dry_run": not apply}
        return call(paths, "agents_prune", fields, PruneAgentsResult)

    def render(screen: Screen, data: Answered[PruneAgentsResult]) -> None:
        word = "would retire" if data.struct.dry_run else "retired"
        for agent in data.struct.agents:
            screen.line(f"{word} {agent}", sign="changed")
        if not data.struct.agents:
            screen.line("no agent is that old", sign="ok")

    finish(ctx, "hub agents prune", feature, render)


@app.command("free", cls=Command)
def free(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="See `tfx hub agents`.")],
    force: Annotated[
        bool, typer.Option("--force", help="Evict who is not proven gone, too.")
    ] = False,
) -> None:
    """Free a busy agent of holders that are gone (operator).

    A message in flight comes back. A live process that says nothing keeps its seat: only --force
    takes it, and is on record.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[AgentsFreeResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.occupancy import AgentsFreeResult, BusyResult

        seen = call(paths, "busy", {"agent_id": agent}, BusyResult)
        fields = {"agent_id": agent, "force": force, "generation": seen.data.struct.generation}
        return call(paths, "agents_free", fields, AgentsFreeResult)

    def render(screen: Screen, data: Answered[AgentsFreeResult]) -> None:
        from tfx.cli.hub.seats import show_freed

        show_freed(screen, data.struct)

    finish(ctx, "hub agents free", feature, render)


def busy(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="See `tfx hub agents`.")],
) -> None:
    """Show whether an agent is busy and who holds it.

    Of each holder: its process, whether that lives, and when it was last heard.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[BusyResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.occupancy import BusyResult

        return call(paths, "busy", {"agent_id": agent}, BusyResult)

    def render(screen: Screen, data: Answered[BusyResult]) -> None:
        from tfx.cli.hub.seats import show_busy

        show_busy(screen, data.struct)

    finish(ctx, "hub busy", feature, render)
