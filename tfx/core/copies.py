"""Copy databases page by page, and ask SQLite whether one is sound.

Knows nothing of schemas or of what the rows mean; `database` opens the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tfx.core.database import Connection, closing, errors_typed, open_target
from tfx.errors import OperationFailed

_FOREIGN_KEYS_SHOWN = 20


def backup(
    source: Connection,
    target: Connection,
    *,
    progress: Callable[[int, int], None] | None = None,
    pages: int = 2_048,
) -> None:
    """Copy a whole database by the backup API; `progress` gets pages done and in total."""
    with errors_typed():
        copy = target.backup("main", source, "main")
        try:
            while not copy.done:
                copy.step(pages)
                if progress is not None:
                    progress(copy.page_count - copy.remaining, copy.page_count)
        except BaseException:
            # not as a context manager: apsw's fails when the rollback of the target does
            copy.close(True)  # noqa: FBT003  (force: apsw takes it by position)
            raise
        copy.finish()


def copy_into(
    source: Connection,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    vfs: str | None = None,
) -> None:
    """Copy a database page by page into an existing empty file, in rollback mode (U-50).

    Not synced: the caller does that once. The copy inherits the header's WAL flag, which is taken
    back here.
    """
    target = open_target(path, vfs)
    with closing(target, str(path)):
        target.pragma("journal_mode", "OFF")
        target.pragma("synchronous", "OFF")
        backup(source, target, progress=progress)
    again = open_target(path, vfs)
    with closing(again, str(path)):
        again.pragma("locking_mode", "EXCLUSIVE")
        again.pragma("journal_mode", "DELETE")


def read_bytes(connection: Connection, offset: int, amount: int) -> bytes:
    """Read bytes of the main file through its own connection: another open would drop its lock."""
    complete, data = connection.read("main", 0, offset, amount)
    if not complete:
        raise OperationFailed(f"the database ends before byte {offset + amount}", code="io")
    return data


def quick_check(connection: Connection) -> list[str]:
    """Return what `quick_check` finds wrong; empty means sound."""
    with errors_typed():
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
    return [] if found == ["ok"] else found


def integrity_check(connection: Connection, table: str | None = None) -> list[str]:
    """Return what `integrity_check` finds wrong, in one table with its indexes or everywhere."""
    wanted = "20" if table is None else f"'{table}'"
    with errors_typed():
        found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({wanted})")]
    return [] if found == ["ok"] else found


def foreign_key_check(connection: Connection) -> list[str]:
    """Return `table/rowid -> parent` of rows whose parent is missing, at most 20."""
    found: list[str] = []
    with errors_typed():
        for table, rowid, parent, _ in connection.execute("PRAGMA foreign_key_check"):
            found.append(f"{table}/{rowid} -> {parent}")
            if len(found) == _FOREIGN_KEYS_SHOWN:
                break
    return found
