"""Arguments are checked before any service sees them, and the error says what was wrong (H-28)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub.running import RunningHub

SOUND: dict[str, object] = {
    "from": "operator",
    "to": "somebody",
    "topic": "x",
    "payload": {},
    "deferred": True,
}


def _error(hub: RunningHub, operation: str, fields: dict[str, object]) -> dict[str, Any]:
    reply = hub.post(f"/v1/{operation}", fields)
    assert reply.status == 400, reply.body
    error = reply.document["error"]
    assert isinstance(error, dict)
    assert error["kind"] == "invalid-request"
    return error


@pytest.mark.parametrize(
    ("field", "value", "received"),
    [
        ("priority", 0, "int"),
        ("priority", 10, "int"),
        ("priority", "5", "str"),
        ("ttl_ms", -5, "int"),
        ("ttl_ms", 86_400_001, "int"),
        ("ttl_ms", 1.5, "float"),
        ("deferred", "yes", "str"),
        ("topic", "", "text of 0 characters"),
        ("topic", None, "null"),
        ("to", ["somebody"], "array"),
        ("from", "x" * 500, "text of 500 characters"),
        ("correlation_id", 7, "int"),
        ("op_id", "", "text of 0 characters"),
    ],
)
def test_h_28_the_error_names_field_limit_and_received_type(
    shared_hub: RunningHub, field: str, value: object, received: str
) -> None:
    error = _error(shared_hub, "publish", {**SOUND, field: value})
    assert error["details"]["field"] == field
    assert error["details"]["limit"]
    assert error["details"]["received"] == received
    assert field in error["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("payload", "text"), ("payload", [1]), ("payload", None), ("from", "with spaces")],
)
def test_h_80_what_only_a_service_can_see_names_the_field_too(
    shared_hub: RunningHub, field: str, value: object
) -> None:
    error = _error(shared_hub, "publish", {**SOUND, field: value})
    assert error["details"]["field"] == field


@pytest.mark.parametrize("field", ["from", "to", "topic", "payload"])
def test_h_28_a_missing_field_is_named(shared_hub: RunningHub, field: str) -> None:
    given = {name: value for name, value in SOUND.items() if name != field}
    error = _error(shared_hub, "publish", given)
    assert error["details"]["field"] == field
    assert "required" in error["message"]


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("prioritty", "priority"), ("ttl", "ttl_ms"), ("sender", None), ("opid", "op_id")],
)
def test_h_28_an_unknown_field_is_refused_with_the_nearest_known_name(
    shared_hub: RunningHub, wrong: str, near: str | None
) -> None:
    error = _error(shared_hub, "publish", {**SOUND, wrong: 1})
    assert error["code"] == "unknown-field"
    assert error["details"]["field"] == wrong
    assert error["details"].get("nearest") == near
    assert set(SOUND) <= set(error["details"]["known"])
    assert (error["hint"] is None) == (near is None)


def test_h_28_a_field_within_a_field_is_named_by_its_path(shared_hub: RunningHub) -> None:
    fields = {
        "agent_id": "abc",
        "cli": "codex",
        "capabilities": ["code", 7],
        "topics": [],
        "heartbeat_ttl_ms": 60_000,
    }
    assert "capabilities" in _error(shared_hub, "register", fields)["details"]["field"]


def test_h_28_the_stream_takes_no_unknown_parameter(shared_hub: RunningHub) -> None:
    reply = shared_hub.get("/v1/events?since=4")
    assert (reply.status, reply.code) == (400, "unknown-field")


def test_h_32_the_bridge_ignores_unknown_fields_and_checks_the_known(
    shared_hub: RunningHub,
) -> None:
    assert shared_hub.post("/bridge/deregister", {"agent_id": 7, "x": 1}).status == 400
    reply = shared_hub.post("/bridge/register", {"agent_id": "bridge-1", "cli": "codex", "x": 1})
    assert reply.status == 200, reply.body
