from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty HOME."""
    directory = tmp_path / "home"
    directory.mkdir()
    return directory
