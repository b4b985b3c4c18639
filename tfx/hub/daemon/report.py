"""What start, stop, status, restart and ensure tell: one result for people and programs.

Computes nothing about messages; every word about the process comes from the probe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tfx.core.files import is_file
from tfx.core.paths import Paths
from tfx.errors import AgentUnavailable, JsonValue
from tfx.hub.daemon import launch
from tfx.hub.daemon.probe import Probe, State, probe
from tfx.hub.daemon.stop import Step, stop
from tfx.hub.places import TRIFLUX_DATABASE, HubFiles
from tfx.hub.state import RunWishes
from tfx.result import Problem, Result, Status


@dataclass(frozen=True, slots=True)
class HubData:
    """A hub as the command line shows it; what is not known is None."""

    state: State
    url: str | None
    pid: int | None
    port: int | None
    instance: str | None
    version: str | None
    database: str
    schema: Mapping[str, JsonValue] | None
    log: str
    uptime_ms: int | None = None
    reason: str | None = None
    started: bool = False
    stopped_by: Step | None = None
    stranger: Mapping[str, JsonValue] | None = None
    queues: Mapping[str, JsonValue] | None = None
    sessions: int | None = None
    durability: str | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def start(paths: Paths, wishes: RunWishes) -> Result[HubData]:
    """Start the hub or say that it runs (H-1); raises as `launch.start` does."""
    fresh = not is_file(HubFiles.of(paths).database)
    started = launch.start(paths, wishes)
    notes: list[str] = []
    if started.drifted_from is not None:
        notes.append(
            f"port {started.drifted_from} is held by another process; a free one was taken, and"
            " tfx's own clients follow it"
        )
    elif not started.by_us:
        notes.append("the hub was already running")
    if fresh and is_file(triflux := paths.home / TRIFLUX_DATABASE):
        notes.append(
            f"a triflux database lies at {triflux}; to take it over: tfx upgrade --adopt auto"
        )
    return Result(_data(started.probe, started=started.by_us, notes=tuple(notes)))


def ensure(paths: Paths) -> Result[HubData]:
    """Start the hub unless it runs, whatever port it is on (H-4)."""
    seen = probe(paths)
    if seen.state is State.RUNNING:
        return Result(_data(seen))
    return start(paths, RunWishes())


def stop_hub(paths: Paths) -> Result[HubData]:
    """Stop the hub and return when its lock is free (H-2); raises as `stop.stop` does."""
    stopped = stop(paths)
    after = probe(paths, port=0)
    note = (
        "no hub was running"
        if stopped.step is Step.NOTHING
        else f"stopped by {stopped.step.value} in {stopped.waited_ms} ms"
    )
    return Result(_data(after, stopped_by=stopped.step, notes=(note,)))


def restart(paths: Paths) -> Result[HubData]:
    """Stop, then start with the wishes of the stopped run (H-4)."""
    before = stop(paths).before
    return start(paths, before.recorded.wishes if before.recorded else RunWishes())


def status(paths: Paths) -> Result[HubData]:
    """Return what the probe sees; exit 0 for running, 4 for everything else (H-3)."""
    seen = probe(paths)
    data = _data(seen)
    if seen.state is State.RUNNING:
        return Result(data)
    hint = "tfx hub stop" if seen.state is State.UNRESPONSIVE else "tfx hub start"
    what = f": {data.reason}" if data.reason else ""
    error = AgentUnavailable(
        f"the hub is not running ({seen.state.value}{what})", code="hub-not-running", hint=hint
    )
    return Result(data, Status.UNAVAILABLE, (Problem.of(error),))


def _data(
    seen: Probe,
    *,
    started: bool = False,
    stopped_by: Step | None = None,
    notes: tuple[str, ...] = (),
) -> HubData:
    run = seen.recorded if seen.in_use else None
    hub = seen.status.get("hub")
    facts = hub if isinstance(hub, dict) else {}
    schema, queues, sessions = facts.get("schema"), seen.status.get("queues"), None
    if isinstance(seen.status.get("sessions"), int):
        sessions = seen.status.get("sessions")
    warnings = facts.get("warnings")
    return HubData(
        state=seen.state,
        url=run.url if run else None,
        pid=run.pid if run else seen.holder.pid if seen.holder else None,
        port=run.port if run else None,
        instance=run.instance if run else None,
        version=run.version if run else None,
        database=str(seen.files.database),
        schema=schema if isinstance(schema, dict) else None,
        log=str(seen.files.log),
        uptime_ms=time.time_ns() // 1_000_000 - run.started_at_ms if run else None,
        reason=seen.reason.value if seen.reason else None,
        started=started,
        stopped_by=stopped_by,
        stranger=({"pid": seen.stranger[0], "name": seen.stranger[1]} if seen.stranger else None),
        queues=queues if isinstance(queues, dict) else None,
        sessions=sessions if isinstance(sessions, int) else None,
        durability=str(facts["durability"]) if "durability" in facts else None,
        warnings=tuple(str(each) for each in warnings) if isinstance(warnings, list) else (),
        notes=notes,
    )
