"""An agent in a process of its own, by the Python client: `python -m tests.hub.work.agent_process`.

Registers itself under the name and workspace of its arguments, then does what each line of its
input says, `{"call": OPERATION, …fields}`, and prints the answer as a line. A call carries its own
key, so that it is sent again when the hub was killed under it.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from tfx.core.identity import identify
from tfx.core.paths import Paths
from tfx.errors import AgentUnavailable, TfxError
from tfx.hub.ancestry import facts_of
from tfx.hub.client import HubClient
from tfx.hub.operations import OPERATIONS

AWAY_S = 60.0


class Agent:
    """One life of an agent."""

    def __init__(self, name: str, workspace: str) -> None:
        self.name = name
        self.workspace = workspace
        self.session: str | None = None

    def register(self) -> dict[str, Any]:
        me = identify()
        assert me is not None
        given = self.send(
            "register",
            agent_id=self.name,
            cli="codex",
            capabilities=["code"],
            topics=[],
            heartbeat_ttl_ms=7_200_000,
            workspace=self.workspace,
            process=facts_of(me),
        )
        self.session = given["lease_id"]
        return given

    def call(self, name: str, fields: Mapping[str, object]) -> dict[str, Any]:
        """Call an operation as this agent in this life, unless the fields say otherwise."""
        known = {each.encode_name for each in msgspec.structs.fields(OPERATIONS[name].request)}
        own = {"agent_id": self.name, "session": self.session}
        return self.send(name, **{key: own[key] for key in own if key in known} | dict(fields))

    def send(self, name: str, **fields: object) -> dict[str, Any]:
        """Send a call until the hub answers it; what the hub refuses is raised."""
        if OPERATIONS[name].mutates:
            fields.setdefault("op_id", secrets.token_hex(8))
        until = time.monotonic() + AWAY_S
        while True:
            try:
                with HubClient.of(Paths.resolve()) as client:
                    answer = client.call_with(name, fields, OPERATIONS[name].response)
                    found: dict[str, Any] = json.loads(msgspec.json.encode(answer))
                    return found
            except AgentUnavailable as error:
                if error.reason not in {"hub-not-running", "hub-unreachable"}:
                    raise
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


def main() -> None:
    """Register, say so, then do what the lines say."""
    agent = Agent(sys.argv[1], sys.argv[2])
    _say(agent.register())
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked.pop("call")
        try:
            _say({"ok": agent.call(name, asked)})
        except TfxError as error:
            _say({"code": error.reason, "kind": error.kind, "details": error.details})


def _say(document: Mapping[str, object]) -> None:
    print(json.dumps(document), flush=True)  # noqa: T201  (its output is its answer)


@dataclass(slots=True)
class Hired:
    """Such a process, seen from the test that started it."""

    process: subprocess.Popen[str]
    session: str = ""
    told: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def start(cls, env: Mapping[str, str], name: str, workspace: Path | str) -> Hired:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub.work.agent_process", name, str(workspace)],
            env=dict(env),
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hired = cls(process)
        hired.session = hired.answer()["lease_id"]
        return hired

    def ask(self, name: str, **fields: object) -> None:
        """Ask for an operation and do not wait for its answer."""
        _pipe(self.process.stdin).write(json.dumps({"call": name, **fields}) + "\n")
        _pipe(self.process.stdin).flush()

    def answer(self) -> dict[str, Any]:
        line = _pipe(self.process.stdout).readline()
        assert line, f"the agent ended: {self.process.poll()}"
        document = json.loads(line)
        assert isinstance(document, dict)
        self.told.append(document)
        return document

    def call(self, name: str, **fields: object) -> dict[str, Any]:
        """Call an operation that must succeed."""
        self.ask(name, **fields)
        answer = self.answer()
        assert "ok" in answer, answer
        found = answer["ok"]
        assert isinstance(found, dict)
        return found

    def refused(self, name: str, **fields: object) -> str:
        """Call an operation that must be refused; return the code."""
        self.ask(name, **fields)
        answer = self.answer()
        assert "code" in answer, answer
        return str(answer["code"])

    def kill(self) -> None:
        """SIGKILL; ending it twice is fine."""
        self.process.kill()
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


if __name__ == "__main__":
    main()
