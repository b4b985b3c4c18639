from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.homes import moved, paths_in, write_skill
from tests.clients.oracles import SKILL_ORACLES
from tests.clients.running import Clients
from tests.clients.seen import SeenSkill
from tfx.agents.catalogue import AGENTS, find
from tfx.agents.model import Agent
from tfx.agents.roots import written_roots

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]

READERS = [agent for agent in AGENTS if agent.writes.skills]


@pytest.mark.parametrize("agent", READERS, ids=lambda agent: agent.name)
def test_s101_a_skill_in_every_written_root_is_seen_once(
    agent: Agent, clients: Clients, home: Path
) -> None:
    of_claude, shared = (
        write_skill(root.directory, "tfx-demo") for root in written_roots(paths_in(home), AGENTS)
    )
    seen = SKILL_ORACLES[agent.name](clients, home, None)
    (skill,) = seen.named("tfx-demo")
    # Claude tells no path; opencode reads both roots at once and keeps whichever came last
    expected: dict[str, tuple[Path | None, ...]] = {
        "claude": (None,),
        "opencode": (of_claude, shared),
    }
    assert skill.path in expected.get(agent.name, (shared,))
    assert seen.warnings == ()


@pytest.mark.parametrize("name", ["claude", "gemini", "copilot"])
def test_s28_a_skill_in_the_moved_root_is_seen_and_the_shared_one_is_not(
    name: str, clients: Clients, home: Path
) -> None:
    variables = moved(name, home)
    root = find(name).skills
    assert root is not None
    file = write_skill(root.resolve(paths_in(home, variables)), "tfx-demo")
    write_skill(root.resolve(paths_in(home)), "left-behind")
    seen = SKILL_ORACLES[name](clients, home, variables)
    assert seen.named("tfx-demo") == [SeenSkill("tfx-demo", None if name == "claude" else file)]
    assert seen.named("left-behind") == []
