"""Run an agent CLI once: its own process group, output into files, an end that leaves nobody.

Knows neither roles nor records; it is told what to run, where, and for how long.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tfx.core.descendants import Descendant, adopt_orphans, below
from tfx.core.process import Session, Streams, kill_group
from tfx.route.relay import Kept, Relay
from tfx.route.signals import Interrupts

GRACE_S = 5.0
_STEP_S = 0.02
_POLL_S = 0.05
_KILL_STEPS = 500  # counted, as a clock goes on while we stand still
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_STARTED = {True: 127, False: 126}  # as a shell says it: not found, not executable

# Is there before the agent, is told its group, and ends it when we die without a word (SIGKILL).
_WATCH = """read -r group || exit 0
read -r word && exit 0
kill -TERM "-$group" 2>/dev/null
left=25
while [ "$left" -gt 0 ] && kill -0 "-$group" 2>/dev/null; do
    sleep 0.2 2>/dev/null || sleep 1
    left=$((left - 1))
done
kill -KILL "-$group" 2>/dev/null"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended: `code` as a shell counts it, 128 + N for signal N.

    `logs` tells how standard output and standard error were kept, when it was started.
    """

    code: int
    seconds: float
    timed_out: bool = False
    interrupted: bool = False
    why: str = ""
    logs: tuple[Kept, ...] = ()

    @property
    def crashed(self) -> bool:
        """True when a signal ended it, seen by us or by a wrapper of its own."""
        return self.code > 128  # noqa: PLR2004  (the shells' convention)


@dataclass(frozen=True, slots=True)
class Files:
    """What the agent reads and where its two streams go."""

    prompt: Path
    stdout: Path
    stderr: Path


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: the arguments, the program first, its environment and its directory.

    Each of its logs is kept to `log_cap_bytes`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    timeout_s: float
    log_cap_bytes: int


def attempt(order: Order, files: Files, interrupts: Interrupts) -> Ended:
    """Run it to its end, its time-out or an interrupt; nobody of a failed run is left (R-5).

    What a successful agent leaves running, a server say, was meant to stay. After an interrupt
    nothing is started. Raises OSError when the files cannot be opened; an agent that cannot be
    started is an end with status 126 or 127.
    """
    if interrupts.signum is not None:
        return Ended(128 + interrupts.signum, 0.0, interrupted=True)
    adopt_orphans()
    with _Watch() as watch:
        return _watched(order, files, interrupts, watch)


def _watched(order: Order, files: Files, interrupts: Interrupts, watch: _Watch) -> Ended:
    outsiders = below(os.getpid())
    started = time.monotonic()
    with (
        os.fdopen(os.open(files.prompt, _READ_ONLY), "rb") as prompt,
        Relay(files.stdout, files.stderr, order.log_cap_bytes) as relay,
    ):
        streams = Streams(prompt.fileno(), relay.stdout, relay.stderr, watch.listens_on)
        try:
            agent = Session(order.argv, env=order.env, cwd=order.cwd, streams=streams)
        except OSError as error:
            code = _NOT_STARTED[isinstance(error, FileNotFoundError)]
            return Ended(code, 0.0, why=f"cannot be started: {error.strerror or error}")
        relay.begin()
        ended_itself = _wait(agent, started + order.timeout_s, interrupts)
        left = agent.exit_code()
        is_done = ended_itself and left == 0
        if is_done:
            agent.reap()
        else:
            left = _end(agent, outsiders)
        logs = relay.finish(let_go=is_done)
    return Ended(
        _as_shells_say(left),
        time.monotonic() - started,
        timed_out=not ended_itself and interrupts.signum is None,
        interrupted=interrupts.signum is not None and not ended_itself,
        logs=logs,
    )


def _as_shells_say(code: int | None) -> int:
    if code is None:  # it had to be killed
        return 128 + signal.SIGKILL
    return code if code >= 0 else 128 - code


def _wait(agent: Session, deadline: float, interrupts: Interrupts) -> bool:
    """Wait for the agent; False at the deadline (monotonic, in seconds) or an interrupt."""
    with contextlib.ExitStack() as stack:
        ready: list[int] = [interrupts.fd]
        step_s = _POLL_S
        with contextlib.suppress(AttributeError, OSError):  # Linux; elsewhere it is polled
            ready.append(os.pidfd_open(agent.pid))
            stack.callback(os.close, ready[-1])
            step_s = math.inf
        while agent.exit_code() is None:
            left = deadline - time.monotonic()
            if left <= 0 or interrupts.signum is not None:
                return False
            select.select(ready, [], [], min(left, step_s))
            interrupts.drain()
    return True


def _end(agent: Session, outsiders: frozenset[Descendant]) -> int | None:
    """End the agent's group and everything below it: TERM, five seconds, KILL; its code."""

    def kin() -> frozenset[Descendant]:
        return below(os.getpid()) - outsiders

    known = kin()
    kill_group(agent.pid, signal.SIGTERM)
    for one in known:
        one.signal(signal.SIGTERM)
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        known |= kin()
        if agent.exit_code() is not None and not any(one.alive for one in known):
            break
        time.sleep(_STEP_S)
    code = agent.exit_code()
    kill_group(agent.pid)
    for _ in range(_KILL_STEPS):  # not for ever: a dead file system may hold one
        left = [one for one in known | kin() if one.alive]
        if not left:
            break
        for one in left:
            one.signal(signal.SIGKILL)
        time.sleep(_STEP_S)
    agent.end()
    _collect_orphans(agent, outsiders)
    return code


def _collect_orphans(agent: Session, outsiders: frozenset[Descendant]) -> None:
    """Reap what ended after it had come to us."""
    known = {one.pid for one in outsiders} | {agent.pid}
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


class _Watch:
    """Ends the agent's group should this process disappear."""

    def __init__(self) -> None:
        read_end, self._write_end = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._process: Session | None = Session(
                ("/bin/sh", "-c", _WATCH, "tfx-route-watch"),
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                cwd=Path("/"),
                streams=Streams(read_end, nothing, nothing),
            )
        except OSError:  # no shell: the run goes on unwatched
            self._process = None
        finally:
            os.close(read_end)
            os.close(nothing)

    @property
    def listens_on(self) -> int | None:
        """The descriptor that takes the group's number; None when there is no watch."""
        return None if self._process is None else self._write_end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.write(self._write_end, b"done\ndone\n")  # one line, or both of an unused one
        os.close(self._write_end)
        if self._process is not None:
            self._process.reap()
