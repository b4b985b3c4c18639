"""Real hubs in HOMEs of the tests' own, and requests to them with exactly the given bytes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import Ran, bare_env, tfx
from tfx.core import locks, process
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.daemon import stop as stopping
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

PATIENT = stopping.Patience(request_s=60, sigterm_s=60, sigkill_s=60)
"""A hub under load ends in order, too: its WAL is folded in and its last words are in its log."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:  # noqa: ANN401  (JSON of the hub under test)
        return json.loads(self.body)

    @property
    def data(self) -> Any:  # noqa: ANN401
        assert self.status == 200, self.body
        return self.document["data"]

    @property
    def code(self) -> str:
        """The error's code; the envelope must be the error envelope."""
        document = self.document
        assert document["ok"] is False
        assert set(document["error"]) == {"code", "kind", "message", "hint", "details"}
        code = document["error"]["code"]
        assert isinstance(code, str)
        return code


@dataclass(slots=True)
class RunningHub:
    home: Path
    env: dict[str, str]
    paths: Paths
    files: HubFiles
    url: str
    port: int
    pid: int
    instance: str
    more_pids: list[int] = field(default_factory=list)

    @property
    def token(self) -> str:
        return self.files.token.read_text("ascii").strip()

    @property
    def operator(self) -> str:
        return self.files.operator.read_text("ascii").strip()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Iterable[tuple[str, str]] = (),
        *,
        timeout_s: float = 60,
    ) -> Reply:
        """Send exactly these headers, `Host` only if it is among them."""
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        ) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())

    def headers(self, *, operator: bool = False) -> list[tuple[str, str]]:
        secret = self.operator if operator else self.token
        return [("Host", f"127.0.0.1:{self.port}"), ("Authorization", f"Bearer {secret}")]

    def get(self, path: str) -> Reply:
        return self.request("GET", path, None, self.headers())

    def post(
        self,
        path: str,
        document: Mapping[str, object] | bytes,
        *,
        operator: bool = False,
        timeout_s: float = 60,
    ) -> Reply:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = [
            *self.headers(operator=operator),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ]
        return self.request("POST", path, body, headers, timeout_s=timeout_s)

    def call(self, name: str, *, operator: bool = False, **fields: object) -> Any:  # noqa: ANN401
        """Call an operation that must succeed."""
        given = {key.rstrip("_"): value for key, value in fields.items()}
        return self.post(f"/v1/{name}", given, operator=operator).data

    def register(self, *names: str, topics: tuple[str, ...] = ()) -> None:
        for name in names:
            self.call(
                "register",
                agent_id=name,
                cli="codex",
                capabilities=["code"],
                topics=list(topics),
                heartbeat_ttl_ms=600_000,
            )

    def kill(self) -> None:
        """SIGKILL the hub of this HOME, whoever started it, and wait until its lock is free."""
        holder = locks.holder(self.files.lock)
        os.kill(self.pid if holder is None else holder.pid, signal.SIGKILL)
        assert locks.wait_until_free(self.files.lock, 60)

    def again(self) -> RunningHub:
        """Start it again in the same HOME."""
        return start(self.home, self.env)

    def end(self) -> None:
        """Leave no process behind, whatever happened."""
        holder = locks.holder(self.files.lock)
        if locks.is_held(self.files.lock) and holder is not None:
            process.signal_exactly(holder.pid, holder.start_token, signal.SIGCONT)
            stopping.stop(self.paths, PATIENT)


def start(home: Path, env: Mapping[str, str] | None = None, **extra: str) -> RunningHub:
    given = dict(env) if env is not None else bare_env(home, **extra)
    paths = Paths.resolve(given)
    started = launch.start(paths, RunWishes(port=0), limit_s=90)
    run = started.probe.recorded
    assert run is not None
    return RunningHub(
        home, given, paths, HubFiles.of(paths), run.url, run.port, run.pid, run.instance
    )


def free_port() -> int:
    """A port that nobody is on, of those that the system gives to nobody by itself.

    A hub or a client of another test that asks for any port cannot be given it meanwhile.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 10_000 + 1_000 * (worker % 8)
    for port in random.sample(range(first, first + 1_000), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def cli(hub: RunningHub, *words: str, stdin: str = "") -> Ran:
    """Run a `tfx hub` command beside a hub."""
    return tfx(hub.home, "hub", *words, env=hub.env, stdin=stdin)
