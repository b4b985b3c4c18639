"""What the transport does beside opening doors: faults, hang-ups, metrics, status (H-19, H-24)."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from typing import Any

import pytest

from tests.hub.running import RunningHub
from tests.hub.waiting import until
from tfx.errors import Kind, StateConflict, TfxError
from tfx.hub.failures import HTTP_STATUS, from_wire, to_wire
from tfx.hub.tokens import Credentials
from tfx.hub.transport.auth import Doors
from tfx.hub.transport.http import Application, Traffic

TOKEN = "t" * 40


async def _nothing(*_: object) -> None:
    raise AssertionError("not reached")


def _ask(application: Application) -> list[Any]:
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/x",
        "state": {},
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", b"Bearer " + TOKEN.encode()),
            (b"content-type", b"application/json"),
        ],
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent


def _application(error: Exception, refused: list[str], traffic: Traffic) -> Application:
    async def fails(*_: object) -> None:
        raise error

    return Application(
        Doors(Credentials(TOKEN, "o" * 40), ()),
        {"/v1/x": fails},
        _nothing,
        traffic=traffic,
        now_ms=lambda: 1,
        refused=refused.append,
    )


def test_h_19_h_46_a_fault_in_a_handler_is_logged_with_an_id_and_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    traffic = Traffic()
    sent = _ask(_application(ValueError("canary-4711"), [], traffic))
    assert sent[0]["status"] == 500
    incident = json.loads(sent[1]["body"])["error"]["details"]["incident"]
    assert incident in caplog.text
    assert "ValueError" in caplog.text
    assert "canary-4711" not in caplog.text + str(sent)
    assert (traffic.errors, traffic.open_calls, traffic.requests) == (1, 0, 1)


@pytest.mark.parametrize("kind", list(Kind))
def test_h_27_each_kind_has_its_status_and_survives_the_wire(kind: Kind) -> None:
    expected = [400, 401, 403, 404, 409, 503, 500]
    assert list(HTTP_STATUS.values()) == expected
    made = from_wire({"code": "some-code", "kind": kind.value, "message": "m", "details": {"a": 1}})
    assert (made.kind, made.reason, made.details) == (kind, "some-code", {"a": 1})
    again = from_wire(to_wire(made))
    assert (type(again), again.hint) == (type(made), None)


def test_h_27_an_error_keeps_its_class_across_the_wire() -> None:
    error = StateConflict("m", code="lock-held", hint="h")
    assert type(from_wire(to_wire(error))).__name__ == "LockHeld"
    strangers: tuple[object, ...] = (None, [], {"kind": "?"}, {"kind": "not-found", "details": 3})
    for strange in strangers:
        assert isinstance(from_wire(strange), TfxError)


def test_h_76_a_refusal_is_counted_by_its_code() -> None:
    refused: list[str] = []
    _ask(_application(StateConflict("m", code="already-answered"), refused, Traffic()))
    assert refused == ["already-answered"]


def test_h_57_a_poll_whose_client_hangs_up_claims_nothing(hub: RunningHub) -> None:
    hub.register("agent-1")
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    body = json.dumps({"agent_id": "agent-1", "wait_ms": 45_000})
    headers = {**dict(hub.headers()), "Content-Type": "application/json"}
    connection.request("POST", "/v1/poll_messages", body, headers)
    _until(hub, 1)
    connection.close()
    _until(hub, 0)
    hub.call("publish", from_="operator", to="agent-1", topic="x", payload={})
    [message] = hub.call("poll_messages", agent_id="agent-1", wait_ms=0)["messages"]
    assert message["attempt"] == 1


def test_h_84_a_waiting_poll_returns_when_mail_comes(hub: RunningHub) -> None:
    hub.register("agent-1")
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    body = json.dumps({"agent_id": "agent-1", "wait_ms": 45_000})
    headers = {**dict(hub.headers()), "Content-Type": "application/json"}
    connection.request("POST", "/v1/poll_messages", body, headers)
    _until(hub, 1)
    hub.call("publish", from_="operator", to="agent-1", topic="x", payload={"n": 1})
    data = json.loads(connection.getresponse().read())["data"]
    connection.close()
    assert [message["payload"] for message in data["messages"]] == [{"n": 1}]


def test_h_24_status_has_triflux_s_keys_and_ours(hub: RunningHub) -> None:
    document = hub.get("/status").document
    assert {"hub", "queues", "sessions", "pid", "port", "instance", "version", "schema",
            "durability", "warnings"} <= set(document)  # fmt: skip
    assert {"state", "uptime_ms", "database", "log"} <= set(document["hub"])
    assert (document["pid"], document["port"]) == (hub.pid, hub.port)


def test_h_25_metrics_are_prometheus_text_without_names_of_agents(hub: RunningHub) -> None:
    hub.register("canary-agent")
    hub.call("publish", from_="operator", to="canary-agent", topic="canary", payload={})
    reply = hub.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert "canary" not in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
    assert "tfx_http_requests_total" in text


def _until(hub: RunningHub, waits: int) -> None:
    until(lambda: hub.get("/status").document["queues"]["open_waits"] == waits)
