"""`tfx backup create`: by the running hub itself, or by the worker when it is stopped (K-22).

Opens no database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.errors import StateConflict
from tfx.hub.daemon import probe
from tfx.hub.daemon.probe import State as HubState
from tfx.result import Result
from tfx.upgrade import run
from tfx.upgrade.model import Receipt, Task
from tfx.upgrade.orders import Places, Told, phased

if TYPE_CHECKING:
    from tfx.core.paths import Paths


def create(paths: Paths, places: Places, told: Told) -> Result[Receipt]:
    """Return the receipt of one new verified backup."""
    with phased():
        if places.is_hub and probe.probe(paths).state is HubState.RUNNING:
            raise StateConflict("the hub is running", code="hub-running", hint="tfx hub stop")
        return Result(run.run(paths, places.request(Task.BACKUP), told))
