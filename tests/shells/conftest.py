from __future__ import annotations

from pathlib import Path

import pytest

from tests.shells.world import World


@pytest.fixture
def world(home: Path) -> World:
    """An empty HOME with a program in ~/bin."""
    made = World.at(home)
    made.tool("bin/tool")
    return made
