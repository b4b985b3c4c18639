"""Steps 2 to 4: look at a database, make it ours alone, say what it is (U-46 … U-48).

Writes nothing but SQLite's own recovery and the journal mode in the header.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import database
from tfx.core.files import read_plain
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.schema import registry
from tfx.hub.schema.identity import Identity, identify
from tfx.hub.schema.registry import Judgement, Verdict
from tfx.upgrade.ground import COMPANIONS, os_errors

if TYPE_CHECKING:
    from tfx.core.database import Connection

_MODE_AT: Final = 18
_WAL_MODE: Final = b"\x02"
"""The header's read version: 2 stands for WAL."""
WORKABLE: Final = frozenset({Verdict.CURRENT, Verdict.OLDER, Verdict.OTHER_FOLD})
CACHE_KIB: Final = 48 * 1024
VACUUM_CACHE_KIB: Final = 8 * 1024
"""VACUUM has a second database with a cache of the same size (U-12)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a database is."""

    identity: Identity
    judgement: Judgement

    @property
    def fold(self) -> int | None:
        """The fold version its stamp names."""
        return None if self.identity.stamp is None else self.identity.stamp.fold_version


def glance(path: Path) -> Seen | None:
    """Judge a file without any lock or write; None when a journal or WAL lies beside it."""
    if any(path.with_name(path.name + end).exists() for end in COMPANIONS):
        return None
    with database.errors_typed(str(path)):
        connection = database.open_reading(path, immutable=True)
        with database.closing(connection):
            return look(connection)


def refuse_early(path: Path) -> None:
    """Refuse a file beside which a WAL lies before it is made ours, which would fold it (EV-M3).

    One that somebody else works on is left to `seize`, which names who.
    """
    names = [end for end in COMPANIONS if path.with_name(path.name + end).exists()]
    if "-wal" not in names or "-journal" in names:
        return
    try:
        connection = database.open_reading(path, immutable=False)
        with database.closing(connection):
            seen = look(connection)
    except StateConflict as error:
        if error.reason != "busy":
            raise
        return
    if seen.judgement.verdict is not Verdict.EMPTY:
        refuse(seen, path)


def open_quietly(path: Path) -> tuple[Connection, bool]:
    """Open a database so that neither it nor its neighbours change (U-84).

    A database in WAL mode without `-wal` and `-shm` is open nowhere: it is read as immutable,
    for SQLite would make both. Any other is read under SQLite's own locks. Returns whether it is
    immutable: then the caller must see that the file stayed the same.
    """
    alone = not any(path.with_name(path.name + end).exists() for end in COMPANIONS)
    immutable = alone and _is_wal(path)
    return database.open_reading(path, immutable=immutable), immutable


def _is_wal(path: Path) -> bool:
    with os_errors(path):
        return read_plain(path, _MODE_AT + 1)[_MODE_AT:] == _WAL_MODE


def look(connection: Connection) -> Seen:
    """Judge what a connection sees."""
    with database.errors_typed():
        identity = identify(connection)
    return Seen(identity, registry.judge(identity))


def refuse(seen: Seen, path: Path) -> None:
    """Raise StateConflict unless the database is one to work on (U-48, U-100, U-101)."""
    if seen.judgement.verdict in WORKABLE:
        return
    registry.refuse_unless_current(seen.identity, str(path))
    raise OperationFailed(f"{path} was judged in two ways", code="storage")


def seize(path: Path, vfs: str | None = None) -> tuple[Connection, str]:
    """Open a database so that it is ours alone until the connection closes (U-47, U-64, U-65).

    Returns the connection and the journal mode it was found in. Raises StateConflict `in-use`
    naming the process that has it open, where that can be seen.
    """
    connection = database.open_alone(path, vfs=vfs)
    try:
        with database.errors_typed(str(path)):
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            mode = str(connection.pragma("journal_mode"))
            _leave_wal(connection, path, mode)
            with database.ExclusiveTransaction(connection):
                pass
    except StateConflict as error:
        connection.close()
        if error.reason != "busy":
            raise
        raise _in_use(path) from error
    except BaseException:
        connection.close()
        raise
    connection.pragma("cache_size", -CACHE_KIB)
    return connection, mode


def _leave_wal(connection: Connection, path: Path, mode: str) -> None:
    if connection.pragma("journal_mode", "DELETE") != "delete":
        raise OperationFailed(f"{path} stays in journal mode {mode}", code="storage")


def users_of(path: Path, table: Path = Path("/proc/locks")) -> list[int]:
    """Return the processes that hold a POSIX lock on a database, as the kernel lists them.

    Opening the file to ask would drop our own locks (U-62); the kernel's table needs no open.
    """
    wanted = set()
    for each in (path, path.with_name(f"{path.name}-shm")):
        try:
            status = each.stat()
        except OSError:
            continue
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        wanted.add(f"{device}:{status.st_ino}")
    try:
        lines = table.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
    found = set()
    for line in lines:
        words = line.replace("->", "").split()
        is_ours = len(words) > 5 and words[5] in wanted  # noqa: PLR2004  (the sixth column)
        if is_ours and words[1] == "POSIX" and int(words[4]) != os.getpid():
            found.add(int(words[4]))
    return sorted(found)


def count_rows(connection: Connection, tables: tuple[str, ...] | None = None) -> dict[str, int]:
    """Return the rows of every table that is not SQLite's own."""
    if tables is None:
        rows = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' "
            "ORDER BY name"
        )
        tables = tuple(str(name) for (name,) in rows)
    counts = {}
    for table in tables:
        quoted = table.replace('"', '""')
        for (number,) in connection.execute(f'SELECT count(*) FROM "{quoted}"'):  # noqa: S608
            counts[table] = int(number)
    return counts


def size_of(connection: Connection) -> int:
    """Return the bytes of the main database."""
    pages, size = connection.pragma("page_count"), connection.pragma("page_size")
    return int(str(pages)) * int(str(size))


def _in_use(path: Path) -> StateConflict:
    pids = users_of(path)
    who = f" by pid {', '.join(map(str, pids))}" if pids else ""
    return StateConflict(
        f"{path} is open{who}",
        code="in-use",
        hint="end what has it open, then run the command again",
        details={"path": str(path), "pids": list(pids)},
    )
