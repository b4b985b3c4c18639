"""MCP at `/mcp`: both eras, stateless, frames and doors (H-33, H-35, H-42 … H-44, H-79)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.hub.running import RunningHub
from tests.hub.speaking import LEGACY, MODERN, Speaker, envelope


@pytest.fixture
def legacy(shared_hub: RunningHub) -> Speaker:
    return Speaker(shared_hub, LEGACY[-1])


def test_h_33_a_message_is_sent_and_received_in_every_revision(speaker: Speaker) -> None:
    one, two = f"one-{speaker.version}", f"two-{speaker.version}"
    speaker.hub.register(one, two)
    sent = speaker.data("publish", from_=one, to=two, topic="news", payload={"n": 1})
    got = speaker.data("poll_messages", agent_id=two, wait_ms=0, auto_ack=True)
    assert [each["message_id"] for each in got["messages"]] == [sent["message_id"]]
    assert got["messages"][0]["payload"] == {"n": 1}


def test_h_33_the_hub_may_be_killed_between_two_calls(hub: RunningHub) -> None:
    hub.register("one", "two")
    for version in (MODERN, LEGACY[-1]):
        speaker = Speaker(hub, version)
        if version != MODERN:
            speaker.result("initialize", {"protocolVersion": version})
        speaker.data("publish", from_="one", to="two", topic="news", payload={"v": version})
        hub.kill()
        hub = hub.again()
        # the client sends its next request as if nothing had been; only the port is another
        got = replace(speaker, hub=hub).data("poll_messages", agent_id="two", auto_ack=True)
        assert [each["payload"] for each in got["messages"]] == [{"v": version}]


@pytest.mark.parametrize("asked", [*LEGACY, MODERN, "1999-01-01"])
def test_h_33_initialize_agrees_on_the_revision_asked_for_or_the_newest_legacy_one(
    legacy: Speaker, asked: str
) -> None:
    answer = legacy.raw(
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": asked}}
    )
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers
    result = answer.document["result"]
    assert result["protocolVersion"] == (asked if asked in LEGACY else LEGACY[-1])
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "tfx-hub"


def test_h_33_h_91_a_session_id_of_a_life_before_is_accepted(legacy: Speaker) -> None:
    answer = legacy.raw(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        [("Mcp-Session-Id", "of-another-life"), ("MCP-Protocol-Version", "2025-06-18")],
    )
    assert answer.status == 200


def test_h_33_discover_names_the_revision_and_the_server(modern: Speaker) -> None:
    result = modern.result("server/discover")
    assert result["supportedVersions"] == [MODERN]
    assert result["capabilities"] == {"tools": {}}
    assert result["resultType"] == "complete"
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] == "private"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "tfx-hub"


@pytest.mark.parametrize(
    "meta", [None, {}, {k: v for k, v in envelope().items() if not k.endswith("protocolVersion")}]
)
def test_h_33_a_modern_request_without_its_envelope_is_refused(
    modern: Speaker, meta: dict[str, object] | None
) -> None:
    params = {} if meta is None else {"_meta": meta}
    answer = modern.raw(
        {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params},
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")],
    )
    assert (answer.status, answer.document["error"]["code"], answer.document["id"]) == (
        400,
        -32602,
        7,
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"MCP-Protocol-Version": MODERN},
        {"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "tools/call", "Mcp-Name": "status"},
        {"MCP-Protocol-Version": MODERN, "Mcp-Method": "TOOLS/CALL", "Mcp-Name": "status"},
        {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"},
        {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "publish"},
        {
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "=?base64?c3RhdHV!?=",
        },
    ],
)
def test_h_33_headers_that_differ_from_the_body_are_refused(
    modern: Speaker, headers: dict[str, str]
) -> None:
    document = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "status", "arguments": {}, "_meta": envelope()},
    }
    answer = modern.raw(document, headers.items())
    assert (answer.status, answer.document["error"]["code"]) == (400, -32020)


def test_h_33_a_name_may_come_encoded(modern: Speaker) -> None:
    document = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "status", "arguments": {}, "_meta": envelope()},
    }
    headers = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?c3RhdHVz?="),
    ]
    assert modern.raw(document, headers).status == 200
    twice = modern.raw(document, [*headers, ("Mcp-Name", "status")])
    assert (twice.status, twice.document["error"]["code"]) == (400, -32020)


def test_h_33_an_unknown_revision_is_told_which_are_served(modern: Speaker) -> None:
    meta = envelope("2099-01-01")
    answer = modern.raw(
        {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}},
        [("MCP-Protocol-Version", "2099-01-01"), ("Mcp-Method", "server/discover")],
    )
    error = answer.document["error"]
    assert (answer.status, error["code"]) == (400, -32022)
    assert error["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/list"])
def test_h_33_methods_that_the_modern_era_does_not_have_are_not_found(
    modern: Speaker, method: str
) -> None:
    assert modern.error(method) == (404, -32601)


def test_h_33_a_legacy_client_may_ping_and_gets_an_error_for_what_is_not_declared(
    legacy: Speaker,
) -> None:
    assert legacy.result("ping") == {}
    assert legacy.error("resources/list") == (200, -32601)
    assert legacy.error("logging/setLevel", {"level": "info"}) == (200, -32601)


def test_h_33_notifications_get_no_answer(speaker: Speaker) -> None:
    answer = speaker.raw(
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [("MCP-Protocol-Version", speaker.version)],
    )
    assert (answer.status, answer.body) == (202, b"")


def test_h_33_a_batch_is_answered_where_its_revision_has_batches(shared_hub: RunningHub) -> None:
    ping = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    old = Speaker(shared_hub).raw([ping, note, {**ping, "id": 2}])
    assert old.status == 200
    assert [each["id"] for each in old.document] == ["a", 2]
    assert Speaker(shared_hub).raw([note]).status == 202
    for headers in ([("MCP-Protocol-Version", "2025-06-18")], [("MCP-Protocol-Version", MODERN)]):
        refused = Speaker(shared_hub).raw([ping], headers)
        assert (refused.status, refused.document["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700),
        (b"7", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602),
    ],
)
def test_h_79_what_is_no_message_gets_400_and_an_error_of_the_protocol(
    modern: Speaker, body: bytes, code: int
) -> None:
    answer = modern.raw(body)
    assert (answer.status, answer.document["error"]["code"]) == (400, code)


@pytest.mark.parametrize("identity", [0, -3, 2**53, "text", 'with "quotes" and ü'])
def test_h_33_an_id_comes_back_as_it_was(speaker: Speaker, identity: object) -> None:
    assert speaker.post("tools/list", identity=identity).document["id"] == identity


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_h_35_other_methods_are_refused(shared_hub: RunningHub, method: str) -> None:
    answer = shared_hub.request(method, "/mcp", None, shared_hub.headers())
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("version", [MODERN, LEGACY[-1]])
def test_h_42_h_43_h_44_the_doors_stand_before_mcp(shared_hub: RunningHub, version: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    host = ("Host", f"127.0.0.1:{shared_hub.port}")
    token = ("Authorization", f"Bearer {shared_hub.token}")
    kind = ("Content-Type", "application/json")
    length = ("Content-Length", str(len(body)))
    revision = ("MCP-Protocol-Version", version)
    for headers, status in (
        ([host, kind, length], 401),
        ([host, kind, length, ("Authorization", "Bearer wrong-wrong-wrong")], 401),
        ([("Host", "evil.example"), kind, length, token], 421),
        ([host, kind, length, token, ("Origin", "http://evil.example")], 403),
        ([host, ("Content-Type", "text/plain"), length, token], 415),
    ):
        assert shared_hub.request("POST", "/mcp", body, [*headers, revision]).status == status
    big = b'{"a":"' + b"x" * 1_100_000 + b'"}'
    sized = [host, kind, token, revision, ("Content-Length", str(len(big)))]
    assert shared_hub.request("POST", "/mcp", big, sized).status == 413
