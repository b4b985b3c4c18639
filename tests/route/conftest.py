from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.route.fakes import Bench, benching


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benching(tmp_path) as made:
        yield made
