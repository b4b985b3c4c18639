"""The entry of the detached process: wishes in argv, the ready line on standard error.

Imports as little as it can before the lock is taken: of twenty starts nineteen end there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tfx.core.paths import Paths
from tfx.errors import Exit, OperationFailed, TfxError
from tfx.hub.daemon.readiness import Ready, report_failure, report_ready
from tfx.hub.daemon.run import Voice
from tfx.hub.daemon.serve import serve
from tfx.hub.state import RunWishes

_STDERR = 2


def main() -> int:
    """Run the hub and return the exit status."""
    pipe = os.dup(_STDERR)
    told = False

    def log(path: Path) -> None:
        from tfx.hub.daemon import logs  # noqa: PLC0415  (after the lock)

        logs.to_file(path)

    def ready(facts: Ready) -> None:
        nonlocal told
        told = True
        report_ready(pipe, facts)
        os.close(pipe)

    try:
        serve(Paths.resolve(), RunWishes(**json.loads(sys.argv[1])), Voice(ready, log))
    except TfxError as error:
        if not told:
            report_failure(pipe, error)
        return int(error.exit)
    except Exception as error:
        if told:
            raise
        report_failure(
            pipe,
            OperationFailed(f"this is a bug in tfx: {type(error).__name__}", code="internal"),
        )
        raise
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
