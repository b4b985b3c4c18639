from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.world import Clinic


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    """A machine with two agents that every shell finds, set up."""
    made = Clinic(tmp_path, "claude", "codex").everywhere()
    ran = made.setup()
    assert ran.code == 0, ran.err
    return made
