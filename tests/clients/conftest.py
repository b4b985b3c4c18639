from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.clients.endpoint import Endpoint, serving
from tests.clients.installation import Unavailable, installation
from tests.clients.running import Clients


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
