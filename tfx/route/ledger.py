"""Two append-only files of JSON lines beside the jobs: the history of runs and the issue log.

Private, rotated once when they grow, and never a reason for a run to fail.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfx.core.files import PRIVATE_FILE, make_private_dir
from tfx.core.locks import try_lock
from tfx.core.paths import Paths
from tfx.errors import JsonValue
from tfx.route.result import Job

_CAP_BYTES = 1024 * 1024
HISTORY = "history.jsonl"
ISSUES = "issues.jsonl"


def record(paths: Paths, job: Job) -> None:
    """Append a finished run to the history, and each of its issues to the issue log (R-10)."""
    common: dict[str, JsonValue] = {
        "at_ms": job.started_at_ms,
        "job": job.job,
        "role": job.role,
        "cli": job.cli,
        "version": job.version,
    }
    run: dict[str, JsonValue] = {
        "status": job.status.value,
        "exit_code": job.exit_code,
        "elapsed_ms": job.elapsed_ms,
        "tokens": job.tokens,
    }
    _append(paths.jobs_dir / HISTORY, common | run)
    for issue in job.issues:
        _append(paths.jobs_dir / ISSUES, {**common, "code": issue.code, "remedy": issue.remedy})


def history(paths: Paths) -> Iterator[dict[str, JsonValue]]:
    """Yield the runs on record, the oldest first."""
    yield from _entries(paths.jobs_dir / HISTORY)


def issues(paths: Paths) -> Iterator[dict[str, JsonValue]]:
    """Yield the issues on record, the oldest first; doctor groups them."""
    yield from _entries(paths.jobs_dir / ISSUES)


def _append(file: Path, entry: Mapping[str, JsonValue]) -> None:
    line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with contextlib.suppress(OSError):
        make_private_dir(file.parent)
        _rotate(file)
        descriptor = os.open(
            file,
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
            PRIVATE_FILE,
        )
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _rotate(file: Path) -> None:
    """Set a file that has grown aside; the one set aside before goes."""
    if not _is_full(file):
        return
    lock = try_lock(file.with_name(f".{file.name}.lock"), "rotate")
    if lock is None:  # another run is just doing it
        return
    with lock:
        if _is_full(file):
            file.replace(file.with_name(f"{file.name}.1"))


def _is_full(file: Path) -> bool:
    try:
        return file.stat().st_size >= _CAP_BYTES
    except OSError:
        return False


def _entries(file: Path) -> Iterator[dict[str, JsonValue]]:
    for part in (file.with_name(f"{file.name}.1"), file):
        try:
            lines = part.read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            with contextlib.suppress(ValueError):  # a line torn by a full disk
                loaded = json.loads(line)
                if isinstance(loaded, dict):
                    yield loaded
