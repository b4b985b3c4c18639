from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assets.scripted import SHELLS, Bench, end_all, make_bench


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """In each shell that has to run the script."""
    shell: tuple[str, ...] = request.param
    found = shutil.which(shell[0])
    if found is None:
        pytest.skip(f"{shell[0]} is not installed")
    made = make_bench(tmp_path, (found, *shell[1:]))
    yield made
    end_all(made)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Bench]:
    """In the shell of its first line, for what does not depend on the shell."""
    made = make_bench(tmp_path, ())
    yield made
    end_all(made)
