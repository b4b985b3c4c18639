"""What one run of the hub is made of, and what it takes back when it fails to start.

Knows neither lock nor loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tfx.core.paths import Paths
from tfx.hub import settings as hub_settings
from tfx.hub.daemon import ports
from tfx.hub.daemon.readiness import Ready
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes


@dataclass(frozen=True, slots=True)
class Voice:
    """How a run speaks: `ready` once it serves, `log` sets logging up before the store opens."""

    ready: Callable[[Ready], None]
    log: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the hub is made of."""

    paths: Paths
    files: HubFiles
    settings: hub_settings.HubSettings
    wishes: RunWishes
    listening: ports.Listening
    instance: str


class Undo:
    """What a start has made so far, to be taken back if it fails; nothing once it serves."""

    def __init__(self, files: HubFiles) -> None:
        database = files.database
        family = (database, *(database.with_name(database.name + s) for s in ("-wal", "-shm")))
        self._made = [path for path in (*family, files.log, files.state) if not path.exists()]

    def note(self, paths: Iterable[Path]) -> None:
        """Note files that this start made."""
        self._made.extend(paths)

    def keep(self) -> None:
        """Keep everything: from now on it is the user's."""
        self._made.clear()

    def take_back(self) -> None:
        """Remove what was noted; what was there before is left alone."""
        for path in self._made:
            with contextlib.suppress(OSError):
                path.unlink()
