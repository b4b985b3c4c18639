"""Take over a triflux database: a copy goes through the protocol, the original is only read.

The destination gets its database in one step: by a link that replaces nothing, or by one
transaction into the file that is there (K-33, K-34, U-83, U-84).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import copies, database, files
from tfx.errors import StateConflict
from tfx.hub.schema import registry
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import backup, check, ground, inspect, manifest, protocol, space
from tfx.upgrade.ground import os_errors
from tfx.upgrade.manifest import Reason, Stage
from tfx.upgrade.model import Phase, Receipt

if TYPE_CHECKING:
    from tfx.upgrade.backup import Tools

_EMPTY: Final = ("messages", "human_requests", "tasks", "locks", "invocations")
"""A destination with rows in one of these is somebody's mail or work, and is kept (K-34)."""
COPIES: Final = 2.4


def adopt(source: Path, path: Path, tools: Tools) -> Receipt:
    """Bring a triflux database to `path`; the caller holds the destination's lock.

    Raises StateConflict for a destination with messages, a source that is no triflux database or
    has a hot journal, and what the protocol raises.
    """
    report = tools.report
    report.enter(Phase.INSPECT)
    _refuse_hot_journal(source)
    _refuse_leftovers(path)
    if path.exists():
        _refuse_messages(path, tools)
    partial = path.with_name(f".{path.name}.adopt.partial")
    _clean(partial)
    try:
        sha256 = _copy(source, partial, tools)
        receipt = protocol.upgrade(partial, tools, protocol.Label(Reason.ADOPT, path.stem, source))
        replaced = _publish(partial, path, tools)
        _done(receipt)
    finally:
        _clean(partial)
    adopted = receipt.adopted
    if adopted is not None:
        adopted = replace(adopted, source=str(source), source_sha256=sha256)
    notes = (f"what was at {path} is in {replaced}",) if replaced else ()
    return replace(
        receipt,
        database=str(path),
        adopted=adopted,
        notes=notes,
        phases=report.finished(),
    )


def _done(receipt: Receipt) -> None:
    directory = None if receipt.backup_directory is None else Path(receipt.backup_directory)
    found = None if directory is None else manifest.read(directory)
    if directory is not None and found is not None:
        backup.advance(backup.Backup(directory, found), Stage.DONE, Phase.PUBLISH)


def judge_source(source: Path) -> inspect.Seen:
    """Judge a source by what it holds, with the rows of its WAL; writes nothing to it (U-84).

    Raises StateConflict `not-triflux` with what differs for anything but version 1.
    """
    connection, _ = inspect.open_quietly(source)
    with database.closing(connection):
        seen = inspect.look(connection)
    if seen.judgement.verdict is Verdict.OLDER and seen.judgement.version == 1:
        return seen
    version = seen.judgement.version
    what = "holds no triflux database" if version is None else "is a database of tfx already"
    raise StateConflict(
        f"{source} {what}",
        code="not-triflux",
        hint="tfx upgrade --db PATH upgrades a database of tfx",
        details={"path": str(source), "differences": list(seen.judgement.differences[:50])},
    )


def _copy(source: Path, partial: Path, tools: Tools) -> str:
    report = tools.report
    seen = judge_source(source)
    with os_errors(source):
        size = sum(
            each.stat().st_size
            for each in (source, source.with_name(f"{source.name}-wal"))
            if each.exists()
        )
    report.enter(Phase.SPACE)
    space.refuse_when_short(space.needs(partial, tools.store, size, COPIES))
    report.enter(Phase.COPY)
    with os_errors(partial):
        files.write_new(partial, b"", files.PRIVATE_FILE)
    copy_quietly(source, partial, tools)
    copied = inspect.glance(partial)
    if copied is None or copied.identity.schema_hash != seen.identity.schema_hash:
        raise StateConflict(f"{source} changed while it was copied", code="changed")
    return check.sha256_of(partial, report.bytes)[0]


def copy_quietly(source: Path, target: Path, tools: Tools) -> None:
    """Copy one state of a database into an empty file; the source stays as it is (U-84).

    Raises StateConflict `changed` when somebody began to write it meanwhile.
    """
    report = tools.report
    before = _mark(source)
    with database.errors_typed(str(source)):
        connection, immutable = inspect.open_quietly(source)
        with database.closing(connection):
            page = int(str(connection.pragma("page_size")))
            copies.copy_into(
                connection,
                target,
                lambda done, total: report.bytes(done * page, total * page),
                tools.vfs,
            )
    if immutable and _mark(source) != before:
        raise StateConflict(
            f"{source} was opened by somebody while it was copied",
            code="changed",
            hint="run the command again",
        )


