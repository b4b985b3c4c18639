from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.work.agents import Agent, Person
from tests.hub.running import RunningHub, start

_rooms = count(1)


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """One hub for the package: each test has a board of its own on it."""
    running = start(tmp_path_factory.mktemp("home"))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture
def room(hub: RunningHub) -> Path:
    """A repository that no other test works in."""
    place = hub.home / f"project-{next(_rooms)}"
    (place / ".git").mkdir(parents=True)
    return place


@pytest.fixture
def person(hub: RunningHub, room: Path) -> Person:
    return Person(hub, room)


@pytest.fixture
def agent(hub: RunningHub, room: Path) -> Iterator[Callable[..., Agent]]:
    """Start agents of this test's room; they are ended with it."""
    begun: list[Agent] = []

    def make(name: str, workspace: Path | None = None) -> Agent:
        begun.append(Agent.start(hub, f"{name}.{room.name}", workspace or room))
        return begun[-1]

    yield make
    for each in begun:
        each.end()
