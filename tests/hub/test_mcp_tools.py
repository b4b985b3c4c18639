"""The operations as MCP tools: lists, results, waits, sizes (H-30, H-31, H-36 … H-39)."""

from __future__ import annotations

import json
import re
import socket
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.hub.running import RunningHub
from tests.hub.speaking import LEGACY, Speaker, envelope
from tests.hub.waiting import until
from tfx.hub.models import Toolset
from tfx.hub.operations import OPERATIONS

EIGHT = {
    "register": {"agent_id", "cli", "capabilities", "topics", "heartbeat_ttl_ms"},
    "status": set[str](),
    "publish": {"from", "to", "topic", "payload"},
    "ask": {"from", "to", "topic", "question"},
    "poll_messages": {"agent_id"},
    "handoff": {"from", "to", "topic", "task"},
    "request_human_input": {
        "requester_agent",
        "kind",
        "prompt",
        "requested_schema",
        "deadline_ms",
        "default_action",
    },
}


def test_h_36_toolsets_are_chosen_by_query_and_an_unknown_one_names_the_known(
    modern: Speaker,
) -> None:
    default = modern.result("tools/list")
    assert replace(modern, query="?tools=bus").result("tools/list") == default
    for query, toolsets in (
        ("?tools=work", {Toolset.WORK}),
        ("?tools=bus,work", {Toolset.BUS, Toolset.WORK}),
    ):
        listed = replace(modern, query=query).result("tools/list")["tools"]
        wanted = {row.name for row in OPERATIONS.values() if row.toolset in toolsets}
        assert {tool["name"] for tool in listed} == wanted
    for query, code in (("?tools=nonsense", "unknown-toolset"), ("?tool=bus", "unknown-field")):
        answer = replace(modern, query=query).post("tools/list")
        assert (answer.status, answer.code) == (400, code)
        assert "bus" in answer.document["error"]["details"]["known"]


def test_h_36_the_tools_of_work_are_less_than_6_kb(modern: Speaker) -> None:
    answer = replace(modern, query="?tools=work").post("tools/list")
    assert len(answer.body) < 6 * 1024
    assert all(
        name.startswith("work_") for name in re.findall(r'"name":"(\w+)"', answer.body.decode())
    )


def test_h_37_the_default_list_is_small_deterministic_and_described(hub: RunningHub) -> None:
    listed: list[bytes] = []
    for _ in range(2):
        answer = Speaker(hub, LEGACY[-1]).post("tools/list")
        listed.append(answer.body)
        hub.end()
        hub = hub.again()
    assert listed[0] == listed[1]
    assert len(listed[0]) < 8 * 1024
    tools = {tool["name"]: tool for tool in json.loads(listed[0])["result"]["tools"]}
    assert set(tools) == {row.name for row in OPERATIONS.values() if row.toolset is Toolset.BUS}
    assert all(tool["description"] for tool in tools.values())
    for tool in tools.values():
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)
        for field in schema["properties"].values():
            assert "type" in field


@pytest.mark.parametrize("name", EIGHT)
def test_h_33_the_tools_of_triflux_keep_names_and_required_parameters(
    modern: Speaker, name: str
) -> None:
    tools = {tool["name"]: tool for tool in modern.result("tools/list")["tools"]}
    assert set(tools[name]["inputSchema"].get("required", [])) == EIGHT[name]


def test_h_33_what_a_tool_refuses_is_told_in_its_result(speaker: Speaker) -> None:
    envelope = speaker.tool("publish", from_="nobody-1", to="nobody-2", topic="x", payload={})
    assert envelope["error"]["code"] == "unknown-recipient"
    missing = speaker.tool("publish", to="nobody-2", topic="x", payload={})
    assert (missing["error"]["code"], missing["error"]["details"]["field"]) == (
        "invalid-request",
        "from",
    )
    unknown = speaker.tool("status", scop="hub")
    assert (unknown["error"]["code"], unknown["error"]["details"]["nearest"]) == (
        "unknown-field",
        "scope",
    )


