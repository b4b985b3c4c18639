"""`tfx hub bridge`: small, transparent, and at home through restarts (K-26, K-27, H-33)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.architecture.test_startup import HEAVY
from tests.hub.bridging import BRIDGE, BridgeClient, patient
from tests.hub.running import RunningHub, start
from tests.hub.speaking import LEGACY, MODERN, Speaker
from tests.hub.waiting import until
from tests.support import bare_env, gone

Open = Callable[..., BridgeClient]

MEASURED = """
import json, os, sys
sys.argv = ["tfx", "hub", "bridge"]
real = os._exit
def leave(code):
    import resource
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    # ru_maxrss counts what the process was before exec; the high-water mark does not
    status = open("/proc/self/status").read()
    rss_kb = int(status.partition("VmHWM:")[2].split()[0])
    text = json.dumps([cpu, rss_kb, sorted(sys.modules)])
    print(text, file=sys.stderr)
    sys.stderr.flush()
    real(code)
os._exit = leave
from tfx.__main__ import main
main()
"""


@pytest.fixture
def opened(home: Path) -> Iterator[Open]:
    """Start bridges in the HOME of the test; all are ended whatever the test did."""
    clients: list[BridgeClient] = []

    def begin(
        version: str = LEGACY[-1], argv: Sequence[str] = BRIDGE, **extra: str
    ) -> BridgeClient:
        client = BridgeClient.start(bare_env(home, **extra), cwd=home, version=version, argv=argv)
        clients.append(client)
        return client

    yield begin
    for client in clients:
        with contextlib.suppress(OSError):
            client.kill()


@pytest.mark.parametrize("version", [MODERN, LEGACY[-1], LEGACY[0]])
def test_k_26_a_bridge_answers_what_the_hub_answers(
    hub: RunningHub, opened: Open, version: str
) -> None:
    client = opened(version, TFX_AGENT_ID="me-and-nobody-else")
    client.open()
    direct = Speaker(hub, version, agent="me-and-nobody-else")
    listed = client.request("tools/list")
    assert listed["result"] == direct.result("tools/list")
    assert client.request("nonsense/method")["error"]["code"] == -32601
    refused = client.tool("publish", from_="me-and-nobody-else", to="nobody", topic="x", payload={})
    assert refused["error"]["code"] == "unknown-recipient"


def test_k_26_the_first_call_starts_the_hub(home: Path, opened: Open) -> None:
    client = opened()
    assert client.open()["serverInfo"]["name"] == "tfx-hub"
    running = start(home)
    try:
        assert client.data("status")["hub"]["pid"] == running.pid
    finally:
        running.end()


def test_k_27_the_agent_is_told_its_name_and_needs_not_give_it(hub: RunningHub, home: Path) -> None:
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    inside = project / "deep" / "inside"
    inside.mkdir(parents=True)
    # an agent CLI is the ancestor: a program of that name which starts the bridge in its session
    agent = home / "bin" / "gemini"
    agent.parent.mkdir()
    agent.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys\n"
        f"sys.exit(subprocess.run({list(BRIDGE)!r}).returncode)\n",
        "utf-8",
    )
    agent.chmod(0o755)
    first = BridgeClient.start(hub.env, cwd=inside, argv=[str(agent)])
    second = BridgeClient.start(hub.env, cwd=project, argv=[str(agent)])
    try:
        assert "You are the agent gemini.project." in first.open()["instructions"]
        assert "You are the agent gemini.project.2." in second.open()["instructions"]
        first.data("publish", to="gemini.project.2", topic="x", payload={"n": 1})
        [message] = second.data("poll_messages", wait_ms=0)["messages"]
        assert message["from"] == "gemini.project"
        assert first.tool("status")["unread"] == {"total": 0, "urgent": 0}
    finally:
        for client in (first, second):
            assert client.end() == 0


def test_k_26_a_hub_killed_between_two_calls_costs_nothing(hub: RunningHub, opened: Open) -> None:
    hub.register("one", "two")
    for version in (MODERN, LEGACY[-1]):
        client = opened(version)
        client.open()
        client.data("publish", from_="one", to="two", topic="x", payload={"v": version})
        hub.kill()
        [message] = client.data("poll_messages", agent_id="two", auto_ack=True)["messages"]
        assert message["payload"] == {"v": version}
        hub = hub.again()


def test_k_26_a_call_cut_off_by_a_kill_is_sent_again_and_not_doubled(
    hub: RunningHub, opened: Open
) -> None:
    hub.register("one", "two")
    client = opened()
    client.open()
    waiting = client.begin_tool("poll_messages", agent_id="two", wait_ms=45_000)
    until(lambda: hub.get("/status").document["queues"]["open_waits"])
    hub.kill()
    again = hub.again()
    again.call("publish", from_="one", to="two", topic="x", payload={"n": 1})
    [message] = client.tool_answer(waiting)["data"]["messages"]
    assert message["payload"] == {"n": 1}
    # the key is the bridge's: the same line under the same key is the same message
    speaker = Speaker(again)
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "publish",
                "arguments": {"from": "one", "to": "two", "topic": "x", "payload": {}},
            },
        }
    ).encode()
    keyed = [("Tfx-Op-Id", "a-key-of-a-bridge")]
    results = [
        Speaker.envelope(speaker.raw(body, keyed).document["result"])["data"] for _ in range(2)
    ]
    assert results[0] == results[1]
    client.data("publish", from_="one", to="two", topic="x", payload={"n": 2})
    with_key = [
        event
        for event in again.call("events", limit=500)["events"]
        if event["kind"] == "message_posted"
    ]
    assert len(with_key) == 3


def test_k_26_calls_run_side_by_side_and_a_cancelled_one_claims_nothing(
    hub: RunningHub, opened: Open
) -> None:
    hub.register("one", "two")
    client = opened()
    client.open()
    waiting = client.begin_tool("poll_messages", agent_id="two", wait_ms=45_000)
    until(lambda: hub.get("/status").document["queues"]["open_waits"])
    assert client.request("ping")["result"] == {}
    client.notify("notifications/cancelled", {"requestId": waiting})
    until(lambda: not hub.get("/status").document["queues"]["open_waits"])
    client.data("publish", from_="one", to="two", topic="x", payload={})
    [message] = client.data("poll_messages", agent_id="two", wait_ms=0)["messages"]
    assert message["attempt"] == 1
    assert not client.has_answer(waiting)


def test_k_26_what_is_no_message_is_answered_and_ends_nothing(
    hub: RunningHub, opened: Open
) -> None:
    client = opened()
    client.line(b"not json\n\n[]\n")
    client.line(b'{"jsonrpc":"2.0","id":"x","method":"ping","id":"x"}\n')
    client.line(b'{"id":7,"method":"ping"}\n')
    assert client.request("ping")["result"] == {}
    until(lambda: len(client.stray) >= 3)
    codes = sorted(each["error"]["code"] for each in client.stray)
    assert codes == [-32700, -32700, -32600]
    big = {"jsonrpc": "2.0", "id": "big", "method": "ping", "params": {"t": "x" * 1_100_000}}
    client.line(json.dumps(big).encode() + b"\n")
    until(lambda: len(client.stray) >= 4)
    assert client.stray[-1]["error"]["data"]["code"] == "too-large"
    assert hub.get("/health").status == 200


def test_k_26_without_a_hub_that_can_start_a_call_gets_the_reason(home: Path, opened: Open) -> None:
    config = home / ".config" / "tfx"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[hub]\nport = 'nonsense'\n", "utf-8")
    client = opened()
    error = client.answer(client.send("initialize", {"protocolVersion": LEGACY[-1]}))["error"]
    assert error["code"] == -32000
    assert "port" in error["message"]
    # mended, the same bridge works
    (config / "config.toml").unlink()
    time.sleep(1.1)
    assert client.open()["serverInfo"]["name"] == "tfx-hub"
    start(home).end()


def test_k_28_a_renewed_token_is_picked_up(hub: RunningHub, opened: Open) -> None:
    client = opened()
    client.open()
    done = subprocess.run(
        [*BRIDGE[:-1], "token", "rotate", "--json"], env=hub.env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert client.tool("status")["ok"]


def test_k_26_the_end_of_input_ends_the_bridge_after_what_runs(
    hub: RunningHub, opened: Open
) -> None:
    client = opened(argv=patient())
    sent = client.send("tools/list")
    assert client.end() == 0
    assert "result" in client.answer(sent)
    waits = opened()
    waits.open()
    hub.register("two")
    waits.begin_tool("poll_messages", agent_id="two", wait_ms=45_000)
    until(lambda: hub.get("/status").document["queues"]["open_waits"])
    assert waits.end() == 0
    until(lambda: not hub.get("/status").document["queues"]["open_waits"])


def test_k_26_a_killed_agent_leaves_no_bridge_behind(hub: RunningHub, home: Path) -> None:
    # the pipe's writing end lives on in the test, so only the death of the parent can end it
    read_end, write_end = os.pipe()
    try:
        # a background job of sh reads /dev/null unless its input is named
        agent = subprocess.Popen(
            ["/bin/sh", "-c", f"exec 3<&0; {shlex.join(BRIDGE)} <&3 & echo $!; wait"],
            env=hub.env,
            cwd=home,
            stdin=read_end,
            stdout=subprocess.PIPE,
        )
        assert agent.stdout is not None
        bridge = int(agent.stdout.readline())
        os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert b'"result"' in agent.stdout.readline()
        os.kill(agent.pid, signal.SIGKILL)
        assert gone(bridge, within_s=60)
        agent.wait()
        agent.stdout.close()
    finally:
        os.close(read_end)
        os.close(write_end)


def test_k_21_a_bridge_is_small_and_stdlib_only(hub: RunningHub, home: Path) -> None:
    measured = f"exec {shlex.join([sys.executable, '-c', MEASURED])} 2>used"
    client = BridgeClient.start(hub.env, cwd=home, argv=["/bin/sh", "-c", measured])
    client.open()
    assert client.end() == 0
    cpu_s, rss_kb, modules = json.loads((home / "used").read_text("utf-8"))
    assert not {*HEAVY, "typer", "click", "filelock"} & set(modules)
    assert "tfx.hub.operations" not in modules
    assert rss_kb <= 25 * 1024
    assert cpu_s > 0


def test_k_26_wrong_options_are_a_usage_error(home: Path) -> None:
    done = subprocess.run(
        [*BRIDGE, "--nonsense"], env=bare_env(home), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"usage" in done.stderr
    assert done.stdout == b""
