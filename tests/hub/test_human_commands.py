"""Human requests on a real hub: who may answer, where secrets are, what the terminal does."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hub.running import RunningHub, start
from tests.hub.speaking import LEGACY, MODERN, Speaker
from tests.hub.waiting import until
from tests.support import bare_env, tfx
from tfx.hub.models import Privilege
from tfx.hub.operations import OPERATIONS

CANARY = "canary-8c1f4e-of-a-person"
SCHEMA = {"type": "object", "properties": {"password": {"type": "string"}}}


def ask(hub: RunningHub, kind: str = "credential", **more: object) -> Any:  # noqa: ANN401
    given: dict[str, object] = {
        "requester_agent": "asker",
        "kind": kind,
        "prompt": "The password, please",
        "requested_schema": SCHEMA,
        "deadline_ms": 600_000,
        "default_action": "decline",
    }
    return hub.post("/v1/request_human_input", {**given, **more}).data


def files_with(root: Path, needle: bytes) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and needle in path.read_bytes()]


ARGUMENTS: dict[str, dict[str, object]] = {
    "submit_human_input": {"request_id": "x", "action": "accept"},
    "agents_retire": {"agent_id": "asker"},
    "agents_prune": {},
    "dead_purge": {"message_id": "x"},
    "rebuild": {},
    "rebuild_check": {},
    "snapshot": {"path": "/nowhere/copy.db"},
    "prune": {},
    "shutdown": {},
    "agents_free": {"agent_id": "asker"},
    "work_force_release": {"task": 1, "reason": "x", "room": "/r", "no_lease": True},
    "work_delete": {"task": 1, "room": "/r"},
    "work_lock": {"reason": "human_stop", "room": "/r"},
    "work_unlock": {"room": "/r"},
}


def test_h_47_the_bus_token_is_refused_every_row_of_the_operator(shared_hub: RunningHub) -> None:
    rows = {row.name for row in OPERATIONS.values() if row.privilege is Privilege.OPERATOR}
    assert rows == set(ARGUMENTS)
    for name, arguments in ARGUMENTS.items():
        refused = shared_hub.post(f"/v1/{name}", arguments)
        assert (refused.status, refused.code) == (403, "operator-needed"), name
    assert shared_hub.get("/health").status == 200


@pytest.mark.parametrize("version", [MODERN, LEGACY[-1]])
def test_h_47_h_88_an_agent_cannot_answer_its_own_request_by_any_transport(
    shared_hub: RunningHub, version: str
) -> None:
    opened = ask(shared_hub, "approval")
    given = {"request_id": opened["request_id"], "action": "accept", "submitted_by": "human"}
    assert shared_hub.post("/v1/submit_human_input", given).code == "operator-needed"
    for agent in (None, "asker", "operator"):
        said = Speaker(shared_hub, version, agent=agent).tool("submit_human_input", **given)
        assert said["error"]["code"] == "operator-needed"
    for name in ARGUMENTS:
        answer = Speaker(shared_hub, version).post("tools/call", {"name": name, "arguments": {}})
        document = answer.document
        assert "error" in document or document["result"]["isError"]
    forged = shared_hub.post(
        "/bridge/result", {"agent_id": "asker", "correlation_id": opened["request_id"]}
    )
    assert forged.status == 404
    pending = shared_hub.call("human_requests", request_id=opened["request_id"])["requests"]
    assert pending[0]["state"] == "pending"
    operator = Speaker(shared_hub, version, operator=True)
    assert operator.data("submit_human_input", **given)["new_state"] == "accepted"


def test_h_48_a_canary_is_in_no_file_after_the_ack_and_after_a_kill(hub: RunningHub) -> None:
    for acked in (True, False):
        opened = ask(hub)
        hub.call(
            "submit_human_input",
            operator=True,
            request_id=opened["request_id"],
            action="accept",
            content={"password": CANARY},
            op_id=f"key-{acked}",
        )
        refused = hub.post(
            "/v1/submit_human_input",
            {"request_id": opened["request_id"], "action": "accept", "content": {"password": 7}},
            operator=True,
        )
        assert CANARY.encode() not in refused.body
        if not acked:
            break
        [message] = hub.call("poll_messages", agent_id="asker", wait_ms=0)["messages"]
        assert message["payload"]["content"] == {"password": CANARY}
        other = hub.call("read_message", message_id=message["message_id"])
        assert CANARY not in other["text"]
        assert CANARY.encode() not in hub.post("/v1/events", {"limit": 500}).body
        trace = {"trace_id": message["trace_id"]}
        assert CANARY.encode() not in hub.post("/v1/trace", trace).body
        hub.call("ack", agent_id="asker", message_ids=[message["message_id"]])
        assert files_with(hub.home, CANARY.encode()) == []
        assert hub.call("poll_messages", agent_id="asker", wait_ms=0)["messages"] == []
    hub.kill()
    assert files_with(hub.home, CANARY.encode()) == []
    again = hub.again()
    messages = again.call("poll_messages", agent_id="asker", wait_ms=45_000)["messages"]
    assert messages[0]["payload"]["error"] == "secret-lost"
    assert messages[0]["payload"]["content"] is None
    assert files_with(hub.home, CANARY.encode()) == []


def test_h_68_a_pending_request_is_seen_in_status_list_and_log(hub: RunningHub) -> None:
    assert hub.get("/status").document["queues"]["pending_human_requests"] == 0
    listed = tfx(hub.home, "hub", "human", "list", env=hub.env)
    assert (listed.code, listed.out) == (0, "nobody asks\n")
    opened = ask(hub, prompt="One\nTwo \x1b[31m")
    assert hub.get("/status").document["queues"]["pending_human_requests"] == 1
    listed = tfx(hub.home, "hub", "human", "list", "--json", env=hub.env)
    assert [each["request_id"] for each in listed.data["requests"]] == [opened["request_id"]]
    shown = tfx(hub.home, "hub", "human", "list", env=hub.env)
    assert "    One\n    Two" in shown.out
    assert "\x1b" not in shown.out
    log = hub.files.log.read_text("utf-8")
    assert opened["request_id"] in log
    assert "Two" not in log
    taken = tfx(
        hub.home, "hub", "human", "withdraw", opened["request_id"], "--agent", "asker", env=hub.env
    )
    assert taken.code == 0, taken.err


def test_h_68_k_30_the_notify_command_runs_once_and_gets_its_text_on_stdin(home: Path) -> None:
    told = home / "told"
    program = home / "notify.sh"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{told}.args\ncat >>{told}\n(env; echo END=) >>{told}.env\n'
    )
    program.chmod(0o755)
    config = home / ".config" / "tfx"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[hub]\nnotify = ["{program}", "now"]\n', "utf-8")
    hub = start(home, bare_env(home) | {"TFX_HUB_TOKEN": "token-of-the-environment"})
    try:
        given = {
            "requester_agent": "asker",
            "kind": "approval",
            "prompt": "May I?",
            "requested_schema": {},
            "deadline_ms": 600_000,
            "default_action": "decline",
            "op_id": "once",
        }
        headers = [
            ("Host", "127.0.0.1"),
            ("Authorization", "Bearer token-of-the-environment"),
            ("Content-Type", "application/json"),
        ]
        body = json.dumps(given).encode()
        for _ in range(2):
            sized = [*headers, ("Content-Length", str(len(body)))]
            assert hub.request("POST", "/v1/request_human_input", body, sized).status == 200
        until(lambda: "END=\n" in _read(home / "told.env"))
        time.sleep(0.2)  # a second run would have begun
        assert (home / "told.args").read_text() == "now\n"
        text = told.read_text()
        assert text.count("asker asks (approval):\nMay I?") == 1
        assert "tfx hub human answer" in text
        assert "token-of-the-environment" not in (home / "told.env").read_text()
    finally:
        hub.end()


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def on_terminal(hub: RunningHub, typed: list[tuple[bytes, bytes]], *arguments: str) -> bytes:
    """Run `tfx hub human …` on a terminal; `typed` are pairs of a prompt and what to type."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "tfx", "hub", "human", *arguments],
        env={**hub.env, "TERM": "dumb"},
        cwd=hub.home,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    seen = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([leader], [], [], 0.1)[0]:
            if child.poll() is not None:
                break
            continue
        try:
            chunk = os.read(leader, 4_096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
        if typed and typed[0][0] in seen:
            os.write(leader, typed.pop(0)[1] + b"\n")
    child.wait(60)
    os.close(leader)
    assert child.returncode == 0, seen
    return seen


def test_h_69_a_credential_is_typed_unseen(hub: RunningHub) -> None:
    opened = ask(hub)
    seen = on_terminal(
        hub,
        [(b"(c)ancel? ", b"a"), (b"password: ", CANARY.encode())],
        "answer",
        opened["request_id"],
    )
    assert b"The password, please" in seen
    assert b"accepted" in seen
    assert CANARY.encode() not in seen
    [message] = hub.call("poll_messages", agent_id="asker", auto_ack=True)["messages"]
    assert message["payload"]["content"] == {"password": CANARY}
    assert message["payload"]["submitted_by"] == "operator"
    assert files_with(hub.home, CANARY.encode()) == []


def test_h_47_h_69_an_answer_wants_a_terminal(hub: RunningHub) -> None:
    opened = ask(hub, "approval", requested_schema={})
    refused = tfx(
        hub.home, "hub", "human", "answer", opened["request_id"], "--accept", "--json", env=hub.env
    )
    assert refused.code != 0
    assert refused.document["problems"][0]["code"] == "terminal-needed"
    seen = on_terminal(hub, [], "answer", opened["request_id"], "--decline")
    assert b"declined" in seen
