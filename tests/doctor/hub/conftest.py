from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor.world import Clinic
from tests.hub.running import RunningHub, free_port, start


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path)
    made.env["TFX_HUB_PORT"] = str(free_port())
    return made


@pytest.fixture
def hub(clinic: Clinic) -> Iterator[RunningHub]:
    running = start(clinic.home, clinic.env)
    try:
        yield running
    finally:
        running.end()
