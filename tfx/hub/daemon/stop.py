"""Stop the hub: ask, then signal, then kill, and return when the lock is free (H-16).

Never signals a bare pid (H-15); deletes nothing.
"""

from __future__ import annotations

import http.client
import signal
import time
from dataclasses import dataclass
from enum import StrEnum

from tfx.core import locks, process
from tfx.core.paths import Paths
from tfx.errors import OperationFailed, StateConflict, TfxError
from tfx.hub import tokens
from tfx.hub.daemon.launch import unresponsive
from tfx.hub.daemon.probe import HUB, Probe, Reason, State, probe
from tfx.hub.exchange import Exchange
from tfx.hub.state import HubState

_ACCEPTED = 200
_PAUSE_S = 0.02


class Step(StrEnum):
    """What ended it."""

    NOTHING = "nothing-running"
    REQUEST = "request"
    SIGTERM = "sigterm"
    SIGKILL = "sigkill"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each step may take, in seconds."""

    request_s: float = 10.0
    sigterm_s: float = 5.0
    sigkill_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step that ended the hub, and what was seen before."""

    step: Step
    before: Probe
    waited_ms: int = 0


def stop(paths: Paths, patience: Patience = Patience()) -> Stopped:
    """Stop the hub of this user and return when its lock is free; nothing running is fine.

    Raises LockHeld when an upgrade, backup or rebuild holds the lock, StateConflict when the
    holder cannot be told beyond doubt, OperationFailed when not even SIGKILL freed the lock.
    """
    started = time.monotonic()
    seen = probe(paths, port=0)
    if not seen.in_use:
        return Stopped(Step.NOTHING, seen)
    if seen.reason is Reason.LOCK_GONE and seen.recorded is not None:
        _end_without_lock(seen, seen.recorded, patience)
        return Stopped(Step.REQUEST, seen, round((time.monotonic() - started) * 1000))
    if seen.reason is Reason.OTHER_HOLDER:
        raise unresponsive(seen)
    step = _end(seen, patience)
    return Stopped(step, seen, round((time.monotonic() - started) * 1000))


def _end(seen: Probe, patience: Patience) -> Step:
    lock = seen.files.lock
    deadline = time.monotonic() + patience.request_s
    asked = _ask(seen, patience.request_s)
    if asked or seen.state is State.STARTING:
        left_s = max(0.0, deadline - time.monotonic())
        if locks.wait_until_free(lock, left_s if asked else min(left_s, 1.0)):
            return Step.REQUEST
    for step, signum, wait_s in (
        (Step.SIGTERM, signal.SIGTERM, patience.sigterm_s),
        (Step.SIGKILL, signal.SIGKILL, patience.sigkill_s),
    ):
        _signal_holder(seen, signum)
        if locks.wait_until_free(lock, wait_s):
            return step
    raise OperationFailed(
        f"{lock} is still held after SIGKILL",
        code="stop-failed",
        hint=f"fuser -v {lock}",
        details={"lock": str(lock)},
    )


def _end_without_lock(seen: Probe, recorded: HubState, patience: Patience) -> None:
    """Ask a hub that lost its lock to end, and wait until its process is gone.

    No signal: that a state file names a process is a hint, and no lock proves it (H-13, H-15).
    """
    deadline = time.monotonic() + patience.request_s
    asked = _ask(seen, patience.request_s)
    while asked and recorded.lives and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    if recorded.lives:
        raise StateConflict(
            f"a hub (pid {recorded.pid}) runs without its lock and did not end when it was asked;"
            " nothing was signalled",
            code="holder-unknown",
            hint=f"end it yourself: kill {recorded.pid}",
            details={"pid": recorded.pid, "lock": str(seen.files.lock)},
        )


def _ask(seen: Probe, timeout_s: float) -> bool:
    """Ask the hub to shut down with the operator credential; False when it did not agree."""
    if seen.recorded is None or seen.state is State.STARTING:
        return False
    try:
        with Exchange(seen.recorded.url, tokens.read_operator(seen.files)) as exchange:
            answer = exchange.send("POST", "/v1/shutdown", b"{}", timeout_s=timeout_s)
    except (OSError, http.client.HTTPException, TfxError):
        return False
    return answer.status == _ACCEPTED


def _signal_holder(seen: Probe, signum: signal.Signals) -> None:
    """Signal the process that holds the lock now, if its name proves to be its own."""
    lock = seen.files.lock
    if not locks.is_held(lock):
        return
    holder = locks.holder(lock)
    if holder is None or holder.purpose != HUB or not holder.alive:
        if not locks.is_held(lock):
            return
        raise StateConflict(
            f"{lock} is held, but by whom cannot be told beyond doubt; nothing was signalled",
            code="holder-unknown",
            hint=f"fuser -v {lock}",
            details={"lock": str(lock)},
        )
    try:
        process.signal_exactly(holder.pid, holder.start_token, signum)
    except PermissionError as error:
        raise StateConflict(
            f"the hub (pid {holder.pid}) belongs to another user and was not signalled",
            code="holder-unknown",
            details={"pid": holder.pid},
        ) from error
