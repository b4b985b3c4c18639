"""`tfx task add|list|show|next|delete`: put work on the board, look at it, take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.work.options import (
    AgentOption,
    InstanceOption,
    LimitOption,
    OpIdOption,
    RoomOption,
    SessionOption,
    TaskArgument,
    TtlOption,
    WorktreeOption,
)

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.cli.work.who import Speaker
    from tfx.core.paths import Paths
    from tfx.hub.client import HubClient
    from tfx.hub.wire.work import TaskDeleteResult, TaskListResult, TaskNextResult, TaskResult
    from tfx.result import Result

ACTOR = "--mine asks for your own tasks"


def add(
    ctx: typer.Context,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What is to be done, in a line.")],
    detail: Annotated[
        str, typer.Option("--detail", metavar="TEXT", help="All about it; - reads stdin.")
    ] = "",
    priority: Annotated[
        int, typer.Option("--priority", metavar="N", min=1, max=9, help="9 is the most urgent.")
    ] = 5,
    accept: Annotated[
        bool, typer.Option("--accept", help="It may be claimed at once; else it is proposed.")
    ] = False,
    client_key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The same key makes one task only.")
    ] = None,
    parent: Annotated[
        int | None, typer.Option("--parent", metavar="TASK", min=1, help="The task it is part of.")
    ] = None,
    blocked_by: Annotated[
        list[int] | None,
        typer.Option("--blocked-by", metavar="TASK", help="What comes first; may be repeated."),
    ] = None,
    exclusive: Annotated[
        str | None,
        typer.Option("--exclusive", metavar="KEY", help="Never beside another task of this key."),
    ] = None,
    source_message: Annotated[
        str | None, typer.Option("--source-message", metavar="ID", help="The message it is from.")
    ] = None,
    source_task: Annotated[
        str | None, typer.Option("--source-task", metavar="ID", help="Its name elsewhere.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Where it is done.")
    ] = None,
    pr: Annotated[str | None, typer.Option("--pr", metavar="URL", help="Its PR.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="TEXT", help="What it shall bring about.")
    ] = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Put a task on the board of this workspace; prints its number."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskResult]]:
        from tfx.cli.hub.calls import text_of
        from tfx.cli.work.calls import worked
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.work import TaskResult

        fields = {
            "title": title,
            "detail": text_of(detail),
            "priority": priority,
            "accept": accept,
            "client_key": client_key,
            "parent": parent,
            "blocked_by": blocked_by or None,
            "exclusive": exclusive,
            "source_message": source_message,
            "source_task": source_task,
            "branch": branch,
            "pr": pr,
            "output": output,
            "op_id": op_id,
        }
        return worked(paths, Wishes(agent, session, room), "work_add", TaskResult, fields)

    def render(screen: Screen, data: Answered[TaskResult]) -> None:
        task = data.struct.task
        screen.line(f"task {task.task} is {task.status.value}: {task.title}", sign="ok")

    finish(ctx, "task add", feature, render)


def list_(
    ctx: typer.Context,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Only such; may be repeated."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Done and cancelled too.")] = False,
    ready: Annotated[bool, typer.Option("--ready", help="Only what can be claimed now.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only what is given to you.")] = False,
    assignee: Annotated[
        str | None, typer.Option("--assignee", metavar="AGENT", help="Only what is given to it.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="TASK", min=0, help="Continue behind this one.")
    ] = 0,
    limit: LimitOption = 100,
    agent: AgentOption = None,
    room: RoomOption = None,
) -> None:
    """List open tasks and what each of them waits for.

    A status is proposed, accepted, assigned, in_progress, blocked, in_review, merged, done or
    cancelled.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskListResult]]:
        from tfx.cli.work.calls import seen, words_of
        from tfx.cli.work.who import Wishes
        from tfx.errors import InvalidRequest
        from tfx.hub.wire.work import TaskListResult
        from tfx.hub.work_models import TaskStatus

        if mine and assignee:
            raise InvalidRequest("--mine and --assignee exclude each other", code="usage")
        statuses = words_of(TaskStatus, status, "--status")

        def fields(who: Speaker) -> dict[str, object]:
            return {
                "status": statuses or None,
                "all": everything,
                "ready": ready,
                "assignee": who.required(ACTOR) if mine else assignee,
                "after": after,
                "limit": limit,
                "max_bytes": 262_144,
            }

        return seen(paths, Wishes(agent, room=room), "work_list", TaskListResult, fields)

    def render(screen: Screen, data: Answered[TaskListResult]) -> None:
        from tfx.cli.work.views import show_list

        show_list(screen, data.struct)

    finish(ctx, "task list", feature, render)


def show(
    ctx: typer.Context, task: TaskArgument, agent: AgentOption = None, room: RoomOption = None
) -> None:
    """Show a task with its lease, review, locks and artifacts."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskResult]]:
        from tfx.cli.work.calls import seen
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.work import TaskResult

        wishes = Wishes(agent, room=room)
        return seen(paths, wishes, "work_show", TaskResult, {"task": task})

    def render(screen: Screen, data: Answered[TaskResult]) -> None:
        from tfx.cli.work.views import show_task

        show_task(screen, data.struct.task)

    finish(ctx, "task show", feature, render)


def next_(
    ctx: typer.Context,
    claim: Annotated[
        bool, typer.Option("--claim/--peek", help="Take it in the same step, or only look.")
    ] = False,
    ttl: TtlOption = None,
    worktree: WorktreeOption = None,
    instance: InstanceOption = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Show the best ready task; --claim takes it in the same step.

    Keep the lease id and the epoch that a claim prints. Exit 5 `nothing-ready` when there is none.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskNextResult]]:
        from tfx.cli.work.calls import path_of, ttl_of, worked
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.work import TaskNextResult

        ttl_ms = ttl_of(ttl)

        def fields(_client: HubClient, who: Speaker) -> dict[str, object]:
            if not claim:
                return {"claim": False}
            return {
                "claim": True,
                "ttl_ms": ttl_ms,
                "worktree": path_of(worktree) or who.worktree,
                "instance": instance,
                "op_id": op_id,
            }

        return worked(paths, Wishes(agent, session, room), "work_next", TaskNextResult, fields)

    def render(screen: Screen, data: Answered[TaskNextResult]) -> None:
        from tfx.cli.work.views import show_claimed, show_task

        if data.struct.lease is not None:
            show_claimed(screen, data.struct.lease)
        show_task(screen, data.struct.task)

    finish(ctx, "task next", feature, render)


def delete(
    ctx: typer.Context,
    task: TaskArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for the log.")
    ] = "deleted",
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Delete a task with its leases (operator).

    Its number is never used again.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskDeleteResult]]:
        from tfx.cli.work.calls import ordered
        from tfx.hub.wire.work import TaskDeleteResult

        fields = {"task": task, "reason": reason, "op_id": op_id}
        return ordered(paths, room, "work_delete", TaskDeleteResult, fields)

    def render(screen: Screen, data: Answered[TaskDeleteResult]) -> None:
        done = data.struct
        word = "deleted" if done.deleted else "was deleted before"
        screen.line(f"task {done.task} {word}", sign="ok")

    finish(ctx, "task delete", feature, render)
