from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, so that a red run is a change; HYPOTHESIS_EXPLORE=1 looks for new.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HYPOTHESIS_EXPLORE") else "same")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty HOME."""
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """What a worker sets for its whole process, called here in ours, ends with the test."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
