from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, start


@pytest.fixture
def hub(home: Path) -> Iterator[RunningHub]:
    """A hub of its own on a free port; it is stopped whatever the test did."""
    running = start(home)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """One hub for the tests of a module that leave it as it was."""
    running = start(tmp_path_factory.mktemp("home"))
    try:
        yield running
    finally:
        running.end()
