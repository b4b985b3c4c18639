"""Rebuild while no hub runs: one worker under the hub's lock (K-22).

Opens the database as the hub would; serves nothing.
"""

from __future__ import annotations

import asyncio
import os
from typing import cast

import msgspec

from tfx import __version__
from tfx.core import locks
from tfx.core.clock import SystemClock
from tfx.core.files import is_file
from tfx.core.identity import identify
from tfx.core.paths import Paths
from tfx.errors import NotFound
from tfx.hub import server
from tfx.hub import settings as hub_settings
from tfx.hub.daemon import ground
from tfx.hub.daemon.launch import unresponsive
from tfx.hub.daemon.probe import probe
from tfx.hub.models import Caller, RunFacts
from tfx.hub.places import HubFiles
from tfx.hub.wire.admin import (
    RebuildCheckRequest,
    RebuildCheckResult,
    RebuildRequest,
    RebuildResult,
)


def rebuild(paths: Paths) -> RebuildResult:
    """Fold the projections again, those of an older fold too (K-23); raises as `_worked` does."""
    return cast("RebuildResult", _worked(paths, "rebuild", RebuildRequest()))


def check(paths: Paths) -> RebuildCheckResult:
    """Compare the projections with a fold; raises as `_worked` does."""
    return cast("RebuildCheckResult", _worked(paths, "rebuild_check", RebuildCheckRequest()))


def _worked(paths: Paths, name: str, request: msgspec.Struct) -> msgspec.Struct:
    """Run one operation under the lock.

    Raises NotFound without a database, LockHeld or StateConflict while somebody holds the lock,
    and what opening the store raises.
    """
    files = HubFiles.of(paths)
    if not is_file(files.database):
        raise NotFound(
            f"there is no hub database at {files.database}",
            code="no-database",
            hint="tfx hub start",
        )
    os.umask(0o077)
    ground.prepare(files)
    lock = locks.try_lock(files.lock, "rebuild")
    if lock is None:
        raise unresponsive(probe(paths, port=0))
    with lock:
        return asyncio.run(_operate(paths, files, name, request))


async def _operate(
    paths: Paths, files: HubFiles, name: str, request: msgspec.Struct
) -> msgspec.Struct:
    core = server.open_core(
        files,
        hub_settings.resolve(paths),
        _facts(files),
        SystemClock(),
        for_rebuild=name == "rebuild",
    )
    try:
        return await core.handlers[name](Caller(operator=True), request)
    finally:
        await core.close()


def _facts(files: HubFiles) -> RunFacts:
    """Return the facts of a worker: it is nowhere to be reached."""
    identity = identify()
    return RunFacts(
        instance="",
        version=__version__,
        pid=os.getpid(),
        host=identity.host if identity else "",
        port=0,
        url="",
        started_at_ms=SystemClock().now_ms(),
        database=str(files.database),
        log=str(files.log),
    )
