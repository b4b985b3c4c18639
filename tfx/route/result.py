"""What a run was and how it ended: the record on the disk and the one result shown to callers.

Knows neither processes nor files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tfx.config.settings_model import DEFAULT_HUB_ANSWER_S, DEFAULT_LOG_MIB, MIB
from tfx.core.clock import iso
from tfx.core.identity import ProcessIdentity
from tfx.errors import Kind
from tfx.result import Problem, Result, Status


class RunStatus(StrEnum):
    """How a run stands. A lost one was killed, or the machine went down, before it could say."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Issue:
    """One recognised reason, and what helps."""

    code: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Job:
    """The record of one run. `argv` never holds the prompt; `worker` is who looks after it.

    `task` is the number of the hub's task that it is a turn of.
    """

    job: str
    role: str
    cli: str
    version: str | None
    program: str
    profile: str
    effort: str
    argv: tuple[str, ...]
    search_path: str
    cwd: str
    timeout_s: int
    started_at_ms: int
    background: bool
    approvals_skipped: bool
    notices: tuple[str, ...] = ()
    worker: ProcessIdentity | None = None
    agent_pid: int | None = None
    status: RunStatus = RunStatus.RUNNING
    exit_code: int | None = None
    elapsed_ms: int | None = None
    attempts: int = 0
    tokens: int | None = None
    issues: tuple[Issue, ...] = ()
    topic: str | None = None
    task: int | None = None
    log_cap_bytes: int = DEFAULT_LOG_MIB * MIB
    hub_answer_s: int = DEFAULT_HUB_ANSWER_S

    @property
    def is_over(self) -> bool:
        """True when nothing more happens to it."""
        return self.status is not RunStatus.RUNNING

    def noting(self, *notices: str) -> Job:
        """Return the same record with further notices."""
        return replace(self, notices=(*self.notices, *notices))


def job_from(document: Mapping[str, Any]) -> Job:
    """Return the record that a JSON document holds; raises KeyError, TypeError or ValueError."""
    fields = dict(document)
    worker = fields.get("worker")
    fields["worker"] = None if worker is None else ProcessIdentity(**worker)
    fields["status"] = RunStatus(fields["status"])
    fields["issues"] = tuple(Issue(**issue) for issue in fields["issues"])
    fields["argv"] = tuple(fields["argv"])
    fields["notices"] = tuple(fields["notices"])
    return Job(**fields)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run as callers see it (route.md section 4).

    `exit_code` is the CLI's own. `output` is the beginning of its standard output, at most 50 KiB,
    of which there are `output_bytes` in the file `log`; `errors` the end of its standard error
    after a failure. Bytes that are not UTF-8 are lone surrogates in both.
    """

    job: str
    role: str
    cli: str
    version: str | None
    program: str
    profile: str
    effort: str
    status: RunStatus
    exit_code: int | None
    seconds: float | None
    timeout_s: int
    started_at: str
    background: bool
    attempts: int
    tokens: int | None
    approvals_skipped: bool
    issues: tuple[Issue, ...]
    notices: tuple[str, ...]
    log: Path
    error_log: Path
    output: str = ""
    output_bytes: int = 0
    output_cut: bool = False
    errors: str = ""
    task: int | None = None

    @classmethod
    def of(cls, job: Job, directory: Path) -> Outcome:
        """Return the result of a record whose files lie in a directory, without its output."""
        return cls(
            job=job.job,
            role=job.role,
            cli=job.cli,
            version=job.version,
            program=job.program,
            profile=job.profile,
            effort=job.effort,
            status=job.status,
            exit_code=job.exit_code,
            seconds=None if job.elapsed_ms is None else job.elapsed_ms / 1000,
            timeout_s=job.timeout_s,
            started_at=iso(job.started_at_ms),
            background=job.background,
            attempts=job.attempts,
            tokens=job.tokens,
            approvals_skipped=job.approvals_skipped,
            issues=job.issues,
            notices=job.notices,
            log=directory / "stdout",
            error_log=directory / "stderr",
            task=job.task,
        )

    def result(self) -> Result[Outcome]:
        """Return it with the status word and exit code of its end (K-9)."""
        if self.status in {RunStatus.SUCCESS, RunStatus.RUNNING}:
            return Result(self)
        reasons = [f"{issue.code}: {issue.remedy}" for issue in self.issues]
        problem = Problem(
            f"run-{self.status}",
            Kind.OPERATION_FAILED,
            f"{self.cli} as {self.role} ended with status {self.status}",
            "; ".join(reasons) or f"tfx jobs logs --errors {self.job}",
            {"job": self.job, "exit_code": self.exit_code},
        )
        status = Status.REFUSED if self.status is RunStatus.REFUSED else Status.FAILED
        return Result(self, status, (problem,))


@dataclass(frozen=True, slots=True)
class Delegation:
    """A native role called from Claude Code: what it is to do itself (R-2)."""

    route_type: str
    agent: str
    model: str
    run_mode: str
    timeout_s: int
    mcp_profile: str
    prompt: str
