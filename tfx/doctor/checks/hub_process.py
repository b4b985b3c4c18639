"""The hub as a process: its state, its version, the file that a dead one left.

Every word about the process comes from the one probe (H-14); nothing is signalled or started.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx import __version__
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.hub.daemon.probe import Probe
    from tfx.hub.state import HubState
    from tfx.plan.actions import Action, ActionKind, Reason

_START = Remedy("start it", "tfx hub start")
_STOP = Remedy("end it in order", "tfx hub stop")
_LOGS = Remedy("read its last words", "tfx hub logs")


def health(facts: Facts) -> Iterator[Finding]:
    """Yield the state of the hub in one row (D-107, D-163)."""
    seen = facts.probe
    details = _details(seen)
    match seen.state.value:
        case "running":
            yield _running(seen, details)
        case "stopped":
            yield Finding("hub", Status.INFO, "is not running", details, (_START,))
        case "stopped-stale":
            summary = "is not running; the last one ended without cleaning up"
            yield Finding("hub", Status.INFO, summary, details, (_START, _LOGS))
        case "starting":
            yield Finding("hub", Status.INFO, "is starting", details)
        case "foreign-process-on-port":
            summary = "is not running; a stranger has the port it prefers (hub.port)"
            yield Finding("hub", Status.INFO, summary, details, (_START,))
        case _:
            yield _unresponsive(seen, details)


def _details(seen: Probe) -> dict[str, JsonValue]:
    run = seen.recorded if seen.in_use else None
    return {
        "state": seen.state.value,
        "reason": seen.reason.value if seen.reason else None,
        "pid": run.pid if run else seen.holder.pid if seen.holder else None,
        "port": run.port if run else None,
        "version": run.version if run else None,
        "log": str(seen.files.log),
    }


def _running(seen: Probe, details: dict[str, JsonValue]) -> Finding:
    version = seen.recorded.version if seen.recorded else "?"
    if version != __version__:
        return Finding(
            "hub",
            Status.WARN,
            f"runs, but as tfx {version}; {__version__} is installed",
            details,
            (Remedy("restart it when no work is open", "tfx hub restart"),),
            MANUAL,
        )
    hub = seen.status.get("hub")
    facts = hub if isinstance(hub, dict) else {}
    warnings = facts.get("warnings")
    if isinstance(warnings, list) and warnings:
        details["warnings"] = warnings
        summary = f"runs, and says: {warnings[0]}"
        return Finding("hub", Status.WARN, summary, details, (_LOGS,), MANUAL)
    port = seen.recorded.port if seen.recorded else None
    return Finding("hub", Status.OK, f"runs as tfx {version} on port {port}", details)


_WHY = {
    "timeout": ("holds the lock and does not answer in time", (_STOP, _LOGS)),
    "refused": ("holds the lock, but nothing listens at its address", (_STOP, _LOGS)),
    "token-mismatch": (
        "runs with another token than the one in its file",
        (Remedy("restart it, so that it reads the file again", "tfx hub restart"),),
    ),
    "other-instance": (
        "holds the lock, but another instance answers at its address",
        (_STOP, _LOGS),
    ),
    "lock-gone": ("runs without its lock, which was removed or replaced", (_STOP, _LOGS)),
    "no-state-file": ("holds the lock without a state file", (_STOP, _LOGS)),
}


def _unresponsive(seen: Probe, details: dict[str, JsonValue]) -> Finding:
    reason = seen.reason.value if seen.reason else ""
    if reason == "other-holder":
        who = seen.holder.purpose if seen.holder else "something"
        summary = f"the database is being worked on by tfx {who}"
        wait = Remedy("wait until it has ended")
        return Finding("hub", Status.INFO, summary, details, (wait,))
    words, remedies = _WHY.get(reason, (reason, (_STOP,)))
    return Finding("hub", Status.FAIL, f"unresponsive: {words}", details, remedies, MANUAL)


def state_file(facts: Facts) -> Iterator[Finding]:
    """Yield whether state file, process and lock belong together (D-106, D-172)."""
    from tfx.core.identity import start_token  # noqa: PLC0415  (start-up rule)

    seen = facts.probe
    path = seen.files.state
    target = facts.paths.display(path)
    if seen.reason is not None and seen.reason.value == "lock-gone" and seen.recorded is not None:
        yield _lockless(target, seen.recorded)
        return
    if seen.in_use:
        pid = seen.holder.pid if seen.holder else None
        details: dict[str, JsonValue] = {"pid": pid}
        yield Finding(target, Status.OK, f"the lock is held by process {pid}", details)
        return
    if not path.exists():
        yield Finding(target, Status.OK, "no hub, and no state file of one")
        return
    recorded = seen.recorded
    if recorded is None:
        yield _stale(facts, "it cannot be read as a hub's state", {})
        return
    details = {"pid": recorded.pid, "port": recorded.port, "boot_id": recorded.boot_id}
    token = start_token(recorded.pid)
    if token is None:
        yield _stale(facts, f"process {recorded.pid} is gone", details)
    elif recorded.lives:  # it may be a hub that starts or ends just now: nothing is deleted
        summary = f"process {recorded.pid} lives, but neither holds the lock nor serves: look again"
        yield Finding(target, Status.UNKNOWN, summary, details)
    else:
        summary = f"process {recorded.pid} is another program now: nobody holds the hub's lock"
        yield _stale(facts, summary, details)


def _lockless(target: str, recorded: HubState) -> Finding:
    """Return the finding of a hub that lives without its lock: a second one could start."""
    return Finding(
        target,
        Status.FAIL,
        f"the hub (pid {recorded.pid}) runs without its lock, which was removed or replaced",
        {"pid": recorded.pid, "port": recorded.port, "boot_id": recorded.boot_id},
        (
            Remedy("end it in order, then start it again", "tfx hub stop"),
            Remedy("if it does not end, end it yourself", f"kill {recorded.pid}"),
        ),
        MANUAL,
    )


def _stale(facts: Facts, why: str, details: dict[str, JsonValue]) -> Finding:
    from tfx.plan.actions import ActionKind, Reason  # noqa: PLC0415  (start-up rule)

    path = facts.probe.files.state
    action = upkeep(path, ActionKind.DELETE, Reason.LEFT_BEHIND)
    repair = Repair(FixClass.AUTO, (action,), under_hub_lock=True) if action else MANUAL
    return Finding(
        facts.paths.display(path),
        Status.WARN,
        f"left behind: {why}",
        details,
        (Remedy("the next start replaces it; `--fix` removes it", "tfx hub start"),),
        repair,
    )


def upkeep(path: Path, kind: ActionKind, reason: Reason, mode: int | None = None) -> Action | None:
    """Return the action on one small file of tfx's own, or None when it cannot be read."""
    from tfx.plan.actions import Action, State  # noqa: PLC0415  (start-up rule)
    from tfx.plan.look import Obstacle, look  # noqa: PLC0415

    try:
        found = look(path)
    except Obstacle:
        return None
    if found.state is None or found.linked:
        return None
    new = None if mode is None else State(found.state.sha256, mode)
    return Action(kind, reason, str(path), path, disk=found.state, new=new)
