"""`tfx hub human list|answer|withdraw`: what agents ask the person at this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app
from tfx.cli.hub.bus import OpIdOption

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.humans import HumanAnswerResult, HumanListResult
    from tfx.result import Result

RequestId = Annotated[str, typer.Argument(metavar="REQUEST_ID", help="See `tfx hub human list`.")]

app = new_app("human", "List, answer or withdraw what agents ask you.")


@app.command("list", cls=Command)
def list_(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Closed ones too, as far as they are kept.")
    ] = False,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="AGENT", help="Only of this agent.")
    ] = None,
) -> None:
    """List open requests, oldest first."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[HumanListResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.humans import HumanListResult

        fields = {"include_closed": everything, "requester_agent": agent, "limit": 500}
        return call(paths, "human_requests", fields, HumanListResult)

    def render(screen: Screen, data: Answered[HumanListResult]) -> None:
        from tfx.cli.hub.questions import show

        for each in data.struct.requests:
            show(screen, each)
        if not data.struct.requests:
            screen.line("nobody asks")

    finish(ctx, "hub human list", feature, render)


@app.command("answer", cls=Command)
def answer(
    ctx: typer.Context,
    request_id: RequestId,
    accept: Annotated[bool, typer.Option("--accept", help="Accept it.")] = False,
    decline: Annotated[bool, typer.Option("--decline", help="Decline it.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel it.")] = False,
    op_id: OpIdOption = None,
) -> None:
    """Show a request and answer it (operator).

    Needs a terminal; secrets are typed unseen.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[HumanAnswerResult]]:
        from tfx.cli.hub.calls import call
        from tfx.cli.hub.questions import action_of, asked, typed
        from tfx.hub.models import HumanAction
        from tfx.hub.wire.humans import HumanAnswerResult

        found = asked(paths, request_id)
        action = action_of(found, accept=accept, decline=decline, cancel=cancel)
        fields = {
            "request_id": request_id,
            "action": action.value,
            "content": typed(found) if action is HumanAction.ACCEPT else None,
            "digest": found.digest,
            "op_id": op_id,
        }
        return call(paths, "submit_human_input", fields, HumanAnswerResult)

    finish(ctx, "hub human answer", feature, _show_closed)


@app.command("withdraw", cls=Command)
def withdraw(
    ctx: typer.Context,
    request_id: RequestId,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="The agent that opened it."),
    ] = None,
    op_id: OpIdOption = None,
) -> None:
    """Take a request back, as the agent that opened it."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[HumanAnswerResult]]:
        from tfx.cli.hub.calls import agent_of, call
        from tfx.hub.wire.humans import HumanAnswerResult

        fields = {
            "request_id": request_id,
            "requester_agent": agent_of(paths, agent),
            "op_id": op_id,
        }
        return call(paths, "withdraw_human_input", fields, HumanAnswerResult)

    finish(ctx, "hub human withdraw", feature, _show_closed)


def _show_closed(screen: Screen, data: Answered[HumanAnswerResult]) -> None:
    closed = data.struct
    screen.line(f"{closed.request_id} is {closed.new_state.value}", sign="ok")
