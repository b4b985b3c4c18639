"""Open SQLite files, run transactions, back up: the only door to `apsw`.

Knows nothing of schemas or of what the rows mean.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

import apsw

from tfx.core.files import is_special
from tfx.core.forks import guard_forks
from tfx.errors import AccessDenied, NotFound, OperationFailed, StateConflict, TfxError

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Value, ...]
Connection: TypeAlias = apsw.Connection
Error: TypeAlias = apsw.Error
ConstraintError: TypeAlias = apsw.ConstraintError
InterruptError: TypeAlias = apsw.InterruptError
Vfs: TypeAlias = apsw.VFS
VfsFile: TypeAlias = apsw.VFSFile

OLDEST_SQLITE: Final = (3, 51, 3)
"""Older ones may corrupt a WAL that two connections reset at once (EV-S10)."""

_BUSY_TIMEOUT_MS = 5_000
_READ_ONLY_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_EXRESCODE
_WRITE_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_EXRESCODE | apsw.SQLITE_OPEN_NOFOLLOW

_CODES: Final[tuple[tuple[type[Exception], type[TfxError], str, str], ...]] = (
    (apsw.FullError, OperationFailed, "disk-full", "the disk is full"),
    (apsw.NotADBError, StateConflict, "not-a-database", "the file is not an SQLite database"),
    (apsw.CorruptError, OperationFailed, "corrupt", "the database is damaged"),
    (apsw.BusyError, StateConflict, "busy", "another process holds the database"),
    (apsw.LockedError, StateConflict, "busy", "another connection holds the table"),
    (apsw.ReadOnlyError, AccessDenied, "read-only", "the database cannot be written"),
    (apsw.CantOpenError, OperationFailed, "cannot-open", "the database cannot be opened"),
    (apsw.PermissionsError, AccessDenied, "no-permission", "the database may not be accessed"),
    (apsw.AuthError, AccessDenied, "no-permission", "the database may not be accessed"),
    (apsw.IOError, OperationFailed, "io", "reading or writing the database failed"),
    (apsw.NoMemError, OperationFailed, "no-memory", "there is no memory left"),
)

_DAMAGED: Final = "tfx doctor 'db.*' says more; tfx backup list shows what can be restored"


def sqlite_version() -> str:
    """Return the version of the linked SQLite."""
    return apsw.sqlite_lib_version()


def error_of(error: Exception, path: str = "") -> TfxError:
    """Return the typed error for what SQLite reported; never holds values of rows."""
    where = f": {path}" if path else ""
    details = {"sqlite": type(error).__name__} | ({"path": path} if path else {})
    for kind, wanted, code, what in _CODES:
        if isinstance(error, kind):
            hint = _DAMAGED if code == "corrupt" else None
            return wanted(f"{what}{where} ({error})", code=code, hint=hint, details={**details})
    return OperationFailed(f"SQLite reports {error}{where}", code="storage", details={**details})


@contextlib.contextmanager
def errors_typed(path: str = "") -> Iterator[None]:
    """Turn what SQLite raises inside into TfxError."""
    try:
        yield
    except apsw.Error as error:
        raise error_of(error, path) from error


def open_writer(
    path: Path, *, create: bool = False, synchronous: str = "NORMAL", vfs: str | None = None
) -> Connection:
    """Open the one write connection of a database in WAL mode.

    With `create` an absent file is made with `auto_vacuum=INCREMENTAL` (H-74). Checkpoints are
    the caller's own (EV-S5). Raises NotFound, or what `error_of` returns.
    """
    _refuse_old_sqlite()
    guard_forks(_opened)
    if not create and not path.exists():
        raise NotFound(f"there is no database at {path}", details={"path": str(path)})
    flags = _WRITE_FLAGS | (apsw.SQLITE_OPEN_CREATE if create else 0)
    with errors_typed(str(path)):
        connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
        try:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            if connection.pragma("page_count") == 0:
                connection.pragma("auto_vacuum", "INCREMENTAL")
            connection.pragma("journal_mode", "WAL")
            _prepare(connection)
            connection.pragma("synchronous", synchronous)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: Path, *, vfs: str | None = None) -> Connection:
    """Open a connection beside a writer in this process that can only read (EV-S2)."""
    _refuse_old_sqlite()
    guard_forks(_opened)
    with errors_typed(str(path)):
        flags = _WRITE_FLAGS
        connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
        try:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            _prepare(connection)
            connection.pragma("query_only", value=True)
        except BaseException:
            connection.close()
            raise
    return connection


def open_inspector(path: Path) -> Connection:
    """Open a file for looking only: immutable when no WAL lies beside it (K-22).

    Neither the file nor its neighbours change; with a WAL there SQLite may make a `-shm`.
    """
    if not path.exists():
        raise NotFound(f"there is no database at {path}", details={"path": str(path)})
    _refuse_special(path)
    place = uri(path, "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1")
    with errors_typed(str(path)):
        return apsw.Connection(place, flags=_READ_ONLY_FLAGS)


def open_memory() -> Connection:
    """Open an empty database in memory, prepared like a writer."""
    connection = apsw.Connection(":memory:")
    _prepare(connection)
    return connection


def open_scratch() -> Connection:
    """Open an empty private database that spills to a temporary file and vanishes at close."""
    connection = apsw.Connection("")
    _prepare(connection)
    connection.pragma("temp_store", "FILE")
    connection.pragma("synchronous", "OFF")
    connection.pragma("journal_mode", "MEMORY")
    return connection


def open_alone(path: Path, *, vfs: str | None = None) -> Connection:
    """Open an existing file so that nobody else can use it: exclusive locks, no waiting (U-46).

    Hot journals and a WAL of a crashed writer are recovered at the first read. URIs are allowed
    in ATTACH. Raises what `error_of` returns.
    """
    _refuse_old_sqlite()
    _refuse_special(path)
    with errors_typed(str(path)):
        connection = apsw.Connection(str(path), flags=_WRITE_FLAGS | apsw.SQLITE_OPEN_URI, vfs=vfs)
        connection.set_busy_timeout(0)
        connection.pragma("locking_mode", "EXCLUSIVE")
        connection.pragma("trusted_schema", value=False)
    return connection


def open_reading(path: Path, *, immutable: bool) -> Connection:
    """Open a file read-only: `immutable` ignores its neighbours, else its WAL is read (U-84)."""
    _refuse_old_sqlite()
    _refuse_special(path)
    place = uri(path, "immutable=1" if immutable else "mode=ro")
    with errors_typed(str(path)):
        connection = apsw.Connection(place, flags=_READ_ONLY_FLAGS)
        connection.set_busy_timeout(0)
        connection.pragma("trusted_schema", value=False)
    return connection


def open_target(path: Path, vfs: str | None = None) -> Connection:
    """Open an existing file to be filled, without WAL or anything else set."""
    return apsw.Connection(str(path), flags=_WRITE_FLAGS, vfs=vfs)


@contextlib.contextmanager
def closing(connection: Connection, path: str = "") -> Iterator[None]:
    """Close a connection at the end; what failed inside is not hidden by a close that fails too."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(apsw.Error):
            connection.close(True)  # noqa: FBT003  (force: apsw takes it by position)
        raise
    with errors_typed(path):
        connection.close()


