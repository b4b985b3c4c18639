from __future__ import annotations

import os

import pytest

from tests.conformance.node import Tools, tools
from tests.hub.conftest import hub, shared_hub
from tests.npm import Unavailable

__all__ = ["hub", "shared_hub"]


@pytest.fixture(scope="session")
def node() -> Tools:
    """The suite, the Inspector and their node; without npm a skip, in CI a failure (K-43)."""
    try:
        return tools()
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no conformance tools in CI: {reason}")
        pytest.skip(str(reason))
