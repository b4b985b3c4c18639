"""A clinic whose hub has a port of its own, and a scene in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor.work.scene import Scene
from tests.doctor.world import Clinic
from tests.hub.running import free_port, start


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path)
    made.env["TFX_HUB_PORT"] = str(free_port())
    return made


@pytest.fixture
def scene(clinic: Clinic) -> Iterator[Scene]:
    made = Scene(clinic, start(clinic.home, clinic.env))
    try:
        yield made
    finally:
        made.hub.end()
