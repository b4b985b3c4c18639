"""The Inspector's command line lists and calls every tool, and is refused without the token."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance.node import Tools
from tests.hub.running import RunningHub
from tfx.hub.models import Toolset
from tfx.hub.operations import OPERATIONS

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

TOOLS = [row.name for row in OPERATIONS.values() if row.toolset is not None]
ARGUMENTS = {
    "register": ["agent_id=two", "cli=codex", 'capabilities=["code"]', "topics=[]",
                 "heartbeat_ttl_ms=60000"],
    "status": ["scope=hub"],
    "publish": ["from=one", "to=two", "topic=x", 'payload={"n":1}'],
    "ask": ["from=one", "to=two", "topic=x", "question=why"],
    "poll_messages": ["agent_id=two", "wait_ms=0"],
    "handoff": ["from=one", "to=two", "topic=x", "task=it"],
    "read_message": ["message_id=none"],
    "request_human_input": ["requester_agent=one", "kind=approval", "prompt=May I?",
                            "requested_schema={}", "deadline_ms=60000", "default_action=decline"],
    "submit_human_input": ["request_id=none", "action=accept"],
    "withdraw_human_input": ["request_id=none", "requester_agent=one"],
    "dead_letters": [],
    "work_add": ["title=one", "room=/r"],
    "work_list": ["room=/r"],
    "work_show": ["task=999999", "room=/r"],
    "work_next": ["room=/r"],
    "work_claim": ["task=999999", "room=/r"],
    "work_update": ["task=999999", "room=/r", "note=x"],
    "work_attach": ["task=999999", "room=/r", "kind=file", "identity=a.py"],
    "work_release": ["task=999999", "room=/r"],
    "work_handoff": ["task=999999", "room=/r", "to=two"],
    "work_review_claim": ["task=999999", "room=/r"],
    "work_review_release": ["task=999999", "room=/r"],
    "work_status": ["room=/r"],
}  # fmt: skip
REFUSED = {
    **dict.fromkeys(("work_next", "work_claim", "work_review_claim"), "actor-missing"),
    **dict.fromkeys(
        ("work_show", "work_update", "work_attach", "work_release", "work_handoff"),
        "unknown-task",
    ),
    "work_review_release": "unknown-task",
    "read_message": "unknown-message",
    "submit_human_input": "operator-needed",
    "withdraw_human_input": "unknown-request",
}


def inspect(
    node: Tools,
    hub: RunningHub,
    home: Path,
    token: str | None,
    *arguments: str,
    query: str = "?tools=bus,work",
) -> subprocess.CompletedProcess[str]:
    header = [] if token is None else ["--header", f"Authorization: Bearer {token}"]
    return subprocess.run(
        [
            *node.argv("@modelcontextprotocol/inspector"),
            *("--cli", f"{hub.url}/mcp{query}", "--transport", "http"),
            *arguments,
            *header,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={"PATH": f"{node.node.parent}:/usr/bin:/bin", "HOME": str(home)},
        cwd=home,
        stdin=subprocess.DEVNULL,
    )


def test_h_109_the_inspector_lists_what_the_table_offers(
    node: Tools, shared_hub: RunningHub, tmp_path: Path
) -> None:
    bus = [row.name for row in OPERATIONS.values() if row.toolset is Toolset.BUS]
    for query, wanted in (("", bus), ("?tools=bus,work", TOOLS)):
        asked = ("--method", "tools/list")
        done = inspect(node, shared_hub, tmp_path, shared_hub.token, *asked, query=query)
        assert done.returncode == 0, done.stderr
        assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == wanted


@pytest.mark.parametrize("name", TOOLS)
def test_h_109_the_inspector_calls_each_tool(
    node: Tools, shared_hub: RunningHub, tmp_path: Path, name: str
) -> None:
    shared_hub.register("one", "two")
    arguments = [part for each in ARGUMENTS[name] for part in ("--tool-arg", each)]
    called = ("--method", "tools/call", "--tool-name", name, *arguments)
    done = inspect(node, shared_hub, tmp_path, shared_hub.token, *called)
    result = json.loads(done.stdout)
    envelope = json.loads(result["content"][0]["text"])
    if name in REFUSED:
        assert envelope["error"]["code"] == REFUSED[name]
    else:
        assert envelope["ok"], envelope


@pytest.mark.parametrize("token", [None, "a-wrong-token-of-somebody"])
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_h_109_the_inspector_is_refused_without_the_right_token(
    node: Tools, shared_hub: RunningHub, tmp_path: Path, token: str | None, method: str
) -> None:
    more = ("--tool-name", "status") if method == "tools/call" else ()
    done = inspect(node, shared_hub, tmp_path, token, "--method", method, *more)
    assert done.returncode != 0
    assert '"tools"' not in done.stdout
    assert '"content"' not in done.stdout