def _refuse_special(path: Path) -> None:
    """Refuse a FIFO, which would be waited for, and whatever else is no file (D-24)."""
    if is_special(path):
        what = f"{path} is no file, so it is no database"
        raise OperationFailed(what, code="not-a-file", details={"path": str(path)})


def uri(path: Path, query: str) -> str:
    """Return a path as SQLite's URI, whatever characters it has."""
    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{query}"


def add_function(
    connection: Connection, name: str, function: Callable[..., Value], arguments: int
) -> None:
    """Make a pure function callable from SQL on this connection."""
    connection.create_scalar_function(name, function, arguments, deterministic=True)


def on_progress(connection: Connection, call: Callable[[], None], steps: int = 200_000) -> None:
    """Call back after so many steps of SQLite's machine; an exception ends the statement."""

    def handler() -> bool:
        call()
        return False

    connection.set_progress_handler(handler, steps)


class Transaction:
    """`with Transaction(connection):` is BEGIN IMMEDIATE … COMMIT, or ROLLBACK on any exception.

    The only place where a transaction begins (EV-S3).
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise
        else:
            self._rollback()

    def _rollback(self) -> None:
        # SQLite has rolled back by itself after some I/O errors; then there is nothing to end.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class ExclusiveTransaction(Transaction):
    """The same with BEGIN EXCLUSIVE: on a connection of `open_alone` nobody else reads either."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")


class Snapshot:
    """`with Snapshot(connection):` makes several reads see one state; ends it without a write."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN DEFERRED")

    def __exit__(self, *_: object) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def script(connection: Connection, text: str) -> None:
    """Run every statement of a schema text inside the caller's transaction (EV-S12, EV-M2)."""
    for _ in connection.execute(text):
        pass


def checkpoint(connection: Connection, *, truncate: bool) -> tuple[int, int]:
    """Checkpoint the WAL; return (frames in it, frames moved): fewer moved means a reader pins it.

    A pinned TRUNCATE does not raise (EV-S6): it moves what it can.
    """
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
    try:
        return connection.wal_checkpoint(mode=mode)
    except apsw.BusyError:
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def _prepare(connection: Connection) -> None:
    connection.wal_autocheckpoint(0)
    connection.pragma("recursive_triggers", value=True)
    connection.pragma("foreign_keys", value=True)
    connection.pragma("trusted_schema", value=False)
    connection.pragma("temp_store", "MEMORY")
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)


def _opened() -> list[str]:
    return [each.filename for each in apsw.connections() if each.filename]


def _refuse_old_sqlite() -> None:
    linked = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if linked < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise OperationFailed(
            f"SQLite {apsw.sqlite_lib_version()} is linked; {wanted} or newer is needed",
            code="old-sqlite",
            hint="pip install --upgrade apsw",
        )
