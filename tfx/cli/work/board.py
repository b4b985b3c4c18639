"""`tfx task board`: the whole board of a workspace at one look, and how it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish, globals_of
from tfx.cli.work.options import AgentOption, RoomOption

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.cli.work.boards import Board
    from tfx.core.paths import Paths
    from tfx.result import Result


def board(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Done and cancelled too.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Draw it again whenever it changes.")
    ] = False,
    agent: AgentOption = None,
    room: RoomOption = None,
) -> None:
    """Show the board: a column for each status.

    With each task: who holds it and was heard of when, who reviews it, what it waits for. With
    --watch and --json: one JSON document a line and change.
    """
    if watch:
        _watch(ctx, agent, room, everything=everything)

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[Board]]:
        from tfx.cli.hub.calls import Answered
        from tfx.cli.work.boards import read_board
        from tfx.cli.work.who import Wishes, speaker
        from tfx.hub.client import HubClient
        from tfx.result import Result

        with HubClient.of(paths) as client:
            who = speaker(paths, client, Wishes(agent, room=room))
            return Result(Answered(read_board(client, who.room, everything=everything)))

    finish(ctx, "task board", feature, _show)


def _watch(ctx: typer.Context, agent: str | None, room: str | None, *, everything: bool) -> None:
    """Show every board that differs from the one before, until it is interrupted (K-7)."""
    import json
    import sys

    from tfx.cli.context import leave
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.cli.work.boards import boards
    from tfx.cli.work.who import Wishes
    from tfx.core.paths import Paths
    from tfx.errors import Exit

    wishes = globals_of(ctx)
    screen = Screen(wishes, sys.stdin, sys.stdout, sys.stderr)
    paths = Paths.resolve()
    said = Wishes(agent, room=room)
    for found in boards(paths, said, everything=everything, ages=not wishes.json):
        if wishes.json:
            sys.stdout.write(json.dumps({**Answered(found)}, ensure_ascii=False) + "\n")
        else:
            screen.clear()
            _show(screen, Answered(found))
        sys.stdout.flush()
    leave(Exit.OK)


def _show(screen: Screen, data: Answered[Board]) -> None:
    from tfx.cli.work.board_view import show_board

    show_board(screen, data.struct)
