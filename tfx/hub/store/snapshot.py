"""A copy of the database as it is at one moment, into an empty file that its caller made.

Knows no running hub: it reads on a connection of its own, so writes go on meanwhile.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from tfx.core import copies, database
from tfx.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from pathlib import Path


def copy_into(source: Path, vfs: str | None, path: Path) -> tuple[int, int]:
    """Copy a database; return the bytes of the copy and the last seq it holds.

    Raises NotFound for a missing target, InvalidRequest `not-empty` for one that is no empty file
    of the user's.
    """
    try:
        found = path.lstat()
    except OSError as error:
        raise NotFound(f"there is no file at {path}", details={"path": str(path)}) from error
    if not stat.S_ISREG(found.st_mode) or found.st_size or found.st_uid != os.geteuid():
        raise InvalidRequest(f"{path} is not an empty file of yours", code="not-empty")
    connection = database.open_reader(source, vfs=vfs)
    try:
        with database.errors_typed(str(path)), database.Snapshot(connection):
            row = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchall()[0]
            copies.copy_into(connection, path)
    finally:
        connection.close()
    return path.stat().st_size, int(row[0] or 0)
