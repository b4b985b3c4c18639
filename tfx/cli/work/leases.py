"""`tfx lease claim|renew|release|handoff|force-release`: take a task, keep it, pass it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.work.options import (
    AgentOption,
    EpochOption,
    InstanceOption,
    LeaseOption,
    NeededReason,
    NoLeaseOption,
    OperatorOption,
    OpIdOption,
    ReasonOption,
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
    from tfx.hub.wire.leases import (
        HandoffResult,
        LeaseResult,
        ReleaseResult,
        RenewResult,
    )
    from tfx.result import Result


def claim(
    ctx: typer.Context,
    task: TaskArgument,
    ttl: TtlOption = None,
    worktree: WorktreeOption = None,
    instance: InstanceOption = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="A name for people.")
    ] = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Claim a task; keep the lease id and the epoch.

    Claiming again gives the same lease. Without --ttl the lease never ends by itself. Exit 5
    `held` names the holder.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[LeaseResult]]:
        from tfx.cli.work.calls import path_of, ttl_of, worked
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import LeaseResult

        ttl_ms = ttl_of(ttl)

        def fields(_client: HubClient, who: Speaker) -> dict[str, object]:
            return {
                "task": task,
                "ttl_ms": ttl_ms,
                "worktree": path_of(worktree) or who.worktree,
                "instance": instance,
                "label": label,
                "op_id": op_id,
            }

        return worked(paths, Wishes(agent, session, room), "work_claim", LeaseResult, fields)

    def render(screen: Screen, data: Answered[LeaseResult]) -> None:
        from tfx.cli.work.views import show_claimed

        show_claimed(screen, data.struct.lease)

    finish(ctx, "lease claim", feature, render)


def renew(
    ctx: typer.Context,
    task: TaskArgument,
    ttl: TtlOption = None,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Give a lease that has a --ttl a new end.

    That is now plus the time given here, else as long as before. --lease and --epoch may be left
    out: then it is the lease of the task that your session holds.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[RenewResult]]:
        from tfx.cli.work.calls import ttl_of, worked
        from tfx.cli.work.held import own_lease
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import RenewResult

        ttl_ms = ttl_of(ttl)

        def fields(client: HubClient, who: Speaker) -> dict[str, object]:
            known = own_lease(client, who, task, lease, epoch)
            return {**known, "ttl_ms": ttl_ms, "op_id": op_id}

        return worked(paths, Wishes(agent, session, room), "work_renew", RenewResult, fields)

    def render(screen: Screen, data: Answered[RenewResult]) -> None:
        from tfx.cli.work.words import until

        held = data.struct.lease
        screen.line(f"the lease of task {held.task} is yours {until(held)}", sign="ok")

    finish(ctx, "lease renew", feature, render)


def release(
    ctx: typer.Context,
    task: TaskArgument,
    reason: ReasonOption = None,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    no_lease: NoLeaseOption = False,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    operator: OperatorOption = False,
    op_id: OpIdOption = None,
) -> None:
    """Give a task back unfinished, for anybody to claim."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[ReleaseResult]]:
        from tfx.cli.work.calls import decided
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import ReleaseResult

        fields = {
            "task": task,
            "reason": reason,
            "lease_id": lease,
            "epoch": epoch,
            "no_lease": no_lease,
            "op_id": op_id,
        }
        wishes = Wishes(agent, session, room)
        return decided(paths, wishes, "work_release", ReleaseResult, fields, operator=operator)

    finish(ctx, "lease release", feature, _show_released)


def handoff(
    ctx: typer.Context,
    task: TaskArgument,
    to: Annotated[str, typer.Option("--to", metavar="AGENT", help="A live agent of the room.")],
    to_session: Annotated[
        str | None, typer.Option("--to-session", metavar="ID", help="Which of its sessions.")
    ] = None,
    to_instance: Annotated[
        str | None, typer.Option("--to-instance", metavar="ID", help="Which of its instances.")
    ] = None,
    ttl: TtlOption = None,
    reason: ReasonOption = None,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    no_lease: NoLeaseOption = False,
    agent: AgentOption = None,
    session: SessionOption = None,
    room: RoomOption = None,
    operator: OperatorOption = False,
    op_id: OpIdOption = None,
) -> None:
    """Hand your task to another live agent.

    It then holds the next epoch, and you hold nothing more.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[HandoffResult]]:
        from tfx.cli.work.calls import decided, ttl_of
        from tfx.cli.work.who import Wishes
        from tfx.hub.wire.leases import HandoffResult

        fields = {
            "task": task,
            "to": to,
            "to_session": to_session,
            "to_instance": to_instance,
            "ttl_ms": ttl_of(ttl),
            "reason": reason,
            "lease_id": lease,
            "epoch": epoch,
            "no_lease": no_lease,
            "op_id": op_id,
        }
        wishes = Wishes(agent, session, room)
        return decided(paths, wishes, "work_handoff", HandoffResult, fields, operator=operator)

    def render(screen: Screen, data: Answered[HandoffResult]) -> None:
        from tfx.cli.work.views import show_claimed

        show_claimed(screen, data.struct.lease)

    finish(ctx, "lease handoff", feature, render)


def force_release(
    ctx: typer.Context,
    task: TaskArgument,
    reason: NeededReason,
    lease: LeaseOption = None,
    epoch: EpochOption = None,
    no_lease: NoLeaseOption = False,
    room: RoomOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Take a task from its holder (operator).

    The holder is told, and what it still writes is refused.
    Without --lease, --epoch and --no-lease: whatever lease the task has now.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[ReleaseResult]]:
        from tfx.cli.work.calls import ordered
        from tfx.cli.work.held import present_lease
        from tfx.hub.wire.leases import ReleaseResult

        def fields(client: HubClient, board: str) -> dict[str, object]:
            known: dict[str, object] = {"lease_id": lease, "epoch": epoch, "no_lease": no_lease}
            if lease is None and epoch is None and not no_lease:
                known = present_lease(client, board, task)
            return {"task": task, "reason": reason, **known, "op_id": op_id}

        return ordered(paths, room, "work_force_release", ReleaseResult, fields)

    finish(ctx, "lease force-release", feature, _show_released)


def _show_released(screen: Screen, data: Answered[ReleaseResult]) -> None:
    was, task = data.struct.released, data.struct.task
    whose = "" if was is None else f"; {was.agent_id} held it with epoch {was.epoch}"
    screen.line(f"task {task.task} is {task.status.value}{whose}", sign="ok")
