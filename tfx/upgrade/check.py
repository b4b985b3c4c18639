"""Whether a backup file is what its manifest says, and whether it equals a live database.

Reads only; a file that fails its digest is never opened as a database (U-77).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import copies, database
from tfx.errors import OperationFailed
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import inspect
from tfx.upgrade.ground import os_errors

if TYPE_CHECKING:
    from tfx.core.database import Connection
    from tfx.upgrade.inspect import Seen

BLOCK: Final = 1 << 20
_MOVING: Final = ((24, 28), (40, 44), (92, 100))
"""Bytes of the header that a copy does not share: change counters, schema cookie, version."""
_HEADER: Final = 100
_RULES: Final = ("CHECK constraint failed in ", "NULL value in ")
Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a sound backup file holds."""

    sha256: str
    size: int
    schema_hash: str
    version: int | None
    rows: dict[str, int]


def sha256_of(path: Path, tell: Tell | None = None) -> tuple[str, int]:
    """Return the digest and the size of a file."""
    digest = hashlib.sha256()
    done = 0
    with os_errors(path), path.open("rb") as file:
        total = path.stat().st_size
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            if tell is not None:
                tell(done, total)
    return digest.hexdigest(), done


def examine(path: Path, expected: str | None, tell: Tell | None = None) -> Checked:
    """Check one database file from its digest to its last index.

    A file of a known digest is opened only when it has that one (U-77); the digest of a new one is
    taken beside the checks (U-117). Raises OperationFailed `backup-changed` for another digest than
    expected and `corrupt` for what SQLite finds wrong.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="hash") as pool:
        hashing = pool.submit(sha256_of, path, tell)
        if expected is not None:
            _refuse_other(path, hashing.result()[0], expected)
        with database.errors_typed(str(path)):
            connection = database.open_reading(path, immutable=True)
            with database.closing(connection):
                connection.pragma("cache_size", -inspect.CACHE_KIB)
                seen = inspect.look(connection)
                wrong = damage(copies.integrity_check(connection), seen)
                wrong = wrong or ([] if _is_first(seen) else copies.foreign_key_check(connection))
                rows = {} if wrong else inspect.count_rows(connection)
        sha256, size = hashing.result()
    if wrong:
        raise OperationFailed(
            f"{path} is damaged: {wrong[0]}",
            code="corrupt",
            hint="tfx backup list",
            details={"path": str(path), "found": list(wrong)},
        )
    known = seen.judgement.verdict not in {Verdict.UNKNOWN, Verdict.TAMPERED, Verdict.EMPTY}
    version = seen.judgement.version if known else None
    return Checked(sha256, size, seen.identity.schema_hash, version, rows)


def _refuse_other(path: Path, sha256: str, expected: str) -> None:
    if sha256 != expected:
        raise OperationFailed(
            f"{path} is not the file that was backed up: its SHA-256 differs",
            code="backup-changed",
            hint="tfx backup list",
            details={"path": str(path), "sha256": sha256, "expected": expected},
        )


def examine_beside(
    live: Connection, copy: Path, examine: Callable[[Path], Checked]
) -> tuple[Checked, bool]:
    """Have a copy examined and, meanwhile, compare it with the locked database (U-51, U-117).

    An interrupt ends both.
    """
    stopped = threading.Event()

    def stop_when_asked(done: int, total: int) -> None:
        if stopped.is_set():
            raise OperationFailed(f"given up after {done} of {total} bytes", code="given-up")

    with ThreadPoolExecutor(1, thread_name_prefix="compare") as pool:
        comparing = pool.submit(same_content, live, copy, stop_when_asked)
        try:
            checked = examine(copy)
        except BaseException:
            stopped.set()
            raise
        return checked, comparing.result()


def damage(found: list[str], seen: Seen) -> list[str]:
    """Return what is damage: rows of version 1 that break a rule are only left out (K-37)."""
    if not _is_first(seen):
        return found
    return [each for each in found if not each.startswith(_RULES)]


def _is_first(seen: Seen) -> bool:
    return seen.judgement.verdict is Verdict.OLDER and seen.judgement.version == 1


def same_content(live: Connection, copy: Path, tell: Tell | None = None) -> bool:
    """Compare every byte of a locked database with a copy, counters in the header aside (U-51).

    The live file is read through its own connection: opening it would drop its lock (U-62).
    """
    size = inspect.size_of(live)
    with os_errors(copy), copy.open("rb") as file:
        if copy.stat().st_size != size:
            return False
        for offset in range(0, size, BLOCK):
            amount = min(BLOCK, size - offset)
            with database.errors_typed():
                ours = copies.read_bytes(live, offset, amount)
            theirs = file.read(amount)
            if offset == 0:
                ours, theirs = _still(ours), _still(theirs)
            if ours != theirs:
                return False
            if tell is not None:
                tell(offset + amount, size)
    return True


def _still(block: bytes) -> bytes:
    header = bytearray(block[:_HEADER])
    for start, end in _MOVING:
        header[start:end] = bytes(end - start)
    return bytes(header) + block[_HEADER:]
