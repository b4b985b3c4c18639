from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.endpoint import Endpoint, serving
from tests.clients.installation import installation
from tests.clients.model_stub import Model, model
from tests.clients.running import Clients
from tests.npm import Unavailable


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """The real clients; without npm a skip, in CI a failure (K-43)."""
    try:
        installed = installation()
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no clients in CI: {reason}")
        pytest.skip(str(reason))
    return Clients(installed, tmp_path_factory.mktemp("clients"))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A loopback MCP endpoint of the test's own."""
    with serving() as served:
        yield served


@pytest.fixture
def served() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git repository outside the HOME under test (S-112); Codex runs nowhere else."""
    where = tmp_path / "checkout"
    where.mkdir()
    subprocess.run(["git", "init", "-q", str(where)], check=True)
    return where


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME per CLI for the module: some unpack themselves at their first start."""
    return tmp_path_factory.mktemp("homes")
