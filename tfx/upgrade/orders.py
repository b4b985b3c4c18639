"""What the commands ask for, turned into work for the worker; stops and restarts the hub for it.

Opens no database; knows nothing of terminals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx import __version__
from tfx.core import files
from tfx.errors import (
    AgentUnavailable,
    InvalidRequest,
    NotFound,
    OperationFailed,
    StateConflict,
    TfxError,
)
from tfx.hub.daemon import launch, probe, stop
from tfx.hub.daemon.probe import State as HubState
from tfx.hub.places import TRIFLUX_DATABASE, HubFiles, real
from tfx.hub.schema import registry
from tfx.hub.state import RunWishes
from tfx.result import Problem, Result, Status
from tfx.upgrade import ground, run, stores
from tfx.upgrade.model import Phase, Progress, Receipt, Request, State, Task

if TYPE_CHECKING:
    from tfx.core.paths import Paths

AUTO: Final = "auto"
Told = Callable[[Progress], None]
Ask = Callable[[Receipt], bool]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tfx upgrade`; paths are absolute by now (K-4)."""

    backup_dir: Path | None = None
    database: Path | None = None
    adopt: str | None = None
    dry_run: bool = False
    check: bool = False
    stop_hub: bool = False

    def validate(self) -> None:
        """Raise InvalidRequest for options that exclude each other."""
        if self.dry_run and self.check:
            raise InvalidRequest("--dry-run and --check exclude each other", code="options")
        if self.stop_hub and (self.dry_run or self.check):
            raise InvalidRequest("--stop-hub goes with a real run only", code="options")
        if self.adopt is not None and self.check:
            raise InvalidRequest(
                "--check looks at the hub's database; use --dry-run", code="options"
            )


@dataclass(frozen=True, slots=True)
class Places:
    """The database a command is about, where its backups go, and its own directory tree."""

    database: Path
    store: Path
    root: Path
    is_hub: bool

    @classmethod
    def of(cls, paths: Paths, database: Path | None, store: Path | None) -> Places:
        """Return the places of a command; without `database` it is the hub's own."""
        files = HubFiles.of(paths)
        wanted = files.database if database is None else real(database)
        return cls(
            database=wanted,
            store=store or paths.backup_dir,
            root=wanted.parent,
            is_hub=wanted == files.database,
        )

    def request(self, task: Task, file: Path | None = None) -> Request:
        """Return the order for the worker."""
        named = None if file is None else str(file)
        return Request(task, str(self.database), str(self.store), str(self.root), named)


def upgrade(paths: Paths, options: Options, told: Told, ask: Ask | None = None) -> Result[Receipt]:
    """Upgrade, adopt, rehearse or check; `ask` is asked before anything is changed.

    Raises TfxError with phase and backup directory in its details (U-23).
    """
    with phased():
        options.validate()
        for each in (options.database, options.backup_dir):
            if each is not None:
                ground.check_owned_path(each)
        places = Places.of(paths, options.database, options.backup_dir)
        source = _source(paths, options)
        if options.dry_run or options.check:
            return _looked(options, _look(paths, places, options, source, told))
        if source is not None:
            order = places.request(Task.ADOPT, source)
        else:
            _refuse_missing(paths, places.database)
            order = places.request(Task.UPGRADE)
            if ask is not None and not _agreed(paths, places, told, ask):
                raise StateConflict("nothing was changed", code="declined")
        return with_hub_stopped(
            paths, places, lambda: run.run(paths, order, told), wanted=options.stop_hub
        )


def with_hub_stopped(
    paths: Paths, places: Places, work: Callable[[], Receipt], *, wanted: bool
) -> Result[Receipt]:
    """Do some work, with the hub stopped around it when that is wanted (U-19, K-42).

    A hub that was stopped is started again whatever happens; one that does not start is a
    warning beside the receipt.
    """
    stopped = _stop(paths) if wanted and places.is_hub else None
    try:
        receipt = work()
    except BaseException as error:
        if isinstance(error, TfxError):
            stores.remember(paths, error.details.get("backup_directory"))
        if stopped is not None:
            _start(paths, stopped)
        raise
    stores.remember(paths, receipt.backup_directory)
    problem = None if stopped is None else _start(paths, stopped)
    if problem is None:
        return Result(receipt)
    return Result(receipt, Status.WARNING, (problem,))


