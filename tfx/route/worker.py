"""Carry out one background run; started by `tfx route --background`, outlives it (R-8).

Speaks to nobody: what happens is in the record.
"""

from __future__ import annotations

import sys

from tfx.core.paths import Paths
from tfx.route.carry_out import carry_out
from tfx.route.jobs import Jobs
from tfx.route.table import bundled


def main(job: str) -> None:
    """Carry out the job of this id."""
    paths = Paths.resolve()
    carry_out(paths, bundled(), Jobs(paths).load(job))


if __name__ == "__main__":
    main(sys.argv[1])