def test_h_33_an_unknown_tool_is_an_error_of_the_protocol(speaker: Speaker) -> None:
    answer = speaker.post("tools/call", {"name": "nonsense", "arguments": {}})
    assert answer.document["error"]["code"] == -32602


def test_h_38_every_result_carries_the_unread_count_without_claiming(speaker: Speaker) -> None:
    one, two = f"c-{speaker.version}", f"d-{speaker.version}"
    speaker.hub.register(one, two)
    for priority in (5, 9):
        speaker.data("publish", from_=one, to=two, topic="news", payload={}, priority=priority)
    said = speaker.tool("publish", from_=two, to=one, topic="news", payload={})
    assert said["unread"] == {"total": 2, "urgent": 1}
    refused = speaker.tool("publish", from_=two, to="nobody-2", topic="news", payload={})
    assert refused["unread"] == {"total": 2, "urgent": 1}
    assert speaker.tool("status")["unread"] is None
    attached = replace(speaker, agent=two)
    assert attached.tool("status")["unread"] == {"total": 2, "urgent": 1}
    polled = speaker.tool("poll_messages", agent_id=two, wait_ms=0, auto_ack=True)
    assert len(polled["data"]["messages"]) == 2
    assert polled["unread"] == {"total": 0, "urgent": 0}


def test_k_27_the_agent_that_a_bridge_speaks_for_need_not_name_itself(speaker: Speaker) -> None:
    one, two = f"e-{speaker.version}", f"f-{speaker.version}"
    speaker.hub.register(one, two)
    attached = replace(speaker, agent=one)
    attached.data("publish", to=two, topic="news", payload={})
    [message] = speaker.data("poll_messages", agent_id=two, auto_ack=True)["messages"]
    assert message["from"] == one
    named = attached.data("publish", from_=two, to=one, topic="news", payload={})
    assert named["fanout_count"] == 1
    opening = attached.result("initialize" if not speaker.is_modern else "server/discover")
    assert one in opening["instructions"]
    wrong = replace(speaker, agent="a b").post("tools/list")
    assert (wrong.status, wrong.code) == (400, "bad-id")


def test_h_39_a_long_poll_is_woken_and_an_empty_one_says_call_again(speaker: Speaker) -> None:
    one, two = f"g-{speaker.version}", f"h-{speaker.version}"
    speaker.hub.register(one, two)
    found: list[Any] = []
    polling = threading.Thread(
        target=lambda: found.append(speaker.data("poll_messages", agent_id=two, wait_ms=45_000))
    )
    polling.start()
    until(lambda: speaker.hub.get("/status").document["queues"]["open_waits"])
    speaker.data("publish", from_=one, to=two, topic="news", payload={})
    polling.join(60)
    assert len(found[0]["messages"]) == 1
    empty = speaker.tool("poll_messages", agent_id=one, wait_ms=0)
    assert empty["hint"] == "nothing yet: call again"
    ticket = speaker.tool("ask", from_=one, to=two, topic="q", question="?")
    assert ticket["hint"] == "nothing yet: call again"
    too_long = speaker.tool("poll_messages", agent_id=two, wait_ms=45_001)
    assert too_long["error"]["details"]["field"] == "wait_ms"


def test_h_39_h_51_a_client_that_hangs_up_claims_nothing(modern: Speaker) -> None:
    hub = modern.hub
    hub.register("waits", "sends")
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "poll_messages",
                "arguments": {"agent_id": "waits", "wait_ms": 45_000},
            },
        }
    ).encode()
    before = hub.get("/status").document["queues"]["open_waits"]
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n%b"
            % (hub.token.encode(), len(body), body)
        )
        until(lambda: hub.get("/status").document["queues"]["open_waits"] != before)
    until(lambda: hub.get("/status").document["queues"]["open_waits"] == before)
    hub.call("publish", from_="sends", to="waits", topic="x", payload={})
    [message] = hub.call("poll_messages", agent_id="waits", wait_ms=0, auto_ack=True)["messages"]
    assert message["attempt"] == 1


