"""`tfx hub dead list|replay|purge`: what could not be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app
from tfx.cli.hub.bus import OpIdOption, TtlOption

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.views import DeadLettersResult, DeadPurgeResult, DeadReplayResult
    from tfx.result import Result

AgentFilter = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="Only of this receiver.")
]
ReasonFilter = Annotated[
    str | None, typer.Option("--reason", metavar="REASON", help="Only of this reason.")
]

app = new_app("dead", "Dead letters: list, send again, give up.")


@app.command("list", cls=Command)
def list_(
    ctx: typer.Context,
    agent: AgentFilter = None,
    reason: ReasonFilter = None,
    after: Annotated[
        int, typer.Option("--after", metavar="SEQ", min=0, help="Continue behind this one.")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
    ] = 100,
) -> None:
    """List dead letters with their reasons."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[DeadLettersResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.views import DeadLettersResult

        fields = {"agent_id": agent, "reason": reason, "after": after, "limit": limit}
        return call(paths, "dead_letters", fields, DeadLettersResult)

    def render(screen: Screen, data: Answered[DeadLettersResult]) -> None:
        from tfx.cli.hub.views import show_dead

        show_dead(screen, data.struct)

    finish(ctx, "hub dead list", feature, render)


@app.command("replay", cls=Command)
def replay(
    ctx: typer.Context,
    message_id: Annotated[
        str, typer.Argument(metavar="MESSAGE_ID", help="See `tfx hub dead list`.")
    ],
    ttl: TtlOption = "5m",
    op_id: OpIdOption = None,
) -> None:
    """Send a dead letter again as a new message of the same trace."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[DeadReplayResult]]:
        from tfx.cli.durations import milliseconds_within
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.fields import TTL_MS
        from tfx.hub.wire.views import DeadReplayResult

        fields = {
            "message_id": message_id,
            "ttl_ms": milliseconds_within(ttl, "--ttl", *TTL_MS),
            "op_id": op_id,
        }
        return call(paths, "dead_replay", fields, DeadReplayResult)

    def render(screen: Screen, data: Answered[DeadReplayResult]) -> None:
        screen.line(f"sent again as {data.struct.message_id}", sign="ok")

    finish(ctx, "hub dead replay", feature, render)


@app.command("purge", cls=Command)
def purge(
    ctx: typer.Context,
    message_id: Annotated[
        str | None, typer.Argument(metavar="MESSAGE_ID", help="See `tfx hub dead list`.")
    ] = None,
    agent: AgentFilter = None,
    reason: ReasonFilter = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Only older ones.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All of them, where no filter is given.")
    ] = False,
) -> None:
    """Give dead letters up for good (operator).

    One, those of a filter, or --all.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[DeadPurgeResult]]:
        from tfx.cli.hub.agents import DAY_MS
        from tfx.cli.hub.calls import call
        from tfx.errors import InvalidRequest
        from tfx.hub.wire.views import DeadPurgeResult

        fields: dict[str, str | int | None] = {
            "message_id": message_id,
            "agent_id": agent,
            "reason": reason,
            "older_than_ms": None if older_than is None else round(older_than * DAY_MS),
        }
        if not everything and all(value is None for value in fields.values()):
            raise InvalidRequest("name a message, a filter or --all", code="usage")
        if everything and fields["older_than_ms"] is None:
            fields["older_than_ms"] = 0  # all of them, said as a filter
        return call(paths, "dead_purge", fields, DeadPurgeResult)

    def render(screen: Screen, data: Answered[DeadPurgeResult]) -> None:
        screen.line(f"purged {data.struct.purged}", sign="ok")

    finish(ctx, "hub dead purge", feature, render)
