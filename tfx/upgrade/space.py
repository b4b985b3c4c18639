"""Step 5: does the work fit on every file system it needs (U-121).

Looks only.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Final

from tfx.errors import OperationFailed
from tfx.upgrade.model import Space

RESERVE: Final = 1 << 20
REBUILT: Final = 2.2
"""From version 1: the new rows beside the old ones, and the copy that VACUUM makes."""
ADDED: Final = 0.1
"""Tables come in, rows stay: a few pages and their journal."""
REFOLDED: Final = 1.2
"""New projections and the journal of the old ones."""


def needs(database: Path, store: Path, size: int, factor: float) -> tuple[Space, ...]:
    """Return what each file system must have free; needs on one of them add up."""
    wanted: dict[int, int] = defaultdict(int)
    places: dict[int, Path] = {}
    for place, amount in ((store, size), (database.parent, int(size * factor))):
        nearest = place
        while not nearest.exists():
            nearest = nearest.parent
        device = nearest.stat().st_dev
        places.setdefault(device, nearest)
        wanted[device] += amount + RESERVE
    return tuple(
        Space(str(places[device]), amount, free_bytes(places[device]))
        for device, amount in wanted.items()
    )


def free_bytes(place: Path) -> int:
    """Return what an ordinary user may still write there."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def refuse_when_short(spaces: tuple[Space, ...]) -> None:
    """Raise OperationFailed `no-space` naming the first file system that is too small."""
    for each in spaces:
        if each.free_bytes < each.needed_bytes:
            raise OperationFailed(
                f"{each.path} has {each.free_bytes:,} bytes free; {each.needed_bytes:,} are needed",
                code="no-space",
                hint=f"df -h {each.path}",
                details={
                    "path": each.path,
                    "needed_bytes": each.needed_bytes,
                    "free_bytes": each.free_bytes,
                },
            )
