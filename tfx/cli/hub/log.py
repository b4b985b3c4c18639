"""`tfx hub trace|events|rebuild|prune`: look at the log, refold it, shorten it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish, globals_of, leave

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.admin import PruneResult, RebuildCheckResult, RebuildResult
    from tfx.hub.wire.views import EventsResult, TraceResult
    from tfx.result import Result

AfterOption = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Continue behind this event.")
]


def trace(
    ctx: typer.Context,
    trace_id: Annotated[
        str, typer.Argument(metavar="TRACE_ID", help="As in a message, a task or the id of a job.")
    ],
    after: Annotated[
        int, typer.Option("--after", metavar="SEQ", min=0, help="Continue behind this event.")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
    ] = 200,
) -> None:
    """Show everything of one trace as a timeline."""

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[TraceResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.views import TraceResult

        fields = {"trace_id": trace_id, "after": after, "limit": limit}
        return call(paths, "trace", fields, TraceResult)

    def render(screen: Screen, data: Answered[TraceResult]) -> None:
        from tfx.cli.hub.views import show_trace

        show_trace(screen, data.struct)

    finish(ctx, "hub trace", feature, render)


def events(
    ctx: typer.Context,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as events come, from now on.")
    ] = False,
    after: AfterOption = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="At most so many.")
    ] = 100,
) -> None:
    """Show the event log: its newest part, or from a cursor on."""
    if follow:
        _follow(ctx, after)

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[EventsResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.views import EventsResult

        return call(paths, "events", {"after": after, "limit": limit}, EventsResult)

    def render(screen: Screen, data: Answered[EventsResult]) -> None:
        from tfx.cli.hub.views import event_line

        for event in data.struct.events:
            screen.line(event_line(event))
        if data.struct.more:
            screen.note(f"there is more: tfx hub events --after {data.struct.next_cursor}")

    finish(ctx, "hub events", feature, render)


def _follow(ctx: typer.Context, after: str | None) -> None:
    """Print events as they come: NDJSON with `--json` (K-7); a restart of the hub is bridged."""
    from tfx.cli.hub.following import follow_events
    from tfx.cli.hub.views import event_line
    from tfx.core.paths import Paths
    from tfx.errors import Exit

    as_json = globals_of(ctx).json
    for event, plain in follow_events(Paths.resolve(), after):
        text = json.dumps(plain, ensure_ascii=False) if as_json else event_line(event)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    leave(Exit.OK)


def rebuild(
    ctx: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Only compare; writes nothing.")] = False,
) -> None:
    """Fold every table again from the log (operator).

    The log is the truth; what was folded before is discarded.
    """
    if check:
        _check_rebuild(ctx)

    def feature(screen: Screen, paths: Paths) -> Result[Answered[RebuildResult]]:
        from tfx.cli.hub.calls import rebuilt

        screen.progress("folding the log")
        return rebuilt(paths)

    def render(screen: Screen, data: Answered[RebuildResult]) -> None:
        done = data.struct
        screen.line(f"folded {done.events} events in {done.seconds:.1f} s", sign="ok")

    finish(ctx, "hub rebuild", feature, render)


def _check_rebuild(ctx: typer.Context) -> None:
    def feature(screen: Screen, paths: Paths) -> Result[Answered[RebuildCheckResult]]:
        from tfx.cli.hub.calls import compared

        screen.progress("folding the log beside the projections")
        return compared(paths)

    def render(screen: Screen, data: Answered[RebuildCheckResult]) -> None:
        if data.struct.equal:
            screen.line(f"the projections are what {data.struct.events} events say", sign="ok")
        for each in data.struct.differences:
            screen.line(f"{each.table} {each.key}: {each.what}", sign="bad")

    finish(ctx, "hub rebuild", feature, render)


def prune(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
) -> None:
    """Forget what is closed and past its keep time (operator).

    Messages, dead letters, requests, agents, tasks and invocations; [hub.retention] says when.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[PruneResult]]:
        from tfx.cli.hub.calls import call
        from tfx.hub.wire.admin import PruneResult

        return call(paths, "prune", {"dry_run": dry_run}, PruneResult)

    def render(screen: Screen, data: Answered[PruneResult]) -> None:
        gone = data.struct
        word = "would forget" if gone.dry_run else "forgot"
        screen.line(
            f"{word} {gone.messages} messages, {gone.dead_letters} dead letters,"
            f" {gone.human_requests} human requests, {gone.agents} agents, {gone.tasks} tasks,"
            f" {gone.invocations} invocations ({gone.events} events)",
            sign="ok",
        )

    finish(ctx, "hub prune", feature, render)