def test_h_31_no_result_is_larger_than_its_limit_and_the_rest_can_be_read(
    speaker: Speaker,
) -> None:
    one, two = f"i-{speaker.version}", f"j-{speaker.version}"
    speaker.hub.register(one, two)
    for _ in range(40):
        speaker.hub.call("publish", from_=one, to=two, topic="x", payload={"t": '"' * 1_000})
    seen = 0
    while True:
        result = speaker.result_of(
            "poll_messages", {"agent_id": two, "wait_ms": 0, "auto_ack": True}
        )
        assert len(result["content"][0]["text"]) <= 16_384
        data = speaker.envelope(result)["data"]
        seen += len(data["messages"])
        if not data["more"]:
            break
    assert seen == 40
    big = {"t": "ü" * 30_000}
    speaker.hub.call("publish", from_=one, to=two, topic="x", payload=big)
    [message] = speaker.data("poll_messages", agent_id=two, wait_ms=0)["messages"]
    assert message["cut"]
    text = ""
    offset: int | None = 0
    while offset is not None:
        result = speaker.result_of(
            "read_message", {"message_id": message["message_id"], "offset": offset}
        )
        assert len(result["content"][0]["text"].encode()) <= 16_384
        piece = speaker.envelope(result)["data"]
        text, offset = text + piece["text"], piece["next_offset"]
    assert json.loads(text) == big


def test_h_31_lists_and_answers_are_capped_too(hub: RunningHub) -> None:
    speaker = Speaker(hub)
    names = [f"agent-{number:03}" for number in range(60)]
    hub.register(*names, topics=tuple(f"topic-{number}" for number in range(30)))
    for name in names:
        hub.call("publish", from_=name, to="topic:nobody-listens", topic="x", payload={})
    found: list[str] = []
    after: dict[str, object] = {}
    while True:
        result = speaker.result_of("status", {"scope": "agent", **after})
        assert len(result["content"][0]["text"]) <= 16_384
        data = speaker.envelope(result)["data"]
        found += [each["agent_id"] for each in data["agents"]]
        if data["next_after"] is None:
            break
        after = {"after": data["next_after"]}
    assert found == names
    seen = 0
    page_after: int | None = 0
    while page_after is not None:
        result = speaker.result_of("dead_letters", {"after": page_after, "limit": 500})
        assert len(result["content"][0]["text"]) <= 16_384
        data = speaker.envelope(result)["data"]
        seen, page_after = seen + len(data["dead_letters"]), data["next_after"]
    assert seen == len(names)
    ticket = speaker.data("ask", from_=names[0], to=names[1], topic="q", question="?", op_id="k")
    hub.call(
        "publish",
        from_=names[1],
        to=names[0],
        topic="a",
        payload={"t": "x" * 100_000},
        correlation_id=ticket["correlation_id"],
    )
    result = speaker.result_of(
        "ask", {"from": names[0], "to": names[1], "topic": "q", "question": "?", "op_id": "k"}
    )
    assert len(result["content"][0]["text"]) <= 16_384
    assert speaker.envelope(result)["data"]["response"]["cut"]


def test_h_30_the_same_key_gives_the_same_result_on_every_transport(speaker: Speaker) -> None:
    one, two = f"k-{speaker.version}", f"l-{speaker.version}"
    speaker.hub.register(one, two)
    given = {"from": one, "to": two, "topic": "x", "payload": {"n": 1}, "op_id": "once"}
    first = speaker.data("publish", **given)
    assert speaker.data("publish", **given) == first
    assert speaker.hub.post("/v1/publish", given).data == first
    other = speaker.tool("publish", **{**given, "payload": {"n": 2}})
    assert other["error"]["code"] == "idempotency-conflict"


def test_h_60_the_trace_of_a_client_is_the_trace_of_its_messages(speaker: Speaker) -> None:
    one, two = f"m-{speaker.version}", f"n-{speaker.version}"
    speaker.hub.register(one, two)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    meta = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    given = {"from": one, "to": two, "topic": "x", "payload": {}}
    params = {
        "name": "publish",
        "arguments": given,
        "_meta": {**envelope(), **meta} if speaker.is_modern else meta,
    }
    speaker.result("tools/call", params)
    [message] = speaker.data("poll_messages", agent_id=two, auto_ack=True)["messages"]
    assert message["trace_id"] == trace
