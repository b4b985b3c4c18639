"""Who names no agent is refused without a doubt about the token (WK-A1, K-9)."""

from __future__ import annotations

import http.client
import json

import pytest

from tests.hub.running import RunningHub
from tests.hub.speaking import Speaker
from tfx.errors import ActorMissing, Exit, Kind
from tfx.hub.client import Address, HubClient
from tfx.hub.failures import from_wire, to_wire
from tfx.hub.wire.leases import LeaseResult
from tfx.hub.wire.work import TaskListResult


def test_h_27_actor_missing_is_403_for_the_bearer_was_right(hub: RunningHub) -> None:
    """401 would send the bridge for another token, and tell the hook that it has a wrong one."""
    refused = hub.post("/v1/work_claim", {"task": 1, "room": "/r"})
    assert refused.status == 403
    assert "www-authenticate" not in refused.headers
    error = refused.document["error"]
    assert (error["code"], error["kind"]) == ("actor-missing", "authentication-required")
    nobody = hub.request("GET", "/status", None, hub.headers()[:1])
    assert (nobody.status, nobody.headers["www-authenticate"]) == (401, "Bearer")


def test_h_27_actor_missing_leaves_the_connection_open(hub: RunningHub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=20)
    headers = {**dict(hub.headers()), "Content-Type": "application/json"}
    sockets = set()
    for _ in range(3):
        connection.request("POST", "/v1/work_next", json.dumps({"room": "/r"}), headers)
        answer = connection.getresponse()
        assert answer.status == 403
        answer.read()
        sockets.add(connection.sock)
    assert len(sockets) == 1
    assert None not in sockets
    connection.close()


def test_k_9_the_client_raises_it_as_its_class_and_goes_on(hub: RunningHub) -> None:
    address = Address(f"http://127.0.0.1:{hub.port}", None)
    with HubClient(address, hub.token) as client:
        with pytest.raises(ActorMissing) as caught:
            client.call_with("work_claim", {"task": 1, "room": "/r"}, LeaseResult)
        assert (caught.value.exit, caught.value.kind) == (
            *(Exit.REFUSED, Kind.AUTHENTICATION_REQUIRED),
        )
        assert client.call_with("work_list", {"room": "/r"}, TaskListResult).tasks == ()
    assert type(from_wire(to_wire(caught.value))) is ActorMissing


def test_h_30_over_mcp_it_is_a_refusal_of_the_tool_and_none_of_the_transport(
    hub: RunningHub,
) -> None:
    speaker = Speaker(hub, query="?tools=bus,work")
    for _ in range(2):
        error = speaker.tool("work_claim", task=1, room="/r")["error"]
        assert (error["code"], error["kind"]) == ("actor-missing", "authentication-required")
