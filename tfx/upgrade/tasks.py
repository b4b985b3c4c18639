"""What the worker can be asked to do: each task from its request to its receipt.

Takes the lock; knows neither the pipe nor the parent.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.core import clock, database, files
from tfx.errors import InvalidRequest, NotFound
from tfx.hub.schema import registry
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import adopt, backup, check, ground, inspect, protocol, restore, space
from tfx.upgrade.backup import Tools
from tfx.upgrade.ground import os_errors
from tfx.upgrade.manifest import Reason, Stage
from tfx.upgrade.model import Adopted, Phase, Receipt, Request, RowCount, State, Task

if TYPE_CHECKING:
    from tfx.upgrade.backup import Examine
    from tfx.upgrade.reporter import Reporter

_PRIVATE_UMASK: Final = 0o077


def run(
    request: Request, report: Reporter, examine: Examine, home: Path, vfs: str | None = None
) -> Receipt:
    """Do one task; `examine` checks a backup file, in a process of its own when it matters."""
    os.umask(_PRIVATE_UMASK)
    now_ms = clock.SystemClock().now_ms() if request.now_ms is None else request.now_ms
    path = ground.absolute(request.database, "the database")
    store = ground.absolute(request.store, "the backup directory")
    root = ground.absolute(request.root, "the state root")
    if request.task is Task.VERIFY:
        return _verify(request, report)
    ground.check_store(store)
    ground.check_apart(store, root, home)
    if request.file is None:
        ground.check_database(path)
    _make_parent(path, request.task)
    ground.check_directory(path.parent)
    tools = Tools(store, report, examine, now_ms, vfs)
    report.enter(Phase.COORDINATE)
    if request.task is Task.CHECK:
        return _check(path, tools)
    with ground.locked(path, request.task.value):
        return _TASKS[request.task](path, request, tools)


def _upgrade(path: Path, request: Request, tools: Tools) -> Receipt:
    receipt = protocol.upgrade(path, tools)
    if receipt.state is State.UPGRADED:
        backup.thin(tools.store, request.keep, path)
    return receipt


def _adopt(path: Path, request: Request, tools: Tools) -> Receipt:
    source = _file(request, "the database to adopt")
    ground.check_database(source)
    if path.exists() and source.samefile(path):
        raise InvalidRequest(
            f"{source} is the hub's own database", code="same-file", hint="tfx upgrade"
        )
    return adopt.adopt(source, path, tools)


def _back_up(path: Path, request: Request, tools: Tools) -> Receipt:
    del request
    report = tools.report
    report.enter(Phase.LIVENESS)
    connection, mode = inspect.seize(path, tools.vfs)
    with database.closing(connection):
        report.enter(Phase.IDENTITY)
        seen = inspect.look(connection)
        size = inspect.size_of(connection)
        report.enter(Phase.SPACE)
        space.refuse_when_short(space.needs(path, tools.store, size, 0))
        wanted = backup.Wanted(path, path.stem, seen, Reason.MANUAL, mode, None, None, tools.now_ms)
        made = backup.ensure(connection, tools, wanted)
        if mode == "wal":
            with database.errors_typed(str(path)):
                connection.pragma("journal_mode", "WAL")
    made = backup.advance(made, Stage.DONE, Phase.CONFIRM)
    return Receipt(
        state=State.BACKED_UP,
        database=str(path),
        from_version=seen.judgement.version,
        from_schema_hash=seen.identity.schema_hash,
        backup_directory=str(made.directory),
        backup_sha256=made.manifest.sha256,
        bytes_before=size,
        phases=report.finished(),
    )


def _restore(path: Path, request: Request, tools: Tools) -> Receipt:
    directory = _file(request, "the backup")
    restore.kept(directory)
    fresh = not path.exists()
    if fresh:
        with os_errors(path):
            files.write_new(path, b"", files.PRIVATE_FILE)
    try:
        ground.check_database(path)
        return restore.restore(directory, path, tools)
    except BaseException:
        if fresh and path.stat().st_size == 0:
            path.unlink()
        raise


def _rehearse(path: Path, request: Request, tools: Tools) -> Receipt:
    """Run the whole protocol on a copy that is deleted afterwards (U-17)."""
    source = path if request.file is None else _file(request, "the database to adopt")
    inner = path.with_name(f".{path.name}.rehearsal-{os.getpid()}")
    with _scratch(inner):
        copy = inner / source.name
        with os_errors(copy):
            files.write_new(copy, b"", files.PRIVATE_FILE)
        tools.report.enter(Phase.COPY)
        adopt.copy_quietly(source, copy, replace(tools, vfs=None))
        factor = protocol.factor_at(copy)
        own = inner / "backups"
        receipt = protocol.upgrade(copy, replace(tools, store=own))
    state = State.REHEARSED if receipt.state is State.UPGRADED else receipt.state
    adopted = receipt.adopted
    if adopted is not None and request.file is not None:
        adopted = replace(adopted, source=str(source))
    return replace(
        receipt,
        state=state,
        database=str(path),
        backup_directory=None,
        backup_sha256=None,
        adopted=adopted,
        space=space.needs(path, tools.store, source.stat().st_size, factor),
    )


def _check(path: Path, tools: Tools) -> Receipt:
    """Say what an upgrade would meet: identity, rows, space; writes nothing (U-18)."""
    report = tools.report
    report.enter(Phase.INSPECT)
    connection, _ = inspect.open_quietly(path)
    with database.closing(connection):
        report.enter(Phase.IDENTITY)
        seen = inspect.look(connection)
        inspect.refuse(seen, path)
        size = inspect.size_of(connection)
        report.enter(Phase.PREFLIGHT)
        left_out = protocol.preflight(connection, seen)
        rows = inspect.count_rows(connection)
        factor = protocol.factor_of(connection, seen)
    verdict = seen.judgement.verdict
    report.enter(Phase.SPACE)
    pending = None if verdict is Verdict.CURRENT else verdict.value
    spaces = () if pending is None else space.needs(path, tools.store, size, factor)
    adopted = None
    if verdict is Verdict.OLDER and seen.judgement.version == 1:
        extras = {table: rows[table] for table in seen.judgement.extras}
        adopted = Adopted(None, None, {}, left_out, extras, {}, None, 0)
    return Receipt(
        state=State.CURRENT if pending is None else State.CHECKED,
        database=str(path),
        from_version=seen.judgement.version,
        to_version=registry.CURRENT,
        from_schema_hash=seen.identity.schema_hash,
        to_schema_hash=registry.HASHES[registry.CURRENT],
        bytes_before=size,
        adopted=adopted,
        space=spaces,
        pending=pending,
        phases=report.finished(),
    )


def _verify(request: Request, report: Reporter) -> Receipt:
    """Check one database file; its path may be a partial one. Reads only (U-77)."""
    file = _file(request, "the file to verify")
    report.enter(Phase.VERIFY_BACKUP)
    checked = check.examine(file, request.sha256, report.bytes)
    return Receipt(
        state=State.VERIFIED,
        database=str(file),
        from_version=checked.version,
        from_schema_hash=checked.schema_hash,
        backup_sha256=checked.sha256,
        rows={table: RowCount(number, number) for table, number in checked.rows.items()},
        bytes_before=checked.size,
        phases=report.finished(),
    )


def _file(request: Request, what: str) -> Path:
    if request.file is None:
        raise InvalidRequest(f"{what} is not named", code="bad-request")
    path = ground.absolute(request.file, what)
    if not path.exists():
        raise NotFound(f"there is nothing at {path}", details={"path": str(path)})
    return path


@contextlib.contextmanager
def _scratch(directory: Path) -> Iterator[None]:
    with os_errors(directory):
        directory.mkdir(mode=files.PRIVATE_DIR)
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _make_parent(path: Path, task: Task) -> None:
    if task in {Task.ADOPT, Task.RESTORE} or not path.parent.exists():
        with os_errors(path.parent):
            files.make_store(path.parent)


_TASKS: Final[Mapping[Task, Callable[[Path, Request, Tools], Receipt]]] = MappingProxyType(
    {
        Task.UPGRADE: _upgrade,
        Task.REHEARSE: _rehearse,
        Task.ADOPT: _adopt,
        Task.BACKUP: _back_up,
        Task.RESTORE: _restore,
    }
)
