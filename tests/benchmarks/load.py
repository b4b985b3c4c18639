"""A load generator of its own process: closed-loop keep-alive connections over raw sockets.

Prints one JSON line. A scenario is a generator that yields requests and is sent their bodies, so
that the same bytes go out however many connections there are.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import selectors
import socket
import statistics
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

Script = Generator[bytes, bytes, None]

TEXT = "The quick brown fox jumps over the lazy dog. " * 9  # about 400 bytes
LANE = 900
_ID = re.compile(rb'"(?:message_id|id)":"([^"]+)"')
_CORRELATION = re.compile(rb'"correlation_id":"([^"]+)"')
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Measured:
    """What the scripts note: finished operations, their latencies, and wake-ups of asks."""

    operations: int = 0
    latencies_s: list[float] = field(default_factory=list)
    answered_at: dict[bytes, float] = field(default_factory=dict)
    wakes_s: list[float] = field(default_factory=list)

    def done(self, since: float) -> None:
        """Note one finished operation."""
        self.operations += 1
        self.latencies_s.append(time.perf_counter() - since)


class Wire:
    """Request bytes for one hub."""

    def __init__(self, port: int, token: str) -> None:
        self._head = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()

    def post(self, path: str, fields: Mapping[str, object]) -> bytes:
        """Return a POST of a document."""
        body = json.dumps(fields).encode()
        return b"POST %b HTTP/1.1\r\n%b%d\r\n\r\n%b" % (path.encode(), self._head, len(body), body)


def register(wire: Wire, name: str) -> bytes:
    """Return the request that registers an agent."""
    fields = {
        "agent_id": name,
        "cli": "codex",
        "capabilities": ["code"],
        "topics": [],
        "heartbeat_ttl_ms": 7_200_000,
    }
    return wire.post("/v1/register", fields)


def publish(wire: Wire, measured: Measured, number: int) -> Script:
    """Publish to inboxes that nobody reads, a new one before a lane is full."""
    for turn in itertools.count():
        sink = f"sink-{os.getpid()}-{number}-{turn}"
        yield register(wire, sink)
        fields = {"from": "operator", "to": sink, "topic": "load", "payload": {"text": TEXT}}
        request = wire.post("/v1/publish", fields)
        for _ in range(LANE):
            since = time.perf_counter()
            yield request
            measured.done(since)


def empty(wire: Wire, measured: Measured, number: int) -> Script:
    """Post the publish request to a handler that does nothing."""
    fields = {
        "from": "operator",
        "to": f"sink-{number}",
        "topic": "load",
        "payload": {"text": TEXT},
    }
    request = wire.post("/v1/publish", fields)
    while True:
        since = time.perf_counter()
        yield request
        measured.done(since)


def round_trip(wire: Wire, measured: Measured, number: int) -> Script:
    """Publish to oneself, poll, ack."""
    name = f"round-{number}"
    yield register(wire, name)
    fields = {"from": name, "to": f"trip-{number}", "topic": "load", "payload": {"text": TEXT}}
    yield register(wire, f"trip-{number}")
    send = wire.post("/v1/publish", fields)
    poll = wire.post("/v1/poll_messages", {"agent_id": f"trip-{number}", "wait_ms": 1000})
    while True:
        since = time.perf_counter()
        yield send
        answer = yield poll
        ids = [found.decode() for found in _ID.findall(answer)]
        yield wire.post("/v1/ack", {"agent_id": f"trip-{number}", "message_ids": ids[:1]})
        measured.done(since)


def poll_empty(wire: Wire, measured: Measured, number: int) -> Script:
    """Poll an empty inbox without waiting."""
    yield register(wire, f"idle-{number}")
    request = wire.post("/v1/poll_messages", {"agent_id": f"idle-{number}", "wait_ms": 0})
    while True:
        since = time.perf_counter()
        yield request
        measured.done(since)


def status(wire: Wire, measured: Measured, number: int) -> Script:
    """Ask for the hub's status."""
    request = wire.post("/v1/status", {"include_metrics": bool(number + 1)})
    while True:
        since = time.perf_counter()
        yield request
        measured.done(since)


