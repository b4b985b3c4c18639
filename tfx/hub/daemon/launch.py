"""Start the hub as a process of its own and wait until it serves: start and ensure.

Knows nothing of what the process does; it only reads what it reports (H-12).
"""

from __future__ import annotations

import contextlib
import json
import os
import site
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tfx
from tfx.core import locks, process
from tfx.core.paths import Paths
from tfx.errors import LockHeld, OperationFailed, StateConflict
from tfx.hub import settings as hub_settings
from tfx.hub.daemon import ports
from tfx.hub.daemon.probe import ANSWER_S, Probe, Reason, State, probe
from tfx.hub.daemon.readiness import LIMIT_S, Ready, await_ready
from tfx.hub.state import RunWishes

_PASSED = frozenset({"HOME", "PATH", "LANG", "TMPDIR"})
_PASSED_PREFIXES = ("XDG_", "TFX_")
_ENDING_S = 15.0
"""A hub that drains answers its calls for 5 s at most, cuts the others off and closes its files."""
_SLOW_S = 8.0
"""A start asks a hub that was silent once more, so long: nothing is lost by waiting for it."""
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Started:
    """A hub that serves, and whether this call started it."""

    probe: Probe
    by_us: bool
    drifted_from: int | None = None


def start(paths: Paths, wishes: RunWishes, *, limit_s: float = LIMIT_S) -> Started:
    """Return once a hub serves, starting one unless it runs as wished (H-1, H-4).

    Raises StateConflict `other-port` when it runs on another port than asked, `hub-unresponsive`
    when the lock's holder does not answer, LockHeld when an upgrade, backup or rebuild holds it;
    OperationFailed `port-taken` and whatever the starting process reports.
    """
    settings = hub_settings.resolve(paths, port=wishes.port, idle_exit_s=wishes.idle_exit_s)
    deadline = time.monotonic() + limit_s
    pause_s = _FIRST_PAUSE_S
    while True:
        seen = probe(paths, port=settings.port)
        if seen.reason is Reason.TIMEOUT:
            seen = probe(paths, port=settings.port, answer_s=_SLOW_S)
        if seen.state is State.RUNNING:
            return Started(_on_wished_port(seen, settings), by_us=False)
        if seen.state is State.UNRESPONSIVE:
            # whoever holds the lock but accepts nobody any more is most likely about to end
            if seen.reason is Reason.REFUSED and locks.wait_until_free(seen.files.lock, _ENDING_S):
                continue
            raise unresponsive(seen)
        if seen.state is not State.STARTING:
            if seen.state is State.FOREIGN and settings.port_asked:
                raise ports.taken(settings.port)
            with contextlib.suppress(LockHeld):  # another start was faster: wait for its hub
                ready = _spawn(paths, wishes, limit_s)
                wanted = settings.port
                drift = wanted if wanted not in {0, ready.port} else None
                # it serves, as it said: on a machine under load its answer may take its time
                left_s = max(ANSWER_S, deadline - time.monotonic())
                return Started(probe(paths, answer_s=left_s), by_us=True, drifted_from=drift)
        if time.monotonic() >= deadline:
            raise OperationFailed(
                f"another start of the hub was not ready within {limit_s:.0f} s",
                code="start-timeout",
                hint="tfx hub status",
            )
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def unresponsive(seen: Probe) -> StateConflict:
    """Return the error of a held lock without an answer; nothing of the holder is touched."""
    holder = seen.holder
    details = {
        "reason": seen.reason.value if seen.reason else None,
        "pid": holder.pid if holder else None,
        "purpose": holder.purpose if holder else None,
    }
    if seen.reason is Reason.OTHER_HOLDER and holder is not None:
        return LockHeld(
            f"{seen.files.database} is being worked on by tfx {holder.purpose} (pid {holder.pid})",
            hint="wait until it has ended, then run the command again",
            details={**details},
        )
    if seen.reason is Reason.LOCK_GONE and seen.recorded is not None:
        return StateConflict(
            f"a hub (pid {seen.recorded.pid}) runs without its lock: {seen.files.lock} was removed"
            " or replaced",
            code="hub-unresponsive",
            hint="tfx hub stop",
            details={**details, "pid": seen.recorded.pid},
        )
    who = f" (pid {holder.pid})" if holder else ""
    return StateConflict(
        f"a hub{who} holds {seen.files.lock} but does not answer: {details['reason']}",
        code="hub-unresponsive",
        hint="tfx hub stop",
        details={**details},
    )


def daemon_argv(wishes: RunWishes) -> list[str]:
    """Return the command of the hub's process: no secret in it, nothing of the environment."""
    document = {"port": wishes.port, "idle_exit_s": wishes.idle_exit_s}
    return [sys.executable, *isolation_flags(), "-m", "tfx.hub.daemon", json.dumps(document)]


def isolation_flags() -> list[str]:
    """Return Python's flags that keep the environment and the directory out (`-I`, K-30).

    An installation in the user's own site directory can only be found without the `-s` in `-I`.
    """
    package = Path(tfx.__file__).resolve()
    own_site = Path(site.getusersitepackages()).resolve()
    return ["-E", "-P"] if package.is_relative_to(own_site) else ["-I"]


def daemon_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return what a daemon may know of its starter's environment (K-30)."""
    return {
        name: value
        for name, value in env.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }


def _on_wished_port(seen: Probe, settings: hub_settings.HubSettings) -> Probe:
    running = seen.recorded
    if running is None or not settings.port_asked or settings.port in {0, running.port}:
        return seen
    raise StateConflict(
        f"the hub already runs at {running.url}, not on port {settings.port}",
        code="other-port",
        hint=f"tfx hub stop && tfx hub start --port {settings.port}",
        details={"url": running.url, "port": running.port, "asked": settings.port},
    )


def _spawn(paths: Paths, wishes: RunWishes, limit_s: float) -> Ready:
    read_end, write_end = os.pipe()
    try:
        try:
            process.spawn_detached(
                daemon_argv(wishes), env=daemon_environment(paths.env), stderr=write_end
            )
        except OSError as error:
            raise OperationFailed(
                f"{sys.executable} cannot be run: {error.strerror}", code="spawn-failed"
            ) from error
        finally:
            os.close(write_end)
        return await_ready(read_end, limit_s=limit_s)
    finally:
        os.close(read_end)
