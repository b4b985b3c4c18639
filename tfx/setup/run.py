"""The verbs of `tfx setup`: apply or preview, remove, undo, list the runs.

Decides nothing about single files (the engine does) and shows nothing (the CLI does).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from tfx.core.clock import iso
from tfx.core.files import is_dir
from tfx.core.paths import Paths
from tfx.desired import (
    desired,
    other_hub_note,
)
from tfx.plan.actions import Action, Desired, Reason
from tfx.plan.engine import Engine
from tfx.result import Result
from tfx.setup.links import links_of
from tfx.setup.options import Mode, Options
from tfx.setup.purge import Purge, end_hub, plan_purge, purge
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
from tfx.setup.survey import survey
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
    if not rows:
        notes = (*notes, "no agent CLI was found on PATH; run setup again when one is installed")
    links = links_of(paths, engine, seen, options.transport, make=False)
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
            return declined(data, "tfx setup --yes")
    say("comparing with the disk")
    wanted = desired(
        paths,
        seen.scope,
        seen.settings,
        links_of(paths, engine, seen, options.transport, make=True),
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
        mode = Mode.DRY_RUN if options.mode is Mode.APPLY else options.mode
        data = planned(mode, (), plan, _kept_backups(paths, more), removing=True)
        if more:
            data = with_rows(data, more.rows("pending"))
        if options.mode is not Mode.APPLY:
            return planned_result(data, plan, (), options.mode)
        if not ask(data):
            return declined(data, "tfx setup --remove --purge --yes")
    ended = end_hub(paths) if more else ()
    notes = _kept_backups(paths, more)
    result = reported(engine.remove(limit, _teller(say, "removing")), (), notes, ())
    if more is None:
        return result
    return judged(with_rows(result.data, (*ended, *purge(more))), ())


def _kept_backups(paths: Paths, more: Purge | None) -> tuple[str, ...]:
    """Say which messages a purge leaves on the disk: those in the backups of the hub."""
    if more is None or not is_dir(paths.backup_dir):
        return ()
    with contextlib.suppress(OSError):  # what may not be looked into stays too
        if not any(paths.backup_dir.iterdir()):
            return ()
    return (f"the backups of the hub's database stay: {paths.display(paths.backup_dir)}",)


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