def asking(wire: Wire, measured: Measured, number: int) -> Script:
    """Ask an agent that answers at once; half of the connections are the answerers."""
    pair = number // 2
    if number % 2:
        yield from _answering(wire, measured, pair)
    yield register(wire, f"asker-{pair}")
    yield register(wire, f"oracle-{pair}")
    fields: dict[str, object] = {
        "from": f"asker-{pair}",
        "to": f"oracle-{pair}",
        "topic": "load",
        "question": "how much?",
        "await_response_ms": 10_000,
    }
    for turn in itertools.count():
        # with its key an ask acks the answer that it returns
        request = wire.post("/v1/ask", {**fields, "op_id": f"{os.getpid()}-{turn}"})
        since = time.perf_counter()
        answer = yield request
        measured.done(since)
        found = _CORRELATION.search(answer)
        sent = measured.answered_at.pop(found.group(1), None) if found else None
        if sent is not None:
            measured.wakes_s.append(time.perf_counter() - sent)


def _answering(wire: Wire, measured: Measured, pair: int) -> Script:
    name = f"oracle-{pair}"
    yield register(wire, name)
    poll: dict[str, object] = {"agent_id": name, "wait_ms": 5_000, "auto_ack": True}
    while True:
        mail = yield wire.post("/v1/poll_messages", poll)
        found = _CORRELATION.search(mail)
        if found is None:
            continue
        answer = {
            "from": name,
            "to": f"asker-{pair}",
            "topic": "load",
            "payload": {"n": 1},
            "correlation_id": found.group(1).decode(),
        }
        request = wire.post("/v1/publish", answer)
        measured.answered_at[found.group(1)] = time.perf_counter()
        yield request


SCRIPTS: dict[str, Callable[[Wire, Measured, int], Script]] = {
    "publish": publish,
    "empty": empty,
    "publish+poll+ack": round_trip,
    "ask→answer": asking,
    "poll": poll_empty,
    "status": status,
}


class Connection:
    """One keep-alive connection that runs a script."""

    def __init__(self, port: int, script: Script) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._script = script
        self._got = b""
        self.socket.sendall(next(script))

    def advance(self) -> None:
        """Read; on a whole response send the next request."""
        chunk = self.socket.recv(262_144)
        if not chunk:
            raise ConnectionError("the hub closed a connection")
        self._got += chunk
        head, separator, body = self._got.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not separator or length is None or len(body) < int(length.group(1)):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head[:40]!r} {body[:400]!r}")
        self._got = b""
        self.socket.sendall(self._script.send(body))


def run(
    port: int, token: str, scenario: str, connections: int, operations: int
) -> dict[str, object]:
    """Run a scenario until that many operations are done; return what was measured."""
    measured = Measured()
    wire = Wire(port, token)
    selector = selectors.DefaultSelector()
    opened = [
        Connection(port, SCRIPTS[scenario](wire, measured, number)) for number in range(connections)
    ]
    for connection in opened:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    began = time.perf_counter()
    while measured.operations < operations:
        for key, _events in selector.select():
            key.data.advance()
    seconds = time.perf_counter() - began
    for connection in opened:
        connection.socket.close()
    return {
        "operations": measured.operations,
        "seconds": seconds,
        "p50_ms": _percentile(measured.latencies_s, 50),
        "p99_ms": _percentile(measured.latencies_s, 99),
        "wake_p50_ms": _percentile(measured.wakes_s, 50),
    }


def _percentile(values: list[float], percent: int) -> float | None:
    if len(values) < 2:
        return None
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1000


def main() -> None:
    """Run one scenario against a hub; the token comes from standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--scenario", choices=SCRIPTS, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--operations", type=int, required=True)
    chosen = parser.parse_args()
    token = input()
    found = run(chosen.port, token, chosen.scenario, chosen.connections, chosen.operations)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
