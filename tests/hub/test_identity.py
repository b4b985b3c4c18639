"""One agent process, whoever of its tree asks: bridge, hook, status line and commands (K-27)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hub.bridging import patient, patient_hook
from tests.hub.running import RunningHub
from tests.hub.waiting import until
from tests.support import TFX

ASSETS = Path(__file__).parents[2] / "assets"
HOOK, HUD = ASSETS / "hooks" / "tfx-inbox.py", ASSETS / "hud" / "tfx-hud.py"
_LOOP = 'while IFS= read -r line; do eval "$line"; printf "\\0"; done'
_OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "1"},
}


@dataclass(slots=True)
class Client:
    """A process called as Claude Code is; what it runs is below it, as its tools are."""

    process: subprocess.Popen[bytes]
    scratch: Path

    @classmethod
    def start(cls, hub: RunningHub, workspace: Path, **extra: str) -> Client:
        process = subprocess.Popen(
            ["claude", "-c", _LOOP],
            executable="/bin/sh",
            env={**hub.env, **extra},
            cwd=workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return cls(process, hub.home / f"input-{process.pid}")

    def runs(self, *argv: object, stdin: str = "") -> str:
        """Run a program below the client; return what it prints."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.scratch.write_text(stdin)
        line = f"{shlex.join(map(str, argv))} <{shlex.quote(str(self.scratch))}"
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        out = bytearray()
        while (byte := self.process.stdout.read(1)) != b"\0":
            assert byte, "the client ended"
            out += byte
        return out.decode()

    def tfx(self, *words: str) -> Any:  # noqa: ANN401  (JSON of the command under test)
        return json.loads(self.runs(*TFX, *words, "--json"))["data"]

    def bridged(self) -> None:
        """Start a bridge, make one call with it and end it: the identity stays."""
        lines = (
            {"id": 1, "method": "initialize", "params": _OPENING},
            {"id": 2, "method": "tools/list"},
        )
        text = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in lines)
        assert "poll_messages" in self.runs(*patient(), stdin=text)

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture
def client(hub: RunningHub) -> Iterator[Callable[..., Client]]:
    begun: list[Client] = []

    def start(workspace: Path, **extra: str) -> Client:
        workspace.mkdir(exist_ok=True)
        begun.append(Client.start(hub, workspace, **extra))
        return begun[-1]

    yield start
    for each in begun:
        each.end()


def told(client: Client) -> str:
    event = json.dumps({"hook_event_name": "UserPromptSubmit"})
    return client.runs(*patient_hook(HOOK), stdin=event)


def status_line(client: Client) -> str:
    # the script itself, which gives a hub under load more than the 0.15 s of a prompt
    text = HUD.read_text("utf-8")
    assert text.count("HUB_LIMIT_S = 0.15 ") == 1
    patient_hud = client.scratch.with_name(f"hud-{client.process.pid}.py")
    patient_hud.write_text(text.replace("HUB_LIMIT_S = 0.15 ", "HUB_LIMIT_S = 60.0 "), "utf-8")
    return client.runs(sys.executable, "-I", patient_hud, stdin=json.dumps({"model": {"id": "M"}}))


@pytest.mark.parametrize("named", ["ann", ""])
def test_k_27_h_29_two_live_processes_of_one_name_are_two_agents_to_everybody(
    hub: RunningHub, client: Callable[..., Client], named: str
) -> None:
    extra = {"TFX_AGENT_ID": named} if named else {}
    base = named or "claude.work"
    workspace = hub.home / "work"
    agents = {base: client(workspace, **extra), f"{base}.2": client(workspace, **extra)}
    for each in agents.values():
        each.bridged()
    seen = {each["agent_id"]: each for each in hub.call("agents")["agents"]}
    assert set(seen) == set(agents)
    for number, (name, each) in enumerate(agents.items(), 1):
        assert (seen[name]["state"], seen[name]["pid"]) == ("online", each.process.pid)
        for _ in range(number):
            hub.call("publish", from_="operator", to=name, topic="t", payload={})
    sessions = set()
    for number, (name, each) in enumerate(agents.items(), 1):
        assert f"{number} unread" in status_line(each)
        assert f"{number} new for {name}," in told(each)
        task = each.tfx("task", "add", "something", "--accept")["task"]
        assert task["author"] == name
        lease = each.tfx("lease", "claim", str(task["task"]))["lease"]
        assert lease["agent_id"] == name
        sessions.add(lease["session"])
        if named:  # without the variable `tfx hub poll` is the person's (K-31)
            assert len(each.tfx("hub", "poll")["messages"]) == number
        each.bridged()  # a client that starts its server anew is who it was
    assert len(sessions) == 2
    assert set(agents) == {each["agent_id"] for each in hub.call("agents")["agents"]}
    for each in agents.values():
        assert len(each.tfx("lease", "status", "--mine")["leases"]) == 1


def test_h_61_a_name_of_a_process_that_ended_is_the_next_ones(
    hub: RunningHub, client: Callable[..., Client]
) -> None:
    workspace = hub.home / "work"
    first = client(workspace, TFX_AGENT_ID="ann")
    first.bridged()
    hub.call("publish", from_="operator", to="ann", topic="t", payload={})
    first.process.kill()
    first.process.wait(60)
    second = client(workspace, TFX_AGENT_ID="ann")
    second.bridged()
    assert "1 new for ann," in told(second)
    assert [each["agent_id"] for each in hub.call("agents")["agents"]] == ["ann"]


def test_k_27_a_hook_tells_no_mail_of_another_process_with_the_same_name(
    hub: RunningHub, client: Callable[..., Client]
) -> None:
    workspace = hub.home / "work"
    client(workspace, TFX_AGENT_ID="ann").bridged()
    hub.call("publish", from_="operator", to="ann", topic="t", payload={})
    other = client(workspace, TFX_AGENT_ID="ann")  # its bridge has made no call yet
    assert told(other) == ""
    assert "unread" not in status_line(other)


def test_wk_l24_the_end_of_a_bridge_ends_no_session_and_the_end_of_its_client_does(
    hub: RunningHub, client: Callable[..., Client]
) -> None:
    workspace = hub.home / "work"
    ann = client(workspace, TFX_AGENT_ID="ann")
    ann.bridged()  # it ended in order
    task = ann.tfx("task", "add", "something", "--accept")["task"]["task"]
    lease = ann.tfx("lease", "claim", str(task))["lease"]
    ann.bridged()

    def now() -> Any:  # noqa: ANN401  (JSON of the hub under test)
        status = hub.call("work_status", room=str(workspace), lease_id=lease["lease_id"])
        return status["leases"][0]

    assert now()["state"] == "active"
    ann.process.kill()
    ann.process.wait(60)
    until(lambda: now()["state"] != "active")
    assert (now()["state"], now()["reason"]) == ("revoked", "session ended")


def test_k_27_a_name_that_no_process_has_is_whoever_is_called_so(
    hub: RunningHub, client: Callable[..., Client]
) -> None:
    hub.register("ann")  # by a program that said no process
    ann = client(hub.home / "work", TFX_AGENT_ID="ann")
    hub.call("publish", from_="operator", to="ann", topic="t", payload={})
    assert "1 unread" in status_line(ann)
    assert "1 new for ann," in told(ann)
    assert len(ann.tfx("hub", "poll")["messages"]) == 1
