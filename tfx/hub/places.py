"""Where one hub keeps its files: database, lock, state file, credentials and log.

Opens and creates nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import digest
from tfx.core.paths import Paths

TRIFLUX_DATABASE = Path(".claude/cache/tfx-hub/state.db")
"""Where triflux keeps the database of its hub, below the home directory (K-34)."""


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of the hub that owns one database.

    The database may be elsewhere (`TFX_HUB_DB`); everything else but the lock then stays in
    tfx's own directory, under names of its own, so that two hubs of one user never share them.
    Both credentials are those of the user, not of one database.
    """

    directory: Path
    database: Path
    lock: Path
    state: Path
    log: Path
    token: Path
    operator: Path

    @classmethod
    def of(cls, paths: Paths) -> HubFiles:
        """Return the files for an environment; the lock lies beside the real database (H-10)."""
        directory = paths.hub_dir
        default = real(directory / "hub.db")
        database = real(paths.variable("TFX_HUB_DB") or default)
        mark = "" if database == default else f"-{digest(os.fsencode(database))[:8]}"
        return cls(
            directory=directory,
            database=database,
            lock=database.with_name(f"{database.name}.lock"),
            state=directory / f"state{mark}.json",
            log=directory / f"hub{mark}.log",
            token=directory / "token",
            operator=directory / "operator",
        )


def real(path: Path) -> Path:
    """Return a path without symbolic links, whether or not it exists."""
    return Path(os.path.realpath(path))
