"""The real clients start the bridge that `tfx setup` wrote for them, and it reaches a hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.codex import codex_connections
from tests.clients.copilot import copilot_prompt
from tests.clients.endpoint import Endpoint
from tests.clients.opencode import opencode_connections
from tests.clients.oracles import MCP_ORACLES
from tests.clients.running import Clients
from tests.hub.running import RunningHub, start
from tests.support import Machine

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]

# Copilot contacts its servers only for a prompt; what it then says is not about them.
TELLS = ("claude", "codex", "gemini", "opencode", "qwen")
# Codex hands its servers a short list of variables, so its bridge finds the hub of the copy.
PASSES_ITS_ENVIRONMENT = ("claude", "copilot", "gemini", "opencode", "qwen")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[RunningHub]:
    """A hub outside the HOME that the clients get a copy of."""
    home = tmp_path / "hub"
    home.mkdir()
    running = start(home)
    try:
        yield running
    finally:
        running.end()


@pytest.mark.parametrize("name", [*TELLS, "copilot"])
def test_k_26_a_client_connects_through_the_bridge_that_setup_wrote(
    name: str, tmp_path: Path, clients: Clients, endpoint: Endpoint, elsewhere: RunningHub
) -> None:
    machine = Machine(tmp_path)
    machine.env["PATH"] = f"{clients.installed.search_path}:/usr/bin:/bin"
    assert machine.setup("--agent", name).code == 0
    variables = {"XDG_STATE_HOME": str(elsewhere.home / ".local/state")}
    match name:
        case "codex":
            assert codex_connections(clients, machine.home, variables) == {"tfx-hub": True}
        case "opencode":
            assert opencode_connections(clients, machine.home, variables) == {"tfx-hub": True}
        case "copilot":
            copilot_prompt(clients, machine.home, endpoint.model_url, variables)
        case _:
            seen = MCP_ORACLES[name](clients, machine.home, variables)
            assert [(each.name, each.connected) for each in seen.servers] == [("tfx-hub", True)]
    if name in PASSES_ITS_ENVIRONMENT:
        attached = elsewhere.call("agents")["agents"]
        assert [each["cli"] for each in attached] == [name]
        assert attached[0]["agent_id"].startswith(f"{name}.work")
