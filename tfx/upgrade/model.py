"""The words of an upgrade: phases, what a worker is asked, and the receipt it answers with.

Knows no file and no database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """Where a run is; every error names the one it happened in (U-23)."""

    OPTIONS = "options"
    COORDINATE = "coordinate"
    INSPECT = "inspect"
    LIVENESS = "liveness"
    IDENTITY = "identity"
    PREFLIGHT = "preflight"
    SPACE = "space"
    COPY = "copy"
    BACKUP = "backup"
    VERIFY_BACKUP = "verify-backup"
    PREPARE = "prepare"
    TRANSFORM = "transform"
    VERIFY = "verify"
    COMMIT = "commit"
    CONFIRM = "confirm"
    PUBLISH = "publish"
    RESTORE = "restore"
    UNKNOWN = "unknown"


class Task(StrEnum):
    """What one worker does."""

    UPGRADE = "upgrade"
    CHECK = "check"
    REHEARSE = "rehearse"
    ADOPT = "adopt"
    BACKUP = "backup"
    VERIFY = "verify"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Request:
    """One order for the worker; every path is absolute (U-22).

    `root` is the directory tree in which no backup may lie. `file` is the source of an adoption,
    the directory of a backup to restore, or the file to verify, whose digest must be `sha256`
    where it is known. `now_ms` is for tests.
    """

    task: Task
    database: str
    store: str
    root: str
    file: str | None = None
    sha256: str | None = None
    keep: int = 10
    now_ms: int | None = None


class State(StrEnum):
    """How a run ended."""

    CURRENT = "current"
    UPGRADED = "upgraded"
    CHECKED = "checked"
    REHEARSED = "rehearsed"
    BACKED_UP = "backed-up"
    RESTORED = "restored"
    VERIFIED = "verified"


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows of a table before and after; None where the table is not there."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """How long a phase took, and the most private memory of the worker by its end, in bytes."""

    phase: Phase
    seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class LeftOutRow:
    """A row that the new schema cannot represent (K-37)."""

    table: str
    key: str
    rowid: int
    reason: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adoption or an upgrade from triflux's schema did (U-87).

    `arrived` counts the rows of each source table that were proven to be there afterwards.
    """

    source: str | None
    source_sha256: str | None
    arrived: dict[str, int]
    left_out: tuple[LeftOutRow, ...]
    not_taken: dict[str, int]
    dropped_values: dict[str, int]
    last_activity_ms: int | None
    shift_ms: int


@dataclass(frozen=True, slots=True)
class Space:
    """Free and needed bytes on one file system."""

    path: str
    needed_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one run did; `backup_directory` is null if and only if nothing was backed up (U-20)."""

    state: State
    database: str
    from_version: int | None = None
    to_version: int | None = None
    from_schema_hash: str | None = None
    to_schema_hash: str | None = None
    backup_directory: str | None = None
    backup_sha256: str | None = None
    backup_reused: bool = False
    rows: dict[str, RowCount] = field(default_factory=dict)
    bytes_before: int | None = None
    bytes_after: int | None = None
    adopted: Adopted | None = None
    space: tuple[Space, ...] = ()
    pending: str | None = None
    finished_earlier_run: bool = False
    restored_from: str | None = None
    notes: tuple[str, ...] = ()
    phases: tuple[PhaseTime, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of progress: where the worker is; totals are 0 where they are not known."""

    phase: Phase
    table: str = ""
    rows_done: int = 0
    rows_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An error on its way from the worker to the parent; `exit` is the status it stands for."""

    code: str
    kind: str
    exit: int
    message: str
    hint: str | None
    details: dict[str, object]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the worker's output: progress, or at the end a receipt or a failure.

    `backup_directory` is that of a verified backup, so that the parent can name it (U-3).
    """

    progress: Progress | None = None
    receipt: Receipt | None = None
    failure: Failure | None = None
    backup_directory: str | None = None
