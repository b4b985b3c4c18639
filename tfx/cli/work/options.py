"""The options that several commands of `tfx task` and `tfx lease` share."""

from __future__ import annotations

from typing import Annotated

import typer

TaskArgument = Annotated[
    int, typer.Argument(metavar="TASK", min=1, help="Its number on the board.")
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="AGENT", help="Who works; else the agent this runs in."),
]
SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="Its session: the lease_id of register."),
]
RoomOption = Annotated[
    str | None,
    typer.Option("--room", metavar="PATH", help="The workspace; else that of the agent, or here."),
]
OpIdOption = Annotated[
    str | None, typer.Option("--op-id", metavar="KEY", help="The same key is done once only.")
]
LeaseOption = Annotated[
    str | None, typer.Option("--lease", metavar="ID", help="The lease that you believe you hold.")
]
EpochOption = Annotated[
    int | None, typer.Option("--epoch", metavar="N", min=0, help="The epoch of that lease.")
]
OperatorOption = Annotated[
    bool, typer.Option("--operator", help="As the person, whoever holds it (operator).")
]
NoLeaseOption = Annotated[
    bool, typer.Option("--no-lease", help="You believe that nobody holds it.")
]
TtlOption = Annotated[
    str | None,
    typer.Option("--ttl", metavar="TIME", help="4h, 90m, 1h30m: it ends then unless renewed."),
]
WorktreeOption = Annotated[
    str | None,
    typer.Option("--worktree", metavar="PATH", help="Where you work; else the git tree here."),
]
InstanceOption = Annotated[
    str | None, typer.Option("--instance", metavar="ID", help="Which of your instances works.")
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the log.")
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
]
NeededReason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the log.")]
