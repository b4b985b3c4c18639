from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.hub.driver import Bed, with_bed
from tests.hub.running import RunningHub, start
from tests.hub.speaking import ERAS, Speaker
from tests.support import bare_env, tfx

T = TypeVar("T")
Play = Callable[[Callable[[Bed], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a story against a fresh hub on a fake clock."""

    def run(story: Callable[[Bed], Awaitable[None]]) -> None:
        with_bed(tmp_path / "hub.db", story)

    return run


@pytest.fixture
def hub(home: Path) -> Iterator[RunningHub]:
    """A hub of its own on a free port; it is stopped whatever the test did."""
    running = start(home)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """One hub for the tests of a module that leave it as it was."""
    running = start(tmp_path_factory.mktemp("home"))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(params=ERAS)
def speaker(request: pytest.FixtureRequest, shared_hub: RunningHub) -> Speaker:
    """A client of each revision of MCP that is served."""
    return Speaker(shared_hub, request.param)


@pytest.fixture
def modern(shared_hub: RunningHub) -> Speaker:
    return Speaker(shared_hub)


@pytest.fixture
def env(home: Path) -> Iterator[dict[str, str]]:
    """An environment whose preferred port is free; its hub is stopped at the end."""
    given = bare_env(home)
    yield given
    tfx(home, "hub", "stop", env=given)
