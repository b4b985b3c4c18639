"""`[setup] tools`: which toolsets the hub entry of every agent offers (H-36, H-37)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.world import Clinic, row
from tests.support import PACKAGES, Machine
from tfx.agents.catalogue import AGENTS, find
from tfx.agents.model import Agent
from tfx.core.paths import Paths
from tfx.desired import mcp_file

CONFIG = ".config/tfx/config.toml"
WORK = '[setup]\ntools = ["work", "bus"]\n'
WRITTEN = [agent for agent in AGENTS if agent.writes.mcp]


def entry(machine: Machine, agent: Agent) -> Any:  # noqa: ANN401  (JSON of a client)
    assert agent.mcp is not None
    data = mcp_file(Paths.resolve(machine.env), agent.mcp).read_text("utf-8")
    found: Any = tomllib.loads(data) if agent.name == "codex" else json.loads(data)
    for step in agent.mcp.entry_key:
        found = found[step]
    return found


def arguments(machine: Machine, agent: Agent) -> list[str]:
    found = entry(machine, agent)
    words: list[str] = found["command"][1:] if agent.name == "opencode" else found["args"]
    return words


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, *PACKAGES)


def test_h_36_the_work_tools_are_asked_for_in_every_agents_own_shape(machine: Machine) -> None:
    assert machine.setup().code == 0
    usual = {agent.name: arguments(machine, agent) for agent in WRITTEN}
    assert all(words[-2:] == ["hub", "bridge"] for words in usual.values())
    machine.write(CONFIG, WORK)
    assert machine.setup("--check").code == 1
    assert machine.setup().code == 0
    for agent in WRITTEN:
        assert arguments(machine, agent) == [*usual[agent.name], "--tools", "bus,work"], agent.name
    assert machine.setup("--check").code == 0
    machine.write(CONFIG, "")
    assert machine.setup().code == 0
    assert {agent.name: arguments(machine, agent) for agent in WRITTEN} == usual


def test_h_36_the_address_of_the_http_form_asks_for_them_too(machine: Machine) -> None:
    machine.write(CONFIG, WORK)
    assert machine.setup("--mcp-transport", "http").code == 0
    for agent in WRITTEN:
        found = entry(machine, agent)
        url = next(found[key] for key in ("url", "httpUrl", "serverUrl") if key in found)
        assert url == "http://127.0.0.1:27888/mcp?tools=bus,work", agent.name
    assert machine.setup("--check").code == 0


def test_h_36_an_entry_that_was_edited_keeps_its_tools(machine: Machine) -> None:
    assert machine.setup().code == 0
    path = machine.home / ".claude.json"
    document = json.loads(path.read_bytes())
    document["mcpServers"]["tfx-hub"]["args"] += ["--tools", "work"]
    path.write_text(json.dumps(document), "utf-8")
    machine.write(CONFIG, WORK)
    assert machine.setup().code == 1
    assert arguments(machine, find("claude"))[-1] == "work"
    assert machine.setup("--take-new").code == 0
    assert arguments(machine, find("claude"))[-1] == "bus,work"


def test_h_36_doctor_wants_the_entry_that_setup_would_write(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    assert clinic.setup().code == 0
    assert row(clinic.doctor("mcp.registration"), "mcp.registration", "claude")["status"] == "ok"
    clinic.write(CONFIG, WORK)
    stale = row(clinic.doctor("mcp.registration"), "mcp.registration", "claude")
    assert stale["status"] != "ok"
    assert clinic.doctor("mcp.registration", "--fix", "--yes").code == 0
    assert row(clinic.doctor("mcp.registration"), "mcp.registration", "claude")["status"] == "ok"
    assert arguments(clinic, find("claude"))[-2:] == ["--tools", "bus,work"]


def test_k_19_a_toolset_that_does_not_exist_stops_setup(machine: Machine) -> None:
    machine.write(CONFIG, '[setup]\ntools = ["wrok"]\n')
    ran = machine.setup()
    assert ran.code == 2
    assert 'must be "bus" or "work"' in ran.document["problems"][0]["message"]
    assert not (machine.home / ".claude.json").exists()
