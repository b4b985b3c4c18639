"""One engine call in a process of its own, which a test ends at a chosen or a random moment.

usage: python -m tests.plan.crashing TOP setup|remove VERSION STOP_AFTER_LINES
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.plan.machine import Machine


def main() -> None:
    top, operation, version, stop_after = sys.argv[1:]
    machine = Machine(Path(top))
    lines = 0

    def checkpoint(_: str) -> None:
        nonlocal lines
        lines += 1
        if lines == int(stop_after):
            os._exit(9)

    machine.checkpoint = checkpoint
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if operation == "remove":
        machine.remove()
    else:
        machine.apply(machine.desired(version))


if __name__ == "__main__":
    main()
