"""The hub's own process: everything from the lock to the ready line, and back (§3 of the design).

Knows nothing of messages; the order of its steps is the contract.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator

from tfx.core import locks
from tfx.core.paths import Paths
from tfx.errors import LockHeld, OperationFailed
from tfx.hub import settings as hub_settings
from tfx.hub import state as state_file
from tfx.hub.daemon import ground, notify, ports
from tfx.hub.daemon.probe import HUB
from tfx.hub.daemon.run import Run, Undo, Voice
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

_INSTANCE_BYTES = 16


def serve(paths: Paths, wishes: RunWishes, voice: Voice) -> None:
    """Be the hub until a signal or a shutdown request; return when the lock is free again.

    Raises LockHeld, and OperationFailed, StateConflict or UnsafeEnvironment with the reason;
    what this run made before it failed is gone then, save the directory and the lock file.
    """
    os.umask(0o077)
    settings = hub_settings.resolve(paths, port=wishes.port, idle_exit_s=wishes.idle_exit_s)
    files = HubFiles.of(paths)
    ground.prepare(files)
    with _locked(files):
        listening = _listen(paths, settings)
        with listening.socket:
            state_file.remove(files.state)  # of a run that died: its lock is ours now
            run = Run(paths, files, settings, wishes, listening, secrets.token_hex(_INSTANCE_BYTES))
            _run(run, voice)


def _run(run: Run, voice: Voice) -> None:
    from tfx.hub.daemon import live  # noqa: PLC0415  (a start that loses the lock imports none)

    undo = Undo(run.files)
    try:
        voice.log(run.files.log)
        live.run(run, undo, voice.ready)
    except OperationFailed as error:
        told = ground.blamed(error, run.files.database.parent)
        undo.take_back()
        if told is error:
            raise
        raise told from error
    except OSError as error:
        undo.take_back()
        raise ground.unusable(run.files.directory, error) from error
    except BaseException:
        undo.take_back()
        raise


def _listen(paths: Paths, settings: hub_settings.HubSettings) -> ports.Listening:
    given = notify.passed_socket(paths.env)
    if given is not None:
        return ports.adopt(given)
    return ports.listen(settings.port, strict=settings.port_asked)


@contextlib.contextmanager
def _locked(files: HubFiles) -> Iterator[None]:
    try:
        lock = locks.try_lock(files.lock, HUB)
    except OSError as error:
        raise ground.unusable(files.lock, error) from error
    if lock is None:
        holder = locks.holder(files.lock)
        who = f" by tfx {holder.purpose} (pid {holder.pid})" if holder else ""
        raise LockHeld(
            f"{files.lock} is held{who}",
            hint="tfx hub status",
            details={"pid": holder.pid if holder else None},
        )
    with lock:
        yield
