"""The hub while it lives: open, serve, say so, wait for the end, close in order.

Runs on one event loop; the lock and the socket are held by the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from enum import StrEnum

import uvloop

from tfx import __version__
from tfx.core.clock import SystemClock
from tfx.core.identity import boot_id, start_token
from tfx.errors import OperationFailed
from tfx.hub import server, tokens
from tfx.hub import state as state_file
from tfx.hub.announce import Announcer
from tfx.hub.daemon import ground, limits, notify, ports
from tfx.hub.daemon.readiness import Ready
from tfx.hub.daemon.run import Run, Undo
from tfx.hub.models import RunFacts
from tfx.hub.state import HubState

SWITCH_S = 0.0005
"""How long loop and writer may keep the interpreter from each other: a commit takes less than the
5 ms that Python gives by itself, and every waiting call would pay them (H-119)."""
_LOOKS_PER_IDLE = 4
_logger = logging.getLogger("tfx.hub.daemon")


class End(StrEnum):
    """Why a run ended."""

    SIGNAL = "signal"
    REQUEST = "shutdown request"
    IDLE = "idle"
    WRITER_DIED = "writer died"


def run(of: Run, undo: Undo, ready: Callable[[Ready], None]) -> None:
    """Live until the end; raises what prevented the start, or OperationFailed `writer-died`."""
    sys.setswitchinterval(SWITCH_S)
    limits.forbid_core()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        end = runner.run(_live(of, undo, ready))
    if end is End.WRITER_DIED:
        raise OperationFailed(
            "the hub's writer died; nothing could be stored any more",
            code="writer-died",
            hint="tfx hub logs",
        )


async def _live(of: Run, undo: Undo, ready: Callable[[Ready], None]) -> End:
    state = _state_of(of)
    clock = SystemClock()
    facts = _facts_of(of, state)
    env = {name: value for name, value in of.paths.env.items() if name != "TFX_HUB_TOKEN"}
    announcer = Announcer(of.settings.notify, env)
    core = server.open_core(of.files, of.settings, facts, clock, announce=announcer)
    try:
        credentials, made = tokens.ensure(of.paths, of.files)
        undo.note(made)
        ground.narrow(of.files)  # not before the database has proved to be ours
        hub = server.Hub(
            core,
            credentials,
            of.settings,
            facts,
            clock,
            most_connections=limits.most_connections(),
        )
        await hub.start(of.listening.socket)
    except BaseException:
        await core.close()
        raise
    signalled = _signals(lambda: hub.renew(tokens.ensure(of.paths, of.files)[0]))
    try:
        state_file.write(of.files.state, state)
        undo.keep()
        _logger.info("hub %s of instance %s serves %s", __version__, state.instance, state.url)
        ready(Ready(state.pid, state.port, state.url, state.instance, state.version))
        notify.notify(of.paths.env, "READY=1")
        end = await _first_end(of, hub, signalled)
        _logger.info("stopping: %s", end.value)
        notify.notify(of.paths.env, "STOPPING=1")
    finally:
        cut = await hub.stop()
        state_file.remove(of.files.state)
    if cut:
        _logger.warning("%d calls were cut off", cut)
    return end


async def _first_end(of: Run, hub: server.Hub, signalled: asyncio.Event) -> End:
    waits: dict[End, Coroutine[object, object, object]] = {
        End.SIGNAL: signalled.wait(),
        End.REQUEST: hub.stop_asked.wait(),
        End.WRITER_DIED: hub.core.failed.wait(),
    }
    if of.settings.idle_exit_s is not None:
        waits[End.IDLE] = _idle(hub, of.settings.idle_exit_s)
    tasks = {asyncio.ensure_future(wait): end for end, wait in waits.items()}
    async with _watchdog(of):
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    ends = {tasks[task] for task in done}
    return next(end for end in End if end in ends)


def _signals(renew: Callable[[], None]) -> asyncio.Event:
    """Return an event set by SIGTERM or SIGINT; a second signal ends the process now (H-17).

    SIGHUP reads the credentials again (`tfx hub token rotate`).
    """
    first = asyncio.Event()

    def caught() -> None:
        if first.is_set():
            os._exit(1)
        first.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, caught)
    loop.add_signal_handler(signal.SIGHUP, renew)
    return first


async def _idle(hub: server.Hub, idle_exit_s: int) -> None:
    while hub.idle_ms() < idle_exit_s * 1000:  # noqa: ASYNC110  (time itself is awaited)
        await asyncio.sleep(min(1.0, idle_exit_s / _LOOKS_PER_IDLE))


@contextlib.asynccontextmanager
async def _watchdog(of: Run) -> AsyncIterator[None]:
    interval_s = notify.watchdog_s(of.paths.env)

    async def alive() -> None:
        while interval_s is not None:
            notify.notify(of.paths.env, "WATCHDOG=1")
            await asyncio.sleep(interval_s)

    task = asyncio.ensure_future(alive())
    try:
        yield
    finally:
        task.cancel()


def _state_of(of: Run) -> HubState:
    port = of.listening.port
    return HubState(
        instance=of.instance,
        pid=os.getpid(),
        start_token=start_token(os.getpid()) or "",
        boot_id=boot_id(),
        host=socket.gethostname(),
        url=f"http://{ports.HOST}:{port}",
        port=port,
        version=__version__,
        database=str(of.files.database),
        started_at_ms=SystemClock().now_ms(),
        wishes=of.wishes,
    )


def _facts_of(of: Run, state: HubState) -> RunFacts:
    return RunFacts(
        instance=state.instance,
        version=state.version,
        pid=state.pid,
        host=state.host,
        port=state.port,
        url=state.url,
        started_at_ms=state.started_at_ms,
        database=state.database,
        log=str(of.files.log),
    )