def _mark(source: Path) -> tuple[int, int, int, bool]:
    with os_errors(source):
        found = source.stat()
    beside = any(source.with_name(source.name + end).exists() for end in ground.COMPANIONS)
    return found.st_ino, found.st_size, found.st_mtime_ns, beside


def _publish(partial: Path, path: Path, tools: Tools) -> str | None:
    """Put the finished copy in its place; return the backup of what was there, if anything."""
    tools.report.enter(Phase.PUBLISH)
    with os_errors(partial):
        files.fsync_file(partial)
    if not path.exists():
        _refuse_leftovers(path)
        with os_errors(path):
            os.link(partial, path, follow_symlinks=False)
            partial.unlink()
            files.fsync_dir(path.parent)
        return None
    connection, mode = inspect.seize(path, tools.vfs)
    with database.closing(connection):
        _refuse_rows(inspect.count_rows(connection), path)
        made = _back_up_replaced(connection, path, mode, tools)
        tools.report.enter(Phase.PUBLISH)
        write_into(partial, connection, path, tools)
    return str(made.directory)


def write_into(source: Path, live: database.Connection, path: Path, tools: Tools) -> None:
    """Replace the content of a locked database by that of a file, in one transaction (U-82)."""
    live.pragma("synchronous", "EXTRA")
    with database.errors_typed(str(path)):
        copy = database.open_reading(source, immutable=True)
        with database.closing(copy):
            page = int(str(copy.pragma("page_size")))
            copies.backup(
                copy,
                live,
                progress=lambda done, total: tools.report.bytes(done * page, total * page),
            )
        wrong = copies.integrity_check(live)
    if wrong or not check.same_content(live, source):
        raise StateConflict(f"{path} is not what was written to it", code="not-proven")


def _back_up_replaced(
    connection: database.Connection, path: Path, mode: str, tools: Tools
) -> backup.Backup:
    wanted = backup.Wanted(
        source=path,
        name=path.stem,
        seen=inspect.look(connection),
        reason=Reason.REPLACED,
        journal_mode=mode,
        to_version=registry.CURRENT,
        to_hash=registry.HASHES[registry.CURRENT],
        now_ms=tools.now_ms,
    )
    tools.report.enter(Phase.BACKUP)
    return backup.make(connection, tools, wanted)


def _refuse_messages(path: Path, tools: Tools) -> None:
    ground.check_database(path)
    inspect.refuse_early(path)
    connection, _ = inspect.seize(path, tools.vfs)
    with database.closing(connection):
        seen = inspect.look(connection)
        if seen.judgement.verdict is Verdict.EMPTY:
            return
        inspect.refuse(seen, path)
        _refuse_rows(inspect.count_rows(connection), path)


def _refuse_rows(rows: dict[str, int], path: Path) -> None:
    found = {table: rows[table] for table in _EMPTY if rows.get(table)}
    if found:
        raise StateConflict(
            f"{path} holds mail or work already ({', '.join(found)}); an adoption would replace it",
            code="not-empty",
            hint="name another file with --db, or move this one away",
            details={"path": str(path), "rows": {**found}},
        )


def _refuse_leftovers(path: Path) -> None:
    if path.exists():
        return
    left = [p for end in ground.COMPANIONS if (p := path.with_name(path.name + end)).exists()]
    if left:
        raise StateConflict(
            f"{left[0]} lies there without its database",
            code="leftover-journal",
            hint=f"move {left[0]} away",
            details={"path": str(left[0])},
        )


def _refuse_hot_journal(source: Path) -> None:
    journal = source.with_name(f"{source.name}-journal")
    with os_errors(source):
        hot = journal.exists() and journal.stat().st_size > 0
    if hot:
        raise StateConflict(
            f"a writer of {source} is in the middle of a change, or died there: {journal.name}"
            " must be finished or rolled back first, which changes the original",
            code="hot-journal",
            hint="start triflux once, or adopt a copy of the database together with its journal"
            " after opening it with sqlite3",
            details={"path": str(journal)},
        )


def _clean(partial: Path) -> None:
    for end in ("", *ground.COMPANIONS):
        with contextlib.suppress(OSError):
            partial.with_name(partial.name + end).unlink()
