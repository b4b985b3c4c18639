"""Renew a credential and make a running hub take it (K-28).

Never shows a value.
"""

from __future__ import annotations

import signal
import time

from tfx.core import process
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
_TAKEN_S = 5.0


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
    running = seen.state is State.RUNNING
    if running:
        _tell(seen, value)
    path = files.token if which is Credential.BUS else files.operator
    return {
        "renewed": which.value,
        "path": str(path),
        "hub": "running" if running else seen.state.value,
    }


def _tell(seen: Probe, value: str) -> None:
    run = seen.recorded
    if run is None:
        return
    process.signal_exactly(run.pid, run.start_token, signal.SIGHUP)
    deadline = time.monotonic() + _TAKEN_S
    while time.monotonic() < deadline:
        with Exchange(run.url, value) as exchange:
            if exchange.send("GET", "/status", None, timeout_s=_TAKEN_S).status == _OK:
                return
        time.sleep(0.01)
    raise OperationFailed(
        "the credential was renewed, but the running hub did not take it",
        code="not-taken",
        hint="tfx hub restart",
    )
