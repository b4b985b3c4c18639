"""W3C trace context at `/mcp`: a `traceparent` is a trace of the hub, and back (H-60)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.hub.running import RunningHub
from tests.hub.speaking import LEGACY, Speaker, envelope
from tfx.hub.transport.mcp.tracing import trace_in

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BROUGHT = f"00-{TRACE}-00f067aa0ba902b7-01"


def told(result: Any) -> str | None:  # noqa: ANN401  (JSON of the hub under test)
    given = result.get("_meta", {}).get("traceparent")
    assert given is None or isinstance(given, str)
    return given


def call(speaker: Speaker, name: str, traceparent: str | None = None, **arguments: object) -> Any:  # noqa: ANN401
    """Call a tool, with a trace as a client hands it over, and return the whole result."""
    meta: dict[str, object] = {} if traceparent is None else {"traceparent": traceparent}
    if speaker.is_modern:
        meta = {**envelope(), **meta}
    given = {key.rstrip("_"): value for key, value in arguments.items()}
    result = speaker.result("tools/call", {"name": name, "arguments": given, "_meta": meta})
    assert not result["isError"], result
    return result


def test_h_60_a_chain_of_five_agents_is_one_trace_by_what_the_results_hand_on(
    speaker: Speaker,
) -> None:
    agents = [f"{name}-{speaker.version}" for name in ("ann", "bob", "cat", "dan", "eve")]
    speaker.hub.register(*agents)
    traceparent: str | None = BROUGHT
    sent: list[str] = []
    spans = {BROUGHT}
    for sender, receiver in pairwise(agents):
        given = {"from": sender, "to": receiver, "topic": "x", "payload": {}}
        result = call(speaker, "publish", traceparent, **given)
        sent.append(speaker.envelope(result)["data"]["message_id"])
        spans.add(str(told(result)))
        result = call(speaker, "poll_messages", agent_id=receiver, auto_ack=True)
        traceparent = told(result)
        assert traceparent == f"00-{TRACE}-{sent[-1][16:]}-01"
    assert len(spans) == len(agents)
    found = speaker.hub.call("trace", trace_id=TRACE)["items"]
    posted = [each["message_id"] for each in found if each["kind"] == "message_posted"]
    assert [each for each in posted if each in sent] == sent


def test_h_60_a_trace_that_the_hub_began_is_told_as_one_and_comes_back(speaker: Speaker) -> None:
    one, two = f"one-t-{speaker.version}", f"two-t-{speaker.version}"
    speaker.hub.register(one, two)
    pair: dict[str, object] = {"from": one, "to": two, "topic": "x"}
    question = {"kind": "text", "prompt": "?", "requested_schema": {}, "deadline_ms": 60_000}
    begun = {
        "publish": {**pair, "payload": {}},
        "ask": {**pair, "question": "?"},
        "handoff": {**pair, "task": "it"},
        "request_human_input": {
            "requester_agent": one,
            "default_action": "decline",
            **question,
        },
    }
    for name, arguments in begun.items():
        result = call(speaker, name, None, **arguments)
        trace = speaker.envelope(result)["data"]["trace_id"]
        traceparent = told(result)
        assert traceparent is not None, name
        assert trace_in(traceparent) == trace
        again = call(speaker, "publish", traceparent, **begun["publish"])
        assert speaker.envelope(again)["data"]["trace_id"] == trace
        read = call(
            speaker, "read_message", message_id=speaker.envelope(again)["data"]["message_id"]
        )
        assert told(read) == told(again)


def test_h_60_an_answer_is_of_the_trace_of_its_question_whatever_its_sender_is_in(
    speaker: Speaker,
) -> None:
    one, two = f"one-a-{speaker.version}", f"two-a-{speaker.version}"
    speaker.hub.register(one, two)
    asked = call(speaker, "ask", from_=one, to=two, topic="q", question="?")
    ticket = speaker.envelope(asked)["data"]
    answer = {"from": two, "to": one, "topic": "a", "payload": {}}
    answered = call(speaker, "publish", BROUGHT, **answer, correlation_id=ticket["correlation_id"])
    assert trace_in(str(told(answered))) == ticket["trace_id"] != TRACE


@pytest.mark.parametrize("trace", ["my own trace", "0" * 32, TRACE.upper(), TRACE + "0"])
def test_h_60_a_trace_id_that_is_no_w3c_one_gets_no_traceparent(
    speaker: Speaker, trace: str
) -> None:
    one, two = f"one-n-{speaker.version}", f"two-n-{speaker.version}"
    speaker.hub.register(one, two)
    given = {"from": one, "to": two, "topic": "x", "payload": {}, "trace_id": trace}
    result = call(speaker, "publish", BROUGHT, **given)
    assert speaker.envelope(result)["data"]["trace_id"] == trace
    assert told(result) is None


def test_h_60_what_tells_of_no_trace_or_of_several_has_none(speaker: Speaker) -> None:
    one, two = f"one-s-{speaker.version}", f"two-s-{speaker.version}"
    speaker.hub.register(one, two)
    assert told(call(speaker, "status", BROUGHT)) is None
    assert told(call(speaker, "poll_messages", BROUGHT, agent_id=two, wait_ms=0)) is None
    for _ in range(2):
        speaker.hub.call("publish", from_=one, to=two, topic="x", payload={})
    result = call(speaker, "poll_messages", BROUGHT, agent_id=two, auto_ack=True)
    assert len(speaker.envelope(result)["data"]["messages"]) == 2
    assert told(result) is None


def test_h_60_a_legacy_result_of_no_trace_is_as_it_always_was(shared_hub: RunningHub) -> None:
    result = call(Speaker(shared_hub, LEGACY[-1]), "status")
    assert set(result) == {"content", "isError"}


def test_h_60_the_trace_of_a_task_is_told_too(speaker: Speaker) -> None:
    worker = Speaker(speaker.hub, speaker.version, query="?tools=work")
    name = f"worker-{speaker.version}"
    speaker.hub.register(name)
    given = {"agent_id": name, "room": f"/a/{speaker.version}", "title": "it"}
    added = call(worker, "work_add", **given)
    trace = worker.envelope(added)["data"]["task"]["trace_id"]
    assert told(added) == f"00-{trace}-{trace[16:]}-01"


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        (BROUGHT, TRACE),
        (BROUGHT[:-2] + "00", TRACE),
        ("01" + BROUGHT[2:], TRACE),
        ("cc" + BROUGHT[2:] + "-what-comes-later", TRACE),
        ("", None),
        ("ff" + BROUGHT[2:], None),
        (BROUGHT + "-more", None),
        ("01" + BROUGHT[2:] + "more", None),
        (BROUGHT.upper(), None),
        (BROUGHT.replace(TRACE, "0" * 32), None),
        (BROUGHT.replace("00f067aa0ba902b7", "0" * 16), None),
        (BROUGHT + "\n", None),
        (" " + BROUGHT, None),
    ],
)
def test_h_60_only_a_valid_traceparent_names_a_trace(text: str, trace: str | None) -> None:
    assert trace_in(text) == trace
