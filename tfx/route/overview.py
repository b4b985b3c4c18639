"""What `tfx jobs` does with runs: list, sum up, wait for, cancel, read and remove them.

Starts nothing; signals only a worker whose identity is proven.
"""

from __future__ import annotations

import contextlib
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfx.core.identity import Liveness, liveness
from tfx.core.paths import Paths
from tfx.core.process import signal_exactly
from tfx.errors import InvalidRequest, JsonValue, Kind, OperationFailed, StateConflict
from tfx.result import Problem, Result, Status
from tfx.route import ledger
from tfx.route.jobs import KEEP_DAYS, Jobs
from tfx.route.logs import cut_in
from tfx.route.result import Job, Outcome

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_CANCEL_S = 15.0
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Sum:
    """All runs on record of one role with one CLI; times in seconds, tokens where printed."""

    role: str
    cli: str
    runs: int
    success: int
    p50_s: float | None
    p95_s: float | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class JobsList:
    """Runs without their output, the newest first; `stats` only when asked for."""

    jobs: tuple[Outcome, ...]
    stats: tuple[Sum, ...] | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """The output of a run, whole, as text; `cut` when the document would be too big."""

    job: str
    log: Path
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """The runs that were removed."""

    removed: tuple[str, ...]


def list_jobs(paths: Paths, *, running: bool, stats: bool, limit: int) -> Result[JobsList]:
    """Return the newest runs; `limit` 0 means all."""
    if limit < 0:
        raise InvalidRequest(f"--limit cannot be negative: {limit}", code="bad-limit")
    jobs = Jobs(paths)
    found: list[Outcome] = []
    for job in jobs.all():
        if limit and len(found) == limit:
            break
        if not (running and job.is_over):
            found.append(jobs.outcome(job, with_output=False))
    return Result(JobsList(tuple(found), sums(paths) if stats else None))


def sums(paths: Paths) -> tuple[Sum, ...]:
    """Return the history per role and CLI, the most used first."""
    groups: dict[tuple[str, str], list[dict[str, JsonValue]]] = {}
    for entry in ledger.history(paths):
        groups.setdefault((str(entry.get("role")), str(entry.get("cli"))), []).append(entry)
    found = [_sum(role, cli, entries) for (role, cli), entries in groups.items()]
    return tuple(sorted(found, key=lambda one: (-one.runs, one.role, one.cli)))


