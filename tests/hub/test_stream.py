"""The event stream: cursor, Last-Event-ID, errors, bounds (H-26, H-49)."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator

from tests.hub.running import PATIENT, RunningHub
from tests.hub.waiting import until
from tests.support import tfx
from tfx.hub.daemon import stop as stopping
from tfx.hub.transport.events import MOST_STREAMS


@contextlib.contextmanager
def stream(
    hub: RunningHub, path: str = "/v1/events", **headers: str
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    with contextlib.closing(connection):
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=dict(hub.headers()) | given)
        with connection.getresponse() as response:
            yield response


def _read(response: http.client.HTTPResponse, count: int) -> list[tuple[str, str]]:
    """Return the next events as (id, kind)."""
    found: list[tuple[str, str]] = []
    name = ""
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith("id: "):
            name = line[4:]
        elif line.startswith("event: "):
            found.append((name, line[7:]))
        elif line.startswith("data: "):
            assert json.loads(line[6:])["cursor"] == name
            if len(found) == count:
                return found
    raise AssertionError("the stream ended")


def test_h_26_the_stream_begins_at_the_oldest_event_and_goes_on_live(hub: RunningHub) -> None:
    hub.register("agent-1")
    with stream(hub) as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        kinds = [kind for _cursor, kind in _read(response, 2)]
        assert kinds == ["hub_started", "agent_registered"]
        hub.call("publish", from_="operator", to="agent-1", topic="x", payload={"n": 1})
        while "message_posted" not in kinds:
            kinds += [kind for _cursor, kind in _read(response, 1)]


def test_h_26_a_cursor_continues_behind_its_event_by_parameter_and_by_header(
    hub: RunningHub,
) -> None:
    hub.register("agent-1", "agent-2")
    with stream(hub) as response:
        events = _read(response, 3)
    cursor = events[0][0]
    for path, headers in (
        (f"/v1/events?after={cursor}", {}),
        ("/v1/events", {"Last_Event_ID": cursor}),
        ("/v1/events?after=0-" + "0" * 32, {"Last_Event_ID": cursor}),
    ):
        with stream(hub, path, **headers) as response:
            assert _read(response, 2) == events[1:]


def test_h_26_ev_d6_a_cursor_that_does_not_fit_is_refused_before_the_stream_begins(
    hub: RunningHub,
) -> None:
    for after, status, code in (
        ("9999-" + "a" * 32, 409, "cursor-ahead"),
        ("1-" + "a" * 32, 409, "cursor-ahead"),
        ("nonsense", 400, None),
    ):
        reply = hub.get(f"/v1/events?after={after}")
        assert reply.status == status
        assert code is None or reply.code == code


def test_h_49_streams_are_bounded_with_a_typed_refusal(hub: RunningHub) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_STREAMS):
            response = stack.enter_context(stream(hub))
            assert response.status == 200
            response.readline()
        assert hub.get("/v1/events").code == "too-many-streams"
        assert hub.get("/status").status == 200


def test_k_7_events_f_is_ndjson_and_survives_a_restart(hub: RunningHub) -> None:
    argv = [sys.executable, "-m", "tfx", "hub", "events", "-f", "--json"]
    with subprocess.Popen(argv, env=hub.env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            until(lambda: hub.get("/status").document["queues"]["open_waits"])
            hub.register("agent-1")
            kinds = [json.loads(child.stdout.readline())["kind"]]
            hub.end()
            again = hub.again()
            again.register("agent-2")
            while kinds.count("agent_registered") < 2:
                kinds.append(json.loads(child.stdout.readline())["kind"])
        finally:
            child.kill()
    assert "hub_started" in kinds


def test_events_without_f_is_one_document_with_a_cursor(hub: RunningHub) -> None:
    hub.register("agent-1")
    ran = tfx(hub.home, "hub", "events", "--limit", "1", "--json", env=hub.env)
    assert [event["kind"] for event in ran.data["events"]] == ["hub_started"]
    after = ran.data["next_cursor"]
    more = tfx(hub.home, "hub", "events", "--after", after, "--json", env=hub.env)
    assert more.data["events"][0]["kind"] == "agent_registered"


def test_h_49_streams_opened_at_once_are_bounded_too(hub: RunningHub) -> None:
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_connection(("127.0.0.1", hub.port), timeout=60))
            for _ in range(MOST_STREAMS + 20)
        ]
        for each in sockets:
            each.sendall(_asking(hub))
        told = [_first_words(each) for each in sockets]
        assert sum(b": tfx events" in each for each in told) == MOST_STREAMS
        assert sum(b"too-many-streams" in each for each in told) == 20


def test_h_17_streams_that_nobody_reads_hold_nothing_up(hub: RunningHub) -> None:
    hub.register("agent-1")
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            deaf = stack.enter_context(socket.socket())
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", hub.port))
            deaf.sendall(_asking(hub))
        payload = {"text": "x" * 200_000}
        for _ in range(60):  # more than the socket buffers of the system take
            hub.call("publish", from_="agent-1", to="agent-1", topic="x", payload=payload)
        status = hub.get("/status").document
        assert status["hub"]["state"] == "ready"
        assert status["queues"]["wal_bytes"] < 64 * 1024 * 1024
        assert stopping.stop(hub.paths, PATIENT).step is stopping.Step.REQUEST


def _asking(hub: RunningHub) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in hub.headers())
    return f"GET /v1/events HTTP/1.1\r\n{head}\r\n".encode()


def _first_words(of: socket.socket) -> bytes:
    said = b""
    while b": tfx events" not in said and b"too-many-streams" not in said:
        chunk = of.recv(65_536)
        if not chunk:
            break
        said += chunk
    return said
