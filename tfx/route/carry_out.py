"""Carry out a prepared run: attempts, the one retry, the record of how it ended.

Works from the record alone, so that the caller and a background worker do the same.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from tfx.core.identity import identify
from tfx.core.paths import Paths
from tfx.errors import OperationFailed
from tfx.route import announce, ledger
from tfx.route.attempt import Ended, Files, Order, attempt
from tfx.route.jobs import Jobs
from tfx.route.recognise import issues_in, tokens_in
from tfx.route.result import Issue, Job, RunStatus
from tfx.route.signals import Interrupts
from tfx.route.table import Table

QUICK_S = 5.0
_OF_THE_CALLER = frozenset({"TFX_AGENT_ID"})  # the agent is one of its own (K-27)
_DIED_SILENTLY = "{cli} died at once without output and was started once more"
_LOST = "its output could not be written whole ({why}); free some room and run it again"
_CUT = (
    "the {log} lacks {left_out} bytes in its middle: it is kept to {cap} bytes"
    " (route.log_mib in config.toml)"
)


def carry_out(paths: Paths, table: Table, job: Job) -> Job:
    """Run a prepared job to its end and return its final record.

    Raises OperationFailed when its files cannot be opened.
    """
    jobs = Jobs(paths)
    directory = jobs.directory(job.job)
    files = Files(directory / "prompt", directory / "stdout", directory / "stderr")
    env = {name: value for name, value in paths.env.items() if name not in _OF_THE_CALLER}
    env["PATH"] = job.search_path
    order = Order(job.argv, env, Path(job.cwd), float(job.timeout_s), job.log_cap_bytes)
    with Interrupts() as interrupts:  # from when others can find us until they can see the end
        job = replace(job, worker=identify())
        jobs.save(job)
        bus = announce.join(paths, job, files.prompt)
        job = job.noting(*bus.notices)
        try:
            ended, attempts = _attempts(order, files, interrupts)
        except OSError as error:
            jobs.save(replace(job, status=RunStatus.FAILED))
            announce.leave(bus, None, files.stdout)
            raise OperationFailed(
                f"the files of job {job.job} cannot be used: {error.strerror or error}",
                code="no-room",
                details={"path": str(directory)},
            ) from error
        finally:
            with contextlib.suppress(OSError):
                files.prompt.unlink()
        job = _concluded(job, table, files, ended, attempts)
        with contextlib.suppress(OSError):  # a full disk must not hide the result from the caller
            jobs.save(job)
    ledger.record(paths, job)
    announce.leave(bus, job, files.stdout)
    return job


def _attempts(order: Order, files: Files, interrupts: Interrupts) -> tuple[Ended, int]:
    ended = attempt(order, files, interrupts)
    if not _died_silently(ended, files):
        return ended, 1
    again = replace(order, timeout_s=order.timeout_s - ended.seconds)
    second = attempt(again, files, interrupts)
    return replace(second, seconds=ended.seconds + second.seconds), 2


def _died_silently(ended: Ended, files: Files) -> bool:
    """Say whether the CLI died at once without a byte of output (R-6)."""
    if ended.code == 0 or ended.timed_out or ended.interrupted or ended.why:
        return False
    is_silent = all(path.stat().st_size == 0 for path in (files.stdout, files.stderr))
    return is_silent and ended.seconds < QUICK_S


def _concluded(job: Job, table: Table, files: Files, ended: Ended, attempts: int) -> Job:
    lost = [kept.failure for kept in ended.logs if kept.failure]
    status = _status(ended)
    if lost and status is RunStatus.SUCCESS:  # the answer may be in what could not be written
        status = RunStatus.FAILED
    row = table.clis[job.cli]
    issues = issues_in(
        table.issues, job.cli, files.stdout, files.stderr, failed=status is not RunStatus.SUCCESS
    )
    if ended.timed_out:
        said = Issue(
            "timeout", f"ended after the time-out of {job.timeout_s} s; --timeout S gives it longer"
        )
        issues = (said, *issues)
    if ended.why:
        issues = (Issue("not-started", f"{job.cli} {ended.why}"), *issues)
    if lost:
        issues = (Issue("no-room", _LOST.format(why=lost[0])), *issues)
    notices = [*job.notices]
    if attempts > 1:
        notices.append(_DIED_SILENTLY.format(cli=job.cli))
    notices += [
        _CUT.format(log=log, left_out=kept.left_out, cap=job.log_cap_bytes)
        for log, kept in zip(("log", "error log"), ended.logs, strict=False)
        if kept.left_out
    ]
    return replace(
        job,
        status=status,
        exit_code=ended.code,
        elapsed_ms=round(ended.seconds * 1000),
        attempts=attempts,
        tokens=tokens_in(row, files.stderr),
        issues=issues,
        notices=tuple(notices),
    )


def _status(ended: Ended) -> RunStatus:
    if ended.interrupted:
        return RunStatus.CANCELLED
    if ended.timed_out:
        return RunStatus.TIMEOUT
    if ended.crashed:
        return RunStatus.CRASHED
    return RunStatus.SUCCESS if ended.code == 0 else RunStatus.FAILED
