"""`tfx lease review claim|release` and `tfx lease lock|unlock`: review a task, stop a board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.work.options import (
    AgentOption,
    OperatorOption,
    OpIdOption,
    ReasonOption,
    RoomOption,
    SessionOption,
    TaskArgument,
)

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.leases import LockClearResult, LockResult, ReviewResult
    from tfx.result import Result

TaskOrRoom = Annotated[
    int | None, typer.Argument(metavar="[TASK]", min=1, help="Its number on the board.")
]
WholeRoom = Annotated[
    bool, typer.Option("--whole-room", help="All tasks, and new ones, of the workspace.")
]


def claim(
    ctx: typer.Context,
    task: TaskArgument,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Take the review of a task that is in review and not your own."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[ReviewResult]]:
        from tfx.cli.work.calls import worked
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import ReviewResult

        wishes = Wishes(agent, session, room)
        fields = {"task": task, "op_id": op_id}
        return worked(paths, wishes, "work_review_claim", ReviewResult, fields)

    def render(screen: Screen, data: Answered[ReviewResult]) -> None:
        held = data.struct.review
        if held is not None:
            text = f"{held.agent_id} reviews task {task} (review {held.review_id})"
            screen.line(text, sign="ok")

    finish(ctx, "lease review claim", feature, render)


def release(
    ctx: typer.Context,
    task: TaskArgument,
    review: Annotated[
        str | None, typer.Option("--review", metavar="ID", help="The review you believe is yours.")
    ] = None,
    reason: ReasonOption = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    operator: OperatorOption = False,
    op_id: OpIdOption = None,
) -> None:
    """End your review; without one nothing happens.

    With --operator whoever reviews: the reviewer is told.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[ReviewResult]]:
        from tfx.cli.work.calls import decided
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import ReviewResult

        wishes = Wishes(agent, session, room)
        fields = {"task": task, "review_id": review, "reason": reason, "op_id": op_id}
        name = "work_review_release"
        return decided(paths, wishes, name, ReviewResult, fields, operator=operator)

    def render(screen: Screen, data: Answered[ReviewResult]) -> None:
        ended = data.struct.review
        text = "nobody reviewed" if ended is None else f"{ended.agent_id} no longer reviews"
        screen.line(f"{text} task {task}", sign="ok")

    finish(ctx, "lease review release", feature, render)


def lock(
    ctx: typer.Context,
    task: TaskOrRoom = None,
    whole_room: WholeRoom = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="WORD", help="One of the words above.")
    ] = "human_stop",
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="Why, for people.")
    ] = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Stop a task, or the whole room (operator).

    Nothing of it is claimed or changed until it is unlocked. The reason is
    human_stop, duplicate, manager_pause, revoked or policy.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[LockResult]]:
        from tfx.cli.work.calls import ordered, word_of
        from tfx.hub.wire.leases import LockResult
        from tfx.hub.work_models import LockReason

        _require_one(task, whole_room=whole_room)
        word = word_of(LockReason, reason, "--reason").value
        fields = {"task": task, "reason": word, "note": note, "op_id": op_id}
        return ordered(paths, room, "work_lock", LockResult, fields)

    def render(screen: Screen, data: Answered[LockResult]) -> None:
        held = data.struct.lock
        screen.line(f"{_scope(held.task)} stands still: {held.reason.value}", sign="ok")

    finish(ctx, "lease lock", feature, render)


def unlock(
    ctx: typer.Context,
    task: TaskOrRoom = None,
    whole_room: WholeRoom = False,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Let a task, or the whole room, go on (operator)."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[LockClearResult]]:
        from tfx.cli.work.calls import ordered
        from tfx.hub.wire.leases import LockClearResult

        _require_one(task, whole_room=whole_room)
        fields = {"task": task, "op_id": op_id}
        return ordered(paths, room, "work_unlock", LockClearResult, fields)

    def render(screen: Screen, data: Answered[LockClearResult]) -> None:
        word = "was not locked" if data.struct.cleared is None else "goes on"
        screen.line(f"{_scope(task)} {word}", sign="ok")

    finish(ctx, "lease unlock", feature, render)


def _scope(task: int | None) -> str:
    return "the whole room" if task is None else f"task {task}"


def _require_one(task: int | None, *, whole_room: bool) -> None:
    """Raise InvalidRequest unless exactly one scope is named: a room is never meant by leaving."""
    from tfx.errors import InvalidRequest

    if (task is None) != whole_room:
        raise InvalidRequest("name a TASK, or --whole-room", code="usage")