def _stop(paths: Paths) -> RunWishes | None:
    """Stop a running hub; return what it was started with, or None when none ran."""
    try:
        ended = stop.stop(paths)
    except OperationFailed as error:
        raise AgentUnavailable(
            f"the hub did not stop: {error.message}", code="hub-unresponsive", hint=error.hint
        ) from error
    if ended.step is stop.Step.NOTHING:
        return None
    recorded = ended.before.recorded
    return RunWishes() if recorded is None else recorded.wishes


def _start(paths: Paths, wishes: RunWishes) -> Problem | None:
    try:
        launch.start(paths, wishes)
    except TfxError as error:
        told = Problem.of(error)
        return replace(
            told, message=f"the hub was stopped and does not start again: {told.message}"
        )
    return None


def _look(
    paths: Paths, places: Places, options: Options, source: Path | None, told: Told
) -> Receipt:
    if places.is_hub and source is None:
        seen = probe.probe(paths)
        if seen.state is HubState.RUNNING:
            return _running(places, seen)
    if source is None:
        _refuse_missing(paths, places.database)
    task = Task.CHECK if options.check else Task.REHEARSE
    return run.run(paths, places.request(task, source), told)


def _looked(options: Options, found: Receipt) -> Result[Receipt]:
    """Return what a look found; with --check something pending is a failure, for scripts."""
    if options.check and found.pending is not None:
        return Result(found, Status.FAILED)
    return Result(found)


def _running(places: Places, seen: probe.Probe) -> Receipt:
    """Answer beside a running hub: it is at its own version, by program and by schema (K-46)."""
    version = None if seen.recorded is None else seen.recorded.version
    if version != __version__:
        raise StateConflict(
            f"a hub of tfx {version} is running; this is tfx {__version__}",
            code="hub-running",
            hint="tfx hub stop",
        )
    schema = seen.status.get("schema")
    found = schema.get("version") if isinstance(schema, dict) else None
    if found != registry.CURRENT:
        raise StateConflict(
            f"an older hub is running on schema {found}; this program's is {registry.CURRENT}",
            code="hub-running",
            hint="tfx upgrade --stop-hub",
        )
    return Receipt(
        state=State.CURRENT,
        database=str(places.database),
        from_version=registry.CURRENT,
        to_version=registry.CURRENT,
        from_schema_hash=registry.HASHES[registry.CURRENT],
        to_schema_hash=registry.HASHES[registry.CURRENT],
        notes=("the hub is running on it",),
    )


def _agreed(paths: Paths, places: Places, told: Told, ask: Ask) -> bool:
    """Put the question only when there is something to do."""
    if places.is_hub and probe.probe(paths).state is HubState.RUNNING:
        return True  # the worker refuses, or --stop-hub was said
    found = run.run(paths, places.request(Task.CHECK), told)
    return found.pending is None or ask(found)


def _source(paths: Paths, options: Options) -> Path | None:
    if options.adopt is None:
        return None
    if options.adopt != AUTO:
        return real(Path(options.adopt))
    source = paths.home / TRIFLUX_DATABASE
    if not source.exists():
        raise NotFound(
            f"there is no triflux database at {source}",
            code="no-triflux",
            hint="name one with --adopt PATH",
            details={"path": str(source)},
        )
    return real(source)


def _refuse_missing(paths: Paths, database: Path) -> None:
    """Refuse before the worker makes a lock file beside nothing (U-112)."""
    if not database.exists() and not database.is_symlink():
        adoptable = files.is_file(paths.home / TRIFLUX_DATABASE)
        raise NotFound(
            f"there is no hub database at {database}",
            code="no-database",
            hint="tfx upgrade --adopt auto" if adoptable else "tfx hub start",
            details={"path": str(database)},
        )


@contextlib.contextmanager
def phased() -> Iterator[None]:
    """Give an error of the parent the details that the worker's errors have (U-23)."""
    try:
        yield
    except TfxError as error:
        error.details.setdefault("phase", Phase.OPTIONS.value)
        error.details.setdefault("backup_directory", None)
        raise
