"""SIGKILL under load: what was acknowledged is there, nothing is answered twice (EV-T3, H-118)."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.hub.running import RunningHub, free_port
from tests.support import bare_env
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

RECEIVERS = [f"receiver-{number}" for number in range(4)]
ENOUGH = 50  # messages
SENDERS = [f"sender-{number}" for number in range(4)]


class Client(threading.Thread):
    """Repeats each call with its `op_id` until it is answered, through any number of deaths."""

    def __init__(self, storm: Storm, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.storm = storm
        self.connection: http.client.HTTPConnection | None = None
        self.repeated = 0
        self.error: str | None = None

    def call(self, operation: str, **fields: object) -> Any:  # noqa: ANN401
        body = json.dumps({key.rstrip("_"): value for key, value in fields.items()}).encode()
        while True:
            try:
                return self._once(operation, body)
            except (OSError, http.client.HTTPException):
                self.repeated += 1
                self.hang_up()
                time.sleep(0.01)

    def _once(self, operation: str, body: bytes) -> Any:  # noqa: ANN401
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.storm.port, timeout=20)
        self.connection.request("POST", f"/v1/{operation}", body, self.storm.headers)
        response = self.connection.getresponse()
        document = json.loads(response.read())
        if response.status == 503:  # draining or not yet back
            raise ConnectionResetError
        if response.status != 200:
            raise AssertionError(f"{operation}: {document}")
        return document["data"]

    def hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def turn(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            while not self.storm.over.is_set():
                self.turn()
        except BaseException as error:  # noqa: BLE001  (told by the test)
            self.error = repr(error)
        finally:
            self.hang_up()


class Sender(Client):
    """Publishes and asks; what it notes was acknowledged."""

    def turn(self) -> None:
        number = self.storm.next_number()
        fields = {
            "from_": self.name,
            "to": random.choice(RECEIVERS),
            "topic": "storm",
            "op_id": f"op-{number}",
            "ttl_ms": 86_400_000,
        }
        if number % 4:
            done = self.call("publish", payload={"n": number}, **fields)
            self.storm.acknowledged[done["message_id"]] = number
        else:
            done = self.call("ask", question=str(number), payload={"n": number}, **fields)
            self.storm.acknowledged[done["request_message_id"]] = number
            self.storm.asked.add(done["correlation_id"])


class Receiver(Client):
    """Polls, answers requests, acks; what it notes was acked."""

    def turn(self) -> None:
        # a poll repeated with its key returns the claim whose answer got lost (H-30)
        key = f"poll-{self.storm.next_number()}"
        got = self.call(
            "poll_messages", agent_id=self.name, wait_ms=200, max_messages=10, op_id=key
        )
        for message in got["messages"]:
            name = message.get("id") or message["message_id"]
            if message["type"] == "request":
                self._answer(message, name)
            self.storm.received[name] = message["payload"]["n"]
            acked = self.call("ack", agent_id=self.name, message_ids=[name])
            assert acked["acked_ids"] == [name]

    def _answer(self, message: dict[str, Any], name: str) -> None:
        sender = message.get("from_agent") or message["from"]
        self.call(
            "publish",
            from_=self.name,
            to=sender,
            topic="storm",
            payload={"n": message["payload"]["n"]},
            correlation_id=message["correlation_id"],
            op_id=f"answer-{name}",
            ttl_ms=86_400_000,
        )


class Storm:
    """The hub under attack and what its clients know."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self.paths = Paths.resolve(bare_env(home))
        self.files = HubFiles.of(self.paths)
        self.over = threading.Event()
        self.acknowledged: dict[str, int] = {}
        self.asked: set[str] = set()
        self.received: dict[str, int] = {}
        self._number = 0
        self._lock = threading.Lock()
        self.pid = self.start()
        token = self.files.token.read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def is_enough(self) -> bool:
        """True when enough was done to look at."""
        return len(self.acknowledged) > ENOUGH

    def next_number(self) -> int:
        with self._lock:
            self._number += 1
            return self._number

    def start(self) -> int:
        run = launch.start(self.paths, RunWishes(port=self.port)).probe.recorded
        assert run is not None
        self.pid = run.pid
        return run.pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert locks.wait_until_free(self.files.lock, 60)

    def hub(self, home: Path) -> RunningHub:
        run = launch.start(self.paths, RunWishes(port=self.port)).probe.recorded
        assert run is not None
        env = bare_env(home)
        return RunningHub(
            home, env, self.paths, self.files, run.url, run.port, run.pid, run.instance
        )


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [50])
def test_ev_t3_h_118_fifty_sigkills_lose_and_double_nothing(home: Path, rounds: int) -> None:
    _storm(home, rounds)


@pytest.mark.timeout(120)
def test_ev_t3_three_sigkills_lose_and_double_nothing(home: Path) -> None:
    _storm(home, 3)


def _storm(home: Path, rounds: int) -> None:
    storm = Storm(home)
    hub = storm.hub(home)
    hub.register(*RECEIVERS, *SENDERS)
    clients: list[Client] = [Sender(storm, name) for name in SENDERS]
    clients += [Receiver(storm, name) for name in RECEIVERS]
    try:
        for client in clients:
            client.start()
        for _ in range(rounds):
            time.sleep(random.uniform(0.05, 0.4))
            storm.kill()
            storm.start()
        until = time.monotonic() + 60
        while not storm.is_enough() and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        storm.over.set()
        for client in clients:
            client.join(60)
        hub = storm.hub(home)
    try:
        assert [client.error for client in clients if client.error] == []
        assert sum(client.repeated for client in clients) >= rounds  # the kills were felt
        _drain(storm, hub)
        _check(storm, hub)
    finally:
        hub.end()


def _drain(storm: Storm, hub: RunningHub) -> None:
    """Take what is left, also what was claimed when its receiver's answer got lost."""
    deadline = time.monotonic() + 90  # a lost claim is visible for a minute
    while set(storm.acknowledged) - set(storm.received) and time.monotonic() < deadline:
        for name in RECEIVERS:
            got = hub.call("poll_messages", agent_id=name, wait_ms=0, max_messages=100)
            for message in got["messages"]:
                found = message.get("id") or message["message_id"]
                storm.received[found] = message["payload"]["n"]
                hub.call("ack", agent_id=name, message_ids=[found])
        time.sleep(0.05)


def _check(storm: Storm, hub: RunningHub) -> None:
    assert len(storm.acknowledged) > ENOUGH
    missing = set(storm.acknowledged) - set(storm.received)
    assert missing == set()
    numbers = Counter(storm.received.values())
    assert [number for number, count in numbers.items() if count > 1] == []  # op_id: stored once
    for name, number in storm.acknowledged.items():
        assert storm.received[name] == number
    report = hub.call("rebuild_check", operator=True)
    assert report["equal"], report
    answers = _answers(hub)
    assert [name for name, count in answers.items() if count > 1] == []
    hub.end()
    connection = apsw.Connection(str(hub.files.database))
    try:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
        assert list(connection.execute("PRAGMA foreign_key_check")) == []
    finally:
        connection.close()


def _answers(hub: RunningHub) -> Counter[str]:
    """Count the answers to each request that the log holds."""
    found: Counter[str] = Counter()
    after: str | None = None
    while True:
        given = {"limit": 500} if after is None else {"limit": 500, "after": after}
        page = hub.post("/v1/events", given).data
        for event in page["events"]:
            if event["kind"] == "reply_posted":
                found[str(event["body"].get("correlation_id") or event["stream"])] += 1
        after = page["next_cursor"]
        if not page["more"]:
            return found
