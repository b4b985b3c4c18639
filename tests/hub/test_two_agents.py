"""Two agents end to end by real processes: ask through one bridge, answer through another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub.bridging import BridgeClient
from tests.hub.running import RunningHub
from tests.hub.speaking import LEGACY, MODERN
from tests.hub.waiting import until


@pytest.fixture
def pair(hub: RunningHub) -> Iterator[tuple[BridgeClient, BridgeClient]]:
    """Ada speaks the modern revision, Bob a legacy one."""
    ada = BridgeClient.start({**hub.env, "TFX_AGENT_ID": "ada"}, cwd=hub.home, version=MODERN)
    bob = BridgeClient.start({**hub.env, "TFX_AGENT_ID": "bob"}, cwd=hub.home, version=LEGACY[-1])
    for client in (ada, bob):
        client.open()
    yield ada, bob
    for client in (ada, bob):
        client.kill()


def until_waiting(hub: RunningHub, count: int) -> None:
    until(lambda: hub.get("/status").document["queues"]["open_waits"] >= count)


def chain(hub: RunningHub, trace_id: str) -> list[tuple[str, str, str | None]]:
    """The posts of a trace: kind, actor, cause; what was delivered twice is told apart."""
    items: list[dict[str, Any]] = hub.call("trace", trace_id=trace_id)["items"]
    assert [item["seq"] for item in items] == sorted(item["seq"] for item in items)
    return [
        (item["type"], item["actor"], item["cause"])
        for item in items
        if item["kind"] in {"message_posted", "reply_posted"}
    ]


def test_h_58_h_60_one_asks_the_other_answers_and_the_trace_shows_it(
    hub: RunningHub, pair: tuple[BridgeClient, BridgeClient]
) -> None:
    ada, bob = pair
    polling = bob.begin_tool("poll_messages", wait_ms=45_000)
    until_waiting(hub, 1)
    asking = ada.begin_tool(
        "ask", to="bob", topic="review", question="May it go in?", await_response_ms=45_000
    )
    [question] = bob.tool_answer(polling)["data"]["messages"]
    assert (question["from"], question["payload"]["question"]) == ("ada", "May it go in?")
    bob.data(
        "publish",
        to="ada",
        topic="review",
        payload={"verdict": "yes"},
        correlation_id=question["correlation_id"],
    )
    answered = ada.tool_answer(asking)["data"]
    assert answered["state"] == "answered"
    assert answered["response"]["payload"] == {"verdict": "yes"}
    assert chain(hub, question["trace_id"]) == [
        ("request", "ada", None),
        ("response", "bob", question["message_id"]),
    ]


def test_h_118_the_same_while_the_hub_is_killed_twice(
    hub: RunningHub, pair: tuple[BridgeClient, BridgeClient]
) -> None:
    ada, bob = pair
    polling = bob.begin_tool("poll_messages", wait_ms=45_000)
    until_waiting(hub, 1)
    hub.kill()  # while one polls
    hub = hub.again()
    until_waiting(hub, 1)
    asking = ada.begin_tool(
        "ask", to="bob", topic="review", question="May it go in?", await_response_ms=45_000
    )
    [question] = bob.tool_answer(polling)["data"]["messages"]
    until_waiting(hub, 1)
    hub.kill()  # while the other waits for its answer
    answer = {
        "to": "ada",
        "topic": "review",
        "payload": {"verdict": "yes"},
        "correlation_id": question["correlation_id"],
        "op_id": "the-one-answer",
    }
    sent = bob.data("publish", **answer)  # starts the hub again
    assert bob.data("publish", **answer) == sent
    answered = ada.tool_answer(asking)["data"]
    assert answered["state"] == "answered"
    assert answered["response"]["message_id"] == sent["message_id"]
    hub = hub.again()
    assert chain(hub, question["trace_id"]) == [
        ("request", "ada", None),
        ("response", "bob", question["message_id"]),
    ]
    bob.data("poll_messages", wait_ms=0, ack_ids=[question["message_id"]])
    ada.data("poll_messages", wait_ms=0, auto_ack=True)
    queues = hub.get("/status").document["queues"]
    assert (queues["queued"], queues["claimed"], queues["dead_letters"]) == (0, 0, 0)
    assert hub.call("rebuild_check", operator=True)["equal"]