def _sum(role: str, cli: str, entries: list[dict[str, JsonValue]]) -> Sum:
    times = sorted(ms / 1000 for entry in entries if isinstance(ms := entry.get("elapsed_ms"), int))
    tokens = [n for entry in entries if isinstance(n := entry.get("tokens"), int)]
    return Sum(
        role,
        cli,
        len(entries),
        sum(entry.get("status") == "success" for entry in entries),
        statistics.median(times) if times else None,
        times[max(0, -(-len(times) * 95 // 100) - 1)] if times else None,
        sum(tokens) if tokens else None,
    )


def show(paths: Paths, job: str) -> Result[Outcome]:
    """Return one run with the beginning of its output; raises NotFound."""
    jobs = Jobs(paths)
    return Result(jobs.outcome(jobs.load(job)))


def wait(paths: Paths, job: str, timeout_s: float | None) -> Result[Outcome]:
    """Wait for the end of a run and return its result, as `tfx route` would have (R-8)."""
    jobs = Jobs(paths)
    found = _until(jobs, job, timeout_s)
    if found.is_over:
        return jobs.outcome(found).result()
    problem = Problem(
        "still-running",
        Kind.OPERATION_FAILED,
        f"job {job} still runs after {timeout_s:g} s",
        f"tfx jobs wait {job}",
        {"job": job},
    )
    return Result(jobs.outcome(found, with_output=False), Status.FAILED, (problem,))


def _until(jobs: Jobs, job: str, timeout_s: float | None) -> Job:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while not (found := jobs.load(job)).is_over:
        left = pause_s if deadline is None else deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(pause_s, left))
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
    return found


def cancel(paths: Paths, job: str) -> Result[Outcome]:
    """End a running job with everything it started.

    Raises NotFound, StateConflict when it is over, OperationFailed when it does not end.
    """
    jobs = Jobs(paths)
    found = jobs.load(job)
    if found.is_over:
        raise StateConflict(
            f"job {job} is over: {found.status.value}",
            code="job-over",
            hint=f"tfx jobs show {job}",
        )
    if found.worker is None:  # it is just starting
        found = _until_worker(jobs, job)
    _signal(found, signal.SIGTERM)
    found = _until(jobs, job, _CANCEL_S)
    if not found.is_over:  # its own watch then ends the agent
        _signal(found, signal.SIGKILL)
        found = _until(jobs, job, _CANCEL_S)
    if not found.is_over:
        raise OperationFailed(f"job {job} does not end", hint=f"tfx jobs show {job}")
    return Result(jobs.outcome(found, with_output=False))


def _until_worker(jobs: Jobs, job: str) -> Job:
    deadline = time.monotonic() + _CANCEL_S
    found = jobs.load(job)
    while found.worker is None and not found.is_over and time.monotonic() < deadline:
        time.sleep(_FIRST_PAUSE_S)
        found = jobs.load(job)
    return found


def _signal(job: Job, signum: int) -> None:
    if job.worker is not None and liveness(job.worker) is Liveness.ALIVE:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal_exactly(job.worker.pid, job.worker.start_token, signum)


def logs(paths: Paths, job: str, *, errors: bool, cap_bytes: int) -> Result[Logs]:
    """Return the output of a run, at most `cap_bytes` of it."""
    file = log_file(paths, job, errors=errors)
    data = _beginning(file, cap_bytes + 1)
    text = data[:cap_bytes].decode("utf-8", "surrogateescape")
    return Result(Logs(job, file, text, len(data) > cap_bytes))


def log_file(paths: Paths, job: str, *, errors: bool) -> Path:
    """Return the file that one stream of a run goes to; raises NotFound."""
    jobs = Jobs(paths)
    return jobs.directory(jobs.load(job).job) / ("stderr" if errors else "stdout")


def stream(
    paths: Paths, job: str, write: Callable[[bytes], None], *, errors: bool, follow: bool
) -> None:
    """Write the output of a run piece by piece; with `follow` until the run is over."""
    jobs = Jobs(paths)
    file = log_file(paths, job, errors=errors)
    seen = 0
    is_over = not follow
    while True:
        found = jobs.load(job)
        is_over = is_over or found.is_over  # what came until then is written once more
        seen = _write_news(file, seen, found.log_cap_bytes, write)
        if is_over:
            return
        time.sleep(_FIRST_PAUSE_S * 4)


def _write_news(file: Path, seen: int, cap_bytes: int, write: Callable[[bytes], None]) -> int:
    """Write what came behind the bytes of output seen so far; return how many they are now."""
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        cut = cut_in(stream, cap_bytes)
        offset = seen if cut is None else cut.file_offset(seen)
        stream.seek(offset)
        while data := stream.read(_CHUNK_BYTES):
            offset += len(data)
            write(data)
        return offset if cut is None else cut.seen(offset)
    return seen


def _beginning(file: Path, most_bytes: int) -> bytes:
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        return stream.read(most_bytes)
    return b""


def prune(paths: Paths, *, days: float | None) -> Result[Pruned]:
    """Remove runs that are over and older than some days, with their logs."""
    if days is not None and days < 0:
        raise InvalidRequest(f"--older-than cannot be negative: {days:g}", code="bad-days")
    age_s = (KEEP_DAYS if days is None else days) * 86_400
    return Result(Pruned(Jobs(paths).prune(older_than_s=age_s)))
