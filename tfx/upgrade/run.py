"""The parent's side: start the worker, follow its lines, turn its end into a receipt or an error.

Never opens a database (U-26).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

from tfx.core import streaming
from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    AuthenticationRequired,
    InvalidRequest,
    Kind,
    NotFound,
    OperationFailed,
    StateConflict,
    TfxError,
)
from tfx.hub.daemon.launch import isolation_flags
from tfx.upgrade.check import Checked
from tfx.upgrade.model import Failure, Line, Phase, Progress, Receipt, Request, Task

if TYPE_CHECKING:
    from tfx.core.paths import Paths
    from tfx.errors import JsonValue

SILENCE_S: Final = 120.0
"""A worker beats twice a second; one that says nothing of sense for so long hangs (U-111)."""
MODULE: Final = "tfx.upgrade.worker"
_PASSED: Final = ("HOME", "PATH", "LANG", "LC_ALL", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
                  "XDG_CACHE_HOME", "XDG_DATA_HOME")  # fmt: skip
_CLASSES: Final[dict[str, type[TfxError]]] = {
    Kind.INVALID_REQUEST: InvalidRequest,
    Kind.AUTHENTICATION_REQUIRED: AuthenticationRequired,
    Kind.ACCESS_DENIED: AccessDenied,
    Kind.NOT_FOUND: NotFound,
    Kind.STATE_CONFLICT: StateConflict,
    Kind.AGENT_UNAVAILABLE: AgentUnavailable,
    Kind.OPERATION_FAILED: OperationFailed,
}
_KILLED: Final = {
    "silent": ("worker-silent", "did not answer any more"),
    "garbage": ("worker-garbage", "sent nothing but what is no progress"),
    "too-much": ("worker-garbage", "sent too much"),
}
Told = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Work:
    """How a worker is started; tests put another program in its place."""

    argv: Sequence[str]
    silence_s: float = SILENCE_S


def worker_argv() -> tuple[str, ...]:
    """Return the command of the worker: no secret and no path in it."""
    return (sys.executable, *isolation_flags(), "-m", MODULE)


def run(paths: Paths, request: Request, told: Told, work: Work | None = None) -> Receipt:
    """Have a worker do a request; `told` gets its progress.

    Raises what the worker reports, with phase and backup directory in the details, and
    OperationFailed `worker-died`, `worker-silent` or `worker-garbage` with the last phase seen.
    """
    work = work or Work(worker_argv())
    seen = _Seen(told)
    temporary = str(Path(request.database).parent)
    env = {name: paths.env[name] for name in _PASSED if name in paths.env}
    env["SQLITE_TMPDIR"] = temporary
    try:
        ended = streaming.stream(
            work.argv,
            env=env,
            stdin=msgspec.json.encode(request),
            on_line=seen.line,
            silence_s=work.silence_s,
        )
    except OSError as error:
        raise OperationFailed(
            f"{work.argv[0]} cannot be run: {error.strerror}", code="spawn-failed"
        ) from error
    if seen.failure is not None:
        raise error_of(seen.failure)
    if seen.receipt is not None and ended.code == 0 and ended.killed is None:
        return seen.receipt
    raise _lost(seen, ended)


def examine(
    paths: Paths, request: Request, file: Path, told: Told, sha256: str | None = None
) -> Checked:
    """Check a database file in a process of its own; the worker calls this too (U-51)."""
    order = replace(request, task=Task.VERIFY, file=str(file), sha256=sha256)
    receipt = run(paths, order, told)
    return Checked(
        sha256=receipt.backup_sha256 or "",
        size=receipt.bytes_before or 0,
        schema_hash=receipt.from_schema_hash or "",
        version=receipt.from_version,
        rows={table: count.after or 0 for table, count in receipt.rows.items()},
    )


def error_of(failure: Failure) -> TfxError:
    """Return the error that a worker reported, as the class it was."""
    wanted = _CLASSES.get(failure.kind, OperationFailed)
    details = cast("dict[str, JsonValue]", failure.details)
    return wanted(failure.message, code=failure.code, hint=failure.hint, details=details)


class _Seen:
    """What came from the worker so far."""

    def __init__(self, told: Told) -> None:
        self.phase = Phase.UNKNOWN
        self.backup_directory: str | None = None
        self.receipt: Receipt | None = None
        self.failure: Failure | None = None
        self.garbage = False
        self._told = told

    def line(self, data: bytes) -> bool:
        """Take a line; say whether it was one of ours."""
        try:
            line = msgspec.json.decode(data, type=Line)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self.garbage = True
            return False
        if line.progress is not None:
            self.phase = line.progress.phase
            self.backup_directory = line.backup_directory
            self._told(line.progress)
        self.receipt = line.receipt or self.receipt
        self.failure = line.failure or self.failure
        return True


def _lost(seen: _Seen, ended: streaming.Streamed) -> OperationFailed:
    if ended.killed is not None:
        code, what = _KILLED[ended.killed]
    elif seen.garbage:
        code, what = "worker-garbage", "sent something that is no progress"
    elif ended.code < 0:
        code, what = "worker-died", f"was ended by signal {-ended.code}"
    else:
        code, what = "worker-died", f"ended with status {ended.code} and no answer"
    last = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return OperationFailed(
        f"the worker {what} in phase {seen.phase}; the database is whole, as it was or upgraded",
        code=code,
        hint="run the command again: it finds out by itself",
        details={
            "phase": seen.phase.value,
            "backup_directory": seen.backup_directory,
            # the type of an exception alone: its text may quote a value (U-5)
            "exception": last.partition(":")[0][:100] if ":" in last else None,
        },
    )
