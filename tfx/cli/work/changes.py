"""`tfx task update|attach`: change a task, and say what the work has brought about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.work.options import (
    AgentOption,
    EpochOption,
    LeaseOption,
    NoLeaseOption,
    OperatorOption,
    OpIdOption,
    RoomOption,
    SessionOption,
    TaskArgument,
)

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.work import TaskResult
    from tfx.result import Result


def update(
    ctx: typer.Context,
    task: TaskArgument,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Where it goes next.")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="How it stands, for the others.")
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What is to be done, in a line.")
    ] = None,
    detail: Annotated[
        str | None, typer.Option("--detail", metavar="TEXT", help="All about it; - reads stdin.")
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option("--priority", metavar="N", min=1, max=9, help="9 is the most urgent."),
    ] = None,
    parent: Annotated[
        int | None, typer.Option("--parent", metavar="TASK", min=0, help="0 takes it away.")
    ] = None,
    blocked_by: Annotated[
        list[int] | None,
        typer.Option("--blocked-by", metavar="TASK", help="All that come first; repeated."),
    ] = None,
    no_blockers: Annotated[
        bool, typer.Option("--no-blockers", help="Nothing comes first any more.")
    ] = False,
    exclusive: Annotated[
        str | None, typer.Option("--exclusive", metavar="KEY", help="'' takes it away.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="'' takes it away.")
    ] = None,
    pr: Annotated[str | None, typer.Option("--pr", metavar="URL", help="'' takes it away.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="TEXT", help="'' takes it away.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="Its owner, in words for people.")
    ] = None,
    assignee: Annotated[
        str | None, typer.Option("--assignee", metavar="AGENT", help="Of a task without lease.")
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option("--expect", metavar="REV", min=0, help="Only if it is still as you saw it."),
    ] = None,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    no_lease: NoLeaseOption = False,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    operator: OperatorOption = False,
    op_id: OpIdOption = None,
) -> None:
    """Change a task; what is left out stays.

    Its holder alone may change a leased task. A refused status names those that are allowed.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskResult]]:
        from tfx.cli.hub.calls import text_of
        from tfx.cli.work.calls import decided, word_of
        from tfx.cli.work.who import Wishes
        from tfx.errors import InvalidRequest
        from tfx.hub.wire.work import TaskResult
        from tfx.hub.work_models import TaskStatus

        if blocked_by and no_blockers:
            raise InvalidRequest("--blocked-by and --no-blockers exclude each other", code="usage")
        fields = {
            "task": task,
            "status": word_of(TaskStatus, status, "--status").value if status else None,
            "note": note,
            "title": title,
            "detail": None if detail is None else text_of(detail),
            "priority": priority,
            "parent": parent,
            "blocked_by": [] if no_blockers else blocked_by or None,
            "exclusive": exclusive,
            "branch": branch,
            "pr": pr,
            "output": output,
            "assignee": assignee,
            "label": label,
            "expect": expect,
            "lease_id": lease,
            "epoch": epoch,
            "no_lease": no_lease,
            "op_id": op_id,
        }
        wishes = Wishes(agent, session, room)
        return decided(paths, wishes, "work_update", TaskResult, fields, operator=operator)

    finish(ctx, "task update", feature, _show_changed)


def attach(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="branch, pr, file, commit or link.")],
    identity: Annotated[
        str, typer.Argument(metavar="NAME", help="The branch, address, path or commit.")
    ],
    task: Annotated[
        int | None,
        typer.Option("--task", metavar="TASK", min=1, help="Else the open task it belongs to."),
    ] = None,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    no_lease: NoLeaseOption = False,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    operator: OperatorOption = False,
    op_id: OpIdOption = None,
) -> None:
    """Attach a branch, PR, file, commit or link to a task."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TaskResult]]:
        from tfx.cli.work.calls import decided, path_of, word_of
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.work import TaskResult
        from tfx.hub.work_models import ArtifactKind

        word = word_of(ArtifactKind, kind, "KIND")
        fields = {
            "kind": word.value,
            "identity": path_of(identity) if word is ArtifactKind.FILE else identity,
            "task": task,
            "lease_id": lease,
            "epoch": epoch,
            "no_lease": no_lease,
            "op_id": op_id,
        }
        wishes = Wishes(agent, session, room)
        return decided(paths, wishes, "work_attach", TaskResult, fields, operator=operator)

    finish(ctx, "task attach", feature, _show_changed)


def _show_changed(screen: Screen, data: Answered[TaskResult]) -> None:
    from tfx.cli.work.views import show_task

    task = data.struct.task
    screen.line(f"task {task.task} is at revision {task.revision}", sign="ok")
    show_task(screen, task)
