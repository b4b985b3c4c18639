"""Renew a credential and make a running hub take it (K-28).

Never shows a value.
"""

from __future__ import annotations

import contextlib
import http.client
import signal
import time

from tfx.core import locks, process
from tfx.core.files import make_private_dir
from tfx.core.paths import Paths
from tfx.errors import OperationFailed
from tfx.hub import tokens
from tfx.hub.daemon.ground import unusable
from tfx.hub.daemon.probe import Probe, State, probe
from tfx.hub.exchange import Exchange
from tfx.hub.places import HubFiles
from tfx.hub.tokens import Credential

_OK = 200
_TAKEN_S = 15.0


def rotate(paths: Paths, which: Credential) -> dict[str, str]:
    """Replace a credential; a running hub is told, and has taken it when this returns.

    Raises OperationFailed `not-taken` when the running hub still refuses the new value, with the
    restart as the way out, or `io` when the file cannot be written.
    """
    files = HubFiles.of(paths)
    seen = probe(paths, port=0)
    try:
        make_private_dir(files.directory)
        value = tokens.renew(paths, files, which)
    except OSError as error:
        raise unusable(files.directory, error) from error
    now = seen.state
    if now is State.RUNNING and not _taken(seen, value):
        now = State.STOPPED
    path = files.token if which is Credential.BUS else files.operator
    return {
        "renewed": which.value,
        "path": str(path),
        "hub": now.value,
    }


def _taken(seen: Probe, value: str) -> bool:
    """Make a running hub take the value; False when it ended, so that its next start will."""
    run = seen.recorded
    if run is None:
        return False
    process.signal_exactly(run.pid, run.start_token, signal.SIGHUP)
    deadline = time.monotonic() + _TAKEN_S
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            Exchange(run.url, value) as exchange,
        ):
            if exchange.send("GET", "/status", None, timeout_s=_TAKEN_S).status == _OK:
                return True
        if not locks.is_held(seen.files.lock):
            return False
        time.sleep(0.01)
    raise OperationFailed(
        "the credential was renewed, but the running hub did not take it",
        code="not-taken",
        hint="tfx hub restart",
    )
