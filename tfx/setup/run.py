"""The verbs of `tfx setup`: apply or preview, remove, undo, list the runs.

Decides nothing about single files (the engine does) and shows nothing (the CLI does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tfx.agents.model import HUB_ENTRY
from tfx.core.clock import iso
from tfx.core.files import make_private_dir
from tfx.core.paths import Paths
from tfx.desired import (
    Link,
    Transport,
    desired,
    http_link,
    other_hub_note,
    stdio_link,
)
from tfx.hub.places import HubFiles
from tfx.hub.tokens import ensure, new_secret, read_bus
from tfx.plan.actions import Action, Desired, Reason
from tfx.plan.engine import Engine
from tfx.result import Result
from tfx.setup.options import Mode, Options
from tfx.setup.purge import end_hub, plan_purge, purge
from tfx.setup.report import (
    RunRow,
    RunsData,
    SetupData,
    absent,
    agent_rows,
    declined,
    judged,
    planned,
    planned_result,
    reported,
    with_rows,
)
from tfx.setup.survey import Survey, survey
from tfx.setup.unwritable import unwritable

Ask = Callable[[SetupData], bool]
Say = Callable[[str], None]


def setup(paths: Paths, options: Options, *, ask: Ask, say: Say) -> Result[SetupData]:
    """Bring the machine to the desired state, or say what differs from it.

    `ask` is put the plan of a first run that would change a shared file (K-5); a no ends the run
    with nothing written. `say` hears what is being done. Raises TfxError before any write when
    the environment, the settings or the manifest forbid it.
    """
    options.validate()
    engine = _engine(paths)
    say("looking for agent CLIs")
    names = options.names()
    seen = survey(paths, engine, names)
    rows = agent_rows(seen.found, seen.scope, names)
    missing = tuple(absent(row) for row in rows if row.name in names and not row.installed)
    notes = other_hub_note(paths)
    links = _links(paths, engine, seen, options, make=False)
    preview = desired(paths, seen.scope, seen.settings, links)
    unwritten = unwritable(paths, seen.scope, links)
    if options.mode is not Mode.APPLY:
        say("comparing with the disk")
        plan = engine.plan(preview, options.flags)
        merges = _merges(engine, preview, plan.actions)
        data = planned(options.mode, rows, plan, notes, merges=merges)
        return planned_result(with_rows(data, unwritten), plan, missing, options.mode)
    if not options.yes and not engine.has_edited_shared_files():
        plan = engine.plan(preview, options.flags)
        data = with_rows(planned(Mode.DRY_RUN, rows, plan, notes), unwritten)
        if plan.changes_shared_files and not ask(data):
            return declined(data)
    say("comparing with the disk")
    wanted = desired(
        paths, seen.scope, seen.settings, _links(paths, engine, seen, options, make=True)
    )
    report = engine.apply(wanted, options.flags, _teller(say, "writing"))
    merges = _merges(engine, wanted, (outcome.action for outcome in report.outcomes))
    result = reported(report, rows, notes, missing, merges)
    return judged(with_rows(result.data, unwritten), missing)


def _merges(engine: Engine, wanted: Desired, actions: Iterable[Action]) -> Mapping[str, str]:
    """Return the merge command by target of what the user edited and we renewed (S-36)."""
    commands = {
        action.target: engine.diff(wanted, action).merge_command
        for action in actions
        if action.reason is Reason.DIVERGED and not action.is_entry
    }
    return {target: command for target, command in commands.items() if command}


def _engine(paths: Paths) -> Engine:
    return Engine(paths.setup_dir, git=paths.program("git"))


def _links(
    paths: Paths, engine: Engine, seen: Survey, options: Options, *, make: bool
) -> dict[str, Link]:
    """Return what each agent's MCP entry leads to: the bridge, unless HTTP was asked for (K-20).

    An agent whose entry is recorded in one form keeps it until the option says otherwise. A
    preview makes no token file (S-3).
    """
    recorded = {
        record.agent: Transport.HTTP
        for record in engine.manifest().entries.values()
        if record.asset == HUB_ENTRY and any("Authorization" in leaf for leaf in record.leaves)
    }
    forms = {
        one.agent.name: options.transport or recorded.get(one.agent.name) or Transport.STDIO
        for one in seen.scope
    }
    bridge = stdio_link(seen.settings)
    if Transport.HTTP not in forms.values():
        return dict.fromkeys(forms, bridge)
    direct = http_link(seen.settings, _bus_token(paths, make=make))
    return {name: direct if form is Transport.HTTP else bridge for name, form in forms.items()}


def _bus_token(paths: Paths, *, make: bool) -> str:
    """Return the hub's bus token; a preview that finds none goes on with one it throws away."""
    files = HubFiles.of(paths)
    token = read_bus(paths, files)
    if token is None and make:
        make_private_dir(files.directory)
        token = ensure(paths, files)[0].bus
    return token or new_secret()


def remove(paths: Paths, options: Options, *, ask: Ask, say: Say) -> Result[SetupData]:
    """Take back all that the manifest records, whether or not its agent is there (S-37).

    With `purge` also the files of purge.py, which are listed and asked about first (K-6); where
    nobody can be asked, only `--yes` is a yes, because messages do not come back.
    """
    options.validate()
    engine = _engine(paths)
    limit = frozenset(options.names()) or None
    more = plan_purge(paths) if options.purge else None
    if options.mode is not Mode.APPLY or (more and more.files and not options.yes):
        plan = engine.plan_removal(limit)
        data = planned(options.mode, (), plan, (), removing=True)
        if more:
            data = with_rows(data, more.rows("pending"))
        if options.mode is not Mode.APPLY:
            return planned_result(data, plan, (), options.mode)
        if not ask(data):
            return declined(data)
    ended = end_hub(paths) if more else ()
    result = reported(engine.remove(limit, _teller(say, "removing")), (), (), ())
    if more is None:
        return result
    return judged(with_rows(result.data, (*ended, *purge(more))), ())


def undo(paths: Paths, options: Options, *, say: Say) -> Result[SetupData]:
    """Take back one earlier run where the disk still holds its result (S-44)."""
    options.validate()
    engine = _engine(paths)
    run = options.undo or ""
    if options.mode is not Mode.APPLY:
        plan = engine.plan_undo(run)
        return planned_result(planned(options.mode, (), plan, ()), plan, (), options.mode)
    return reported(engine.undo(run, _teller(say, "reverting")), (), (), ())


def runs(paths: Paths) -> Result[RunsData]:
    """List the runs that `--undo` can take back, newest first."""
    rows = tuple(
        RunRow(run.run, run.operation, iso(run.at_ms), run.changes, run.targets)
        for run in _engine(paths).runs()
    )
    return Result(RunsData(rows))


def _teller(say: Say, verb: str) -> Callable[[Action], None]:
    return lambda action: say(f"{verb} {action.target}")
