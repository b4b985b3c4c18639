"""The real daemon with one fault injected once it serves: `python -m tests.hub.injected FAULT …`.

Faults that a test cannot bring about from outside: a writer thread that dies, a loop that hangs.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tfx.hub import server
from tfx.hub.daemon import __main__ as daemon
from tfx.hub.daemon.readiness import Ready, report_ready
from tfx.hub.store.store import Store
from tfx.hub.store.tx import Tx


def kill_writer() -> None:
    """Let a command end the writer's thread, as no memory would."""

    def die(_tx: Tx) -> None:
        raise SystemExit("canary-of-the-writer")

    (store,) = (each for each in gc.get_objects() if isinstance(each, Store))
    store.queue(die)


def hang_loop() -> None:
    """Block the event loop: no handler, no request and no signal handler gets on."""
    Path(os.environ["HOME"], "hung").touch()
    time.sleep(600)


def patient_end() -> None:
    """Let calls go on for long at the end, so that a test can look at a hub that ends."""
    server.FINISH_S = 120.0


def few_files() -> None:
    """Leave room for few descriptors, as a low `ulimit -n` would."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))


FAULTS: dict[str, Callable[[], None]] = {
    "dead-writer": kill_writer,
    "hung-loop": hang_loop,
    "patient-end": patient_end,
    "few-files": few_files,
}


def main() -> int:
    """Run the daemon of this process's environment with the fault named first in argv."""
    fault = FAULTS[sys.argv.pop(1)]

    def told(descriptor: int, ready: Ready) -> None:
        report_ready(descriptor, ready)
        if fault is patient_end:
            fault()  # before anybody can ask for the end
        else:
            asyncio.get_running_loop().call_later(0.2, fault)

    daemon.report_ready = told  # type: ignore[attr-defined]
    return daemon.main()


if __name__ == "__main__":
    sys.exit(main())
