"""`tfx setup`: its options, its question, and its view for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish
from tfx.cli.output import counted

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.setup.options import Options
    from tfx.setup.report import ActionRow, RunsData, SetupData

EPILOG = """\b
Nothing of yours is overwritten or deleted: what you edited, deleted or made
yourself is kept and reported as a conflict (exit 1) until you say --take-new,
--keep-mine or --restore. Every run can be taken back with --undo RUN."""


def setup(
    ctx: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="As --dry-run, and exit 1 when anything is pending.")
    ] = False,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Only this agent; may be repeated."),
    ] = None,
    take_new: Annotated[
        bool,
        typer.Option("--take-new", help="On conflict take the bundled version, after a backup."),
    ] = False,
    keep_mine: Annotated[
        bool,
        typer.Option("--keep-mine", help="Keep yours; quiet until the bundled version changes."),
    ] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Recreate what you deleted.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take back everything that tfx wrote.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="With --remove: also the hub's files, logs and caches.")
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo", metavar="RUN", help="Take back one earlier run, by its id or number."
        ),
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="List the runs that --undo can take back.")
    ] = False,
    mcp_transport: Annotated[
        str | None,
        typer.Option(
            "--mcp-transport",
            metavar="stdio|http",
            help="Form of the tfx-hub MCP entry; without it an entry keeps its form, a new one is"
            " stdio.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Bring every agent CLI on this machine to tfx's described state.

    Gives the agents found on PATH a route script, a status line, hooks, skills and the tfx-hub MCP
    entry. Running it again changes nothing. On a terminal it shows its plan and asks before it
    first edits a settings file of yours.
    """

    def options() -> Options:
        from tfx.desired import Transport
        from tfx.errors import InvalidRequest
        from tfx.setup.options import Mode, Options

        if dry_run and check:
            raise InvalidRequest("--dry-run and --check exclude each other")
        if mcp_transport not in {None, "stdio", "http"}:
            raise InvalidRequest(f"--mcp-transport is stdio or http, not {mcp_transport!r}")
        return Options(
            mode=Mode.DRY_RUN if dry_run else Mode.CHECK if check else Mode.APPLY,
            agents=tuple(agent or ()),
            take_new=take_new,
            keep_mine=keep_mine,
            restore=restore,
            remove=remove,
            purge=purge,
            undo=undo,
            runs=runs,
            transport=None if mcp_transport is None else Transport(mcp_transport),
            yes=yes,
        )

    def feature(screen: Screen, paths: Paths) -> Result[SetupData | RunsData]:
        from tfx.setup import run

        said = options()
        said.validate()
        if said.runs:
            return run.runs(paths)
        if said.undo is not None:
            return run.undo(paths, said, say=screen.progress)
        if said.remove:
            ask = _Asker(screen, shown, default=not purge)
            return run.remove(paths, said, ask=ask, say=screen.progress)
        ask = _Asker(screen, shown, default=True)
        return run.setup(paths, said, ask=ask, say=screen.progress)

    def render(screen: Screen, data: SetupData | RunsData) -> None:
        if data not in shown:  # what was asked about and declined stands there already
            _render(screen, data)

    shown: list[SetupData | RunsData] = []
    finish(ctx, "setup", feature, render, told=_TOLD)


class _Asker:
    """Shows what is about to happen and asks; without a terminal the default holds (K-5)."""

    def __init__(self, screen: Screen, shown: list[SetupData | RunsData], *, default: bool) -> None:
        self._screen = screen
        self._shown = shown
        self._default = default

    def __call__(self, data: SetupData) -> bool:
        if not self._screen.interactive:
            return self._default
        with self._screen.aloud():
            _render_setup(self._screen, data)
        self._shown.append(data)
        return self._screen.ask("Apply this?")


def _render(screen: Screen, data: SetupData | RunsData) -> None:
    from tfx.setup.report import RunsData

    if isinstance(data, RunsData):
        _render_runs(screen, data)
    else:
        _render_setup(screen, data)


# problems that the view shows as rows
_TOLD = frozenset({"conflict", "failed", "refused", "partial", "agent-absent"})

_SIGN_OF = {
    "changed": "changed",
    "pending": "changed",
    "unchanged": "ok",
    "skipped": "info",
    "conflict": "warn",
    "partial": "warn",
    "failed": "bad",
    "refused": "bad",
}


def _render_setup(screen: Screen, data: SetupData) -> None:
    for agent in data.agents:
        # a version that no file states is not asked for again: nothing is told of it
        name = agent.label if agent.version is None else f"{agent.label} {agent.version}"
        if not agent.installed:
            screen.line(f"{agent.label}: not on PATH", sign="warn")
        elif agent.selected:
            screen.line(name, sign="ok")
        else:
            note = agent.note or "left out"
            screen.line(f"{name} (left as it is: {note})", sign="info")
    for row in data.actions:
        if row.status in {"unchanged", "skipped"} and not screen.wishes.verbose:
            continue
        _render_action(screen, row)
    for note in data.notes:
        screen.line(note, sign="info")
    screen.line(_summary(data))


def _render_action(screen: Screen, row: ActionRow) -> None:
    verb = {"pending": f"would {row.kind}"}.get(row.status, row.status)
    if row.status == "changed":
        verb = row.kind
    who = f"  [{row.agent}]" if row.agent else ""
    # of a change that went well only what is more than its plain reason: a warning, say
    why = row.reason.partition("; ")[2] if row.status == "changed" else row.reason
    why = f": {why}" if why else ""
    screen.line(f"{verb} {row.target}{who}{why}", sign=_SIGN_OF[row.status])
    if row.hint:
        screen.line(f"    {row.hint}")
    for name in ("snippet", "staged", "merge"):
        if value := row.detail.get(name):
            screen.line(f"    {name}: {value}")
    if screen.wishes.verbose or "backup" in row.reason:
        screen.line(f"    backup: {row.detail.get('backup', 'none was needed')}")


def _summary(data: SetupData) -> str:
    counts = data.counts
    applied = data.mode == "apply"
    parts = [f"{counts.changed} changed" if applied else f"{counts.pending} pending"]
    parts.append(f"{counts.unchanged} as they should be")
    for number, word in (
        (counts.conflicts, "in conflict"),
        (counts.failed, "failed or refused"),
        (counts.skipped, "skipped"),
    ):
        if number:
            parts.append(f"{number} {word}")
    text = ", ".join(parts) + "."
    if data.run:
        text += f" Take it back with: tfx setup --undo {data.run}"
        if any(row.kind == "purge" and row.status == "changed" for row in data.actions):
            text += "; what was purged does not come back"
    return text


def _render_runs(screen: Screen, data: RunsData) -> None:
    if not data.runs:
        screen.line("no runs to take back")
    for run in data.runs:
        screen.line(f"{run.run}  {run.at}  {run.operation}, {counted(run.changes, 'change')}")
