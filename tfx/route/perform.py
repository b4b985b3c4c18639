"""`tfx route`: from a role and a prompt to a prepared run, then to its result.

Decides and prepares; how a process is run and where records lie is known elsewhere.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tfx.config.settings import load as load_settings
from tfx.config.settings_keys import MAX_ROUTE_TIMEOUT_S
from tfx.config.settings_model import MIB
from tfx.core.paths import Paths
from tfx.core.process import spawn_detached
from tfx.errors import AccessDenied, Exit, InvalidRequest, Kind, OperationFailed
from tfx.result import Problem, Result, Status
from tfx.route.carry_out import carry_out
from tfx.route.choose import Chosen, Wish, choose, command_line
from tfx.route.jobs import Jobs
from tfx.route.prompt import Text, require_context, write_prompt
from tfx.route.result import Delegation, Job, Outcome, RunStatus
from tfx.route.servers import servers_for
from tfx.route.table import Role, Table, Verb, bundled

_NATIVE_CALLER = "CLAUDECODE"


@dataclass(frozen=True, slots=True)
class Order:
    """What the caller typed, paths absolute; `cli` and `timeout_s` None for the table's own.

    `on_terminal`: a person typed it. `task`: the run is a turn of that one of the workspace.
    """

    role: str
    text: Text
    cwd: Path
    profile: str = "auto"
    timeout_s: int | None = None
    context: Path | None = None
    cli: str | None = None
    background: bool = False
    skip_approvals: bool = False
    on_terminal: bool = False
    task: int | None = None


def perform(paths: Paths, order: Order) -> Result[Outcome | Delegation]:
    """Run a role's prompt and return how it went, or hand it back to Claude Code (R-2).

    Raises InvalidRequest for what was mistyped, AgentUnavailable without a usable CLI,
    RefusedText for a NUL byte and AccessDenied for approvals that may not be skipped here.
    """
    settings = load_settings(paths)
    table = bundled().with_overrides(settings.route)
    role = table.role(order.role)
    profile = table.profile(order.profile, role)
    role = replace(role, timeout_s=_timeout(order, role))
    if order.context is not None:
        require_context(order.context)
    if not order.cwd.is_dir():
        raise InvalidRequest(f"--cwd is not a directory: {order.cwd}", code="bad-cwd")
    if order.skip_approvals and not (order.on_terminal or settings.route.allow_skip_approvals):
        raise AccessDenied(
            "--dangerously-skip-approvals without a terminal is refused",
            code="approvals-needed",
            hint="type it on a terminal, or set route.allow_skip_approvals in config.toml",
        )
    forced = order.cli or settings.route.cli
    if forced != "auto":
        table.cli(forced)
    if role.verb is Verb.NATIVE and forced == "auto" and paths.env.get(_NATIVE_CALLER):
        return Result(_delegation(order, role, profile))
    said = settings.route
    aim = _Aim(role, profile, forced, said.log_mib * MIB, said.hub_answer_s)
    job = _prepared(paths, table, order, aim)
    if order.background:
        return _started(paths, job)
    return _finished(paths, table, job)


def _timeout(order: Order, role: Role) -> int:
    seconds = role.timeout_s if order.timeout_s is None else order.timeout_s
    if not 1 <= seconds <= MAX_ROUTE_TIMEOUT_S:
        raise InvalidRequest(
            f"--timeout has to be 1 to {MAX_ROUTE_TIMEOUT_S} seconds, not {seconds}",
            code="bad-timeout",
        )
    return seconds


def _delegation(order: Order, role: Role, profile: str) -> Delegation:
    prompt = b"".join(order.text.chunks()).decode("utf-8", "surrogateescape")
    return Delegation(
        "claude-native", role.name, role.effort, role.mode, role.timeout_s, profile, prompt
    )


@dataclass(frozen=True, slots=True)
class _Aim:
    """What the words of an order mean here: row and profile, the forced CLI, the settings."""

    role: Role
    profile: str
    forced: str
    log_cap_bytes: int
    hub_answer_s: int


def _prepared(paths: Paths, table: Table, order: Order, aim: _Aim) -> Job:
    role = aim.role
    chosen = choose(paths, table, role, aim.forced)
    servers = servers_for(paths, table, chosen.row.name, aim.profile)
    wish = Wish(role.verb, role.effort, order.skip_approvals, servers.names, servers.left_out)
    argv = command_line(paths, chosen, wish)
    jobs = Jobs(paths)
    jobs.prune()
    name = jobs.create()
    try:
        notices = write_prompt(
            jobs.directory(name) / "prompt", order.text, order.context, servers.advice
        )
        job = _record(name, order, aim, chosen, argv).noting(*notices)
        jobs.save(job)
    except BaseException as error:
        jobs.remove(name)
        if isinstance(error, OSError):
            raise OperationFailed(
                f"cannot write below {jobs.root}: {error.strerror or error}", code="no-room"
            ) from error
        raise
    return job


def _record(name: str, order: Order, aim: _Aim, chosen: Chosen, argv: tuple[str, ...]) -> Job:
    return Job(
        job=name,
        role=aim.role.name,
        cli=chosen.row.name,
        version=chosen.version,
        program=str(chosen.program),
        profile=aim.profile,
        effort=aim.role.effort,
        argv=argv,
        search_path=chosen.path,
        cwd=str(order.cwd),
        timeout_s=aim.role.timeout_s,
        started_at_ms=time.time_ns() // 1_000_000,
        background=order.background,
        approvals_skipped=order.skip_approvals,
        task=order.task,
        log_cap_bytes=aim.log_cap_bytes,
        hub_answer_s=aim.hub_answer_s,
    )


def _finished(paths: Paths, table: Table, job: Job) -> Result[Outcome]:
    job = carry_out(paths, table, job)
    outcome = Jobs(paths).outcome(job)
    if job.status is not RunStatus.CANCELLED:
        return outcome.result()
    problem = Problem(
        "interrupted",
        Kind.OPERATION_FAILED,
        "interrupted; the agent and everything it started were ended",
    )
    return Result(outcome, Status.FAILED, (problem,), Exit.INTERRUPTED)


def _started(paths: Paths, job: Job) -> Result[Outcome]:
    """Start the worker and return at once (R-8)."""
    jobs = Jobs(paths)
    with contextlib.ExitStack() as stack:
        try:
            log = stack.enter_context((jobs.directory(job.job) / "worker").open("xb"))
            (jobs.directory(job.job) / "worker").chmod(0o600)
            argv = [sys.executable, "-I", "-m", "tfx.route.worker", job.job]
            spawn_detached(argv, env=paths.env, stderr=log)
        except OSError as error:
            jobs.remove(job.job)
            raise OperationFailed(
                f"the background run cannot be started: {error.strerror or error}",
                code="not-started",
            ) from error
    return Jobs(paths).outcome(job, with_output=False).result()
