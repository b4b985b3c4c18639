"""The records of runs on the disk: one private directory each, found again by process identity.

Knows nothing of how a run is carried out; removes only files that tfx put there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tfx.core.files import PRIVATE_DIR, make_private_dir, replace_atomically
from tfx.core.identity import Liveness, liveness
from tfx.core.paths import Paths
from tfx.errors import NotFound, OperationFailed
from tfx.route.excerpt import first_bytes, last_lines
from tfx.route.result import Job, Outcome, RunStatus, job_from

OUTPUT_CAP_BYTES = 50 * 1024
ERRORS_CAP_BYTES = 8 * 1024
KEEP_DAYS = 7
KEEP_JOBS = 500
KEEP_BYTES = 2 * 1024**3
_STARTING_S = 60
_ID = re.compile(r"(?P<at>\d{8}-\d{6})-[0-9a-f]{6}")
_RECORD = "job.json"
_FILES = (_RECORD, "prompt", "stdout", "stderr", "worker")


class Jobs:
    """All runs of this user."""

    def __init__(self, paths: Paths) -> None:
        self.root = paths.jobs_dir

    def directory(self, job: str) -> Path:
        """Return where the files of a run lie."""
        return self.root / job

    def create(self) -> str:
        """Make the directory of a new run and return its id; raises OperationFailed."""
        try:
            make_private_dir(self.root)
            while True:
                name = _new_id(datetime.now(UTC))
                with contextlib.suppress(FileExistsError):
                    (self.root / name).mkdir(PRIVATE_DIR)
                    return name
        except OSError as error:
            raise OperationFailed(
                f"cannot write below {self.root}: {error.strerror or error}",
                code="no-room",
                details={"path": str(self.root)},
            ) from error

    def save(self, job: Job) -> None:
        """Write a record; the last one written counts."""
        data = json.dumps(dataclasses.asdict(job)).encode()  # ASCII: undecodable names survive
        replace_atomically(self.directory(job.job) / _RECORD, data)

    def load(self, job: str) -> Job:
        """Return a record as it stands now; raises NotFound for an unknown one."""
        if _ID.fullmatch(job) is None or (found := self._read(job)) is None:
            raise NotFound(f"no job is called {job!r}", hint="tfx jobs list", details={"job": job})
        return found

    def all(self) -> Iterator[Job]:
        """Yield every record, the newest first."""
        for name in self._names():
            job = self._read(name)
            if job is not None:
                yield job

    def outcome(self, job: Job, *, with_output: bool = True) -> Outcome:
        """Return the result of a run with the beginning of its output."""
        directory = self.directory(job.job)
        outcome = Outcome.of(job, directory)
        if not with_output:
            return outcome
        with contextlib.suppress(OSError):
            found = first_bytes(directory / "stdout", OUTPUT_CAP_BYTES)
            outcome = replace(
                outcome,
                output=found.data.decode("utf-8", "surrogateescape"),
                output_bytes=found.whole_bytes,
                output_cut=found.cut,
            )
        if job.status not in {RunStatus.SUCCESS, RunStatus.RUNNING}:
            with contextlib.suppress(OSError):
                tail = last_lines(directory / "stderr", ERRORS_CAP_BYTES)
                outcome = replace(outcome, errors=tail.decode("utf-8", "surrogateescape"))
        return outcome

    def remove(self, job: str) -> bool:
        """Delete the files of a run and say whether its directory is gone.

        A file of somebody else's stays, and the directory with it.
        """
        directory = self.directory(job)
        for name in _FILES:
            with contextlib.suppress(OSError):
                (directory / name).unlink()
        try:
            directory.rmdir()
        except OSError:
            return False
        return True

    def prune(self, *, older_than_s: float = KEEP_DAYS * 86_400) -> tuple[str, ...]:
        """Remove the runs that are over and old, too many or too big; return their ids."""
        gone: list[str] = []
        total = 0
        for number, name in enumerate(self._names()):
            total += self._size(name)
            is_old = time.time() - _started_s(name) > older_than_s
            if not (is_old or number >= KEEP_JOBS or total > KEEP_BYTES):
                continue
            job = self._read(name)
            if (job is None or job.is_over) and self.remove(name):
                gone.append(name)
        return tuple(gone)

    def _size(self, name: str) -> int:
        size = 0
        for file in ("stdout", "stderr"):
            with contextlib.suppress(OSError):
                size += os.stat(self.root / name / file).st_size  # noqa: PTH116  (hundreds of them)
        return size

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self.root)  # noqa: PTH208  (names are enough)
        except OSError:
            return []
        return sorted((name for name in names if _ID.fullmatch(name)), reverse=True)

    def _read(self, name: str) -> Job | None:
        try:
            job = job_from(json.loads((self.directory(name) / _RECORD).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return job if job.is_over else _as_it_stands(job)


def _as_it_stands(job: Job) -> Job:
    """Return a running record, or the same one as lost when its worker is gone for sure (R-8)."""
    if job.worker is not None:
        is_lost = liveness(job.worker) is Liveness.DEAD
    else:
        is_lost = time.time() * 1000 - job.started_at_ms > _STARTING_S * 1000
    return replace(job, status=RunStatus.LOST) if is_lost else job


def _new_id(now: datetime) -> str:
    """Return an id that sorts by time: the second, then the millisecond and three random digits."""
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03x}{secrets.randbelow(4096):03x}"


def _started_s(name: str) -> float:
    found = _ID.fullmatch(name)
    try:
        moment = datetime.strptime(found["at"] if found else "", "%Y%m%d-%H%M%S")  # noqa: DTZ007  (UTC follows)
    except ValueError:
        return 0.0
    return moment.replace(tzinfo=UTC).timestamp()
