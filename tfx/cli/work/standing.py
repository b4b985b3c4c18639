"""`tfx lease status|beat`: who holds what, and whether one is still there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.work.options import AgentOption, LimitOption, OpIdOption, RoomOption, SessionOption

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.leases import BeatResult, LeaseStatusResult
    from tfx.result import Result


def status(
    ctx: typer.Context,
    task: Annotated[
        int | None, typer.Argument(metavar="[TASK]", min=1, help="All leases of this task.")
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="ID", help="What became of it, also of a review."),
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="AGENT", help="What this agent holds.")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="What you hold.")] = False,
    limit: LimitOption = 50,
    agent: AgentOption = None,
    room: RoomOption = None,
) -> None:
    """Show who holds what, and what became of a lease."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[LeaseStatusResult]]:
        from tfx.cli.work.held import Question, leases_of

        question = Question(task=task, lease=lease, agent=of, mine=mine, limit=limit)
        return leases_of(paths, agent, room, question)

    def render(screen: Screen, data: Answered[LeaseStatusResult]) -> None:
        from tfx.cli.work.views import show_leases

        show_leases(screen, data.struct)

    finish(ctx, "lease status", feature, render)


def beat(
    ctx: typer.Context,
    sequence: Annotated[
        int | None,
        typer.Option("--sequence", metavar="N", min=0, help="Rises with each beat; else the time."),
    ] = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Say that your session works; hear which leases it has.

    A beat ends and lengthens no lease. One that is older than the last changes nothing.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[BeatResult]]:
        from tfx.cli.work.held import beaten
        from tfx.cli.work.who import Wishes

        now_ns = time.time_ns()
        number = now_ns if sequence is None else sequence
        return beaten(paths, Wishes(agent, session), number, now_ns // 1_000_000, op_id)

    def render(screen: Screen, data: Answered[BeatResult]) -> None:
        for each in data.struct.leases:
            text = f"task {each.task}: lease {each.lease_id}, epoch {each.epoch}"
            screen.line(text, sign="ok")
        if data.struct.accepted and not data.struct.leases:
            screen.line("you hold nothing", sign="info")

    finish(ctx, "lease beat", feature, render)
