from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.hub.driver import Bed, with_bed

T = TypeVar("T")
Play = Callable[[Callable[[Bed], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a story against a fresh hub on a fake clock."""

    def run(story: Callable[[Bed], Awaitable[None]]) -> None:
        with_bed(tmp_path / "hub.db", story)

    return run
