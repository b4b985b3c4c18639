from __future__ import annotations

from pathlib import Path

import pytest

from tests.upgrade.scenes import Site


@pytest.fixture
def site(home: Path) -> Site:
    """A home in which nothing of tfx is yet."""
    home.chmod(0o700)
    made = Site(home)
    made.database.parent.mkdir(parents=True, mode=0o700)
    return made
