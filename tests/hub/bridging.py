"""A real `tfx hub bridge` and the client at the other end of its pipes."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hub.speaking import LEGACY, MODERN, envelope

BRIDGE = (sys.executable, "-m", "tfx", "hub", "bridge")
_PATIENT = (  # one line: a shell may be told it
    "import sys; from tfx.hub.bridge import heart, run; heart.EVERY_S = {every_s};"
    " heart.LIMIT_S = heart.LAST_WORD_S = run.GRACE_S = 60.0; sys.exit(run.main(sys.argv[1:]))"
)
_PATIENT_HOOK = (
    "import runpy, sys; from tfx.hub import hook; hook.LIMIT_S = 60.0; sys.argv = sys.argv[1:];"
    " runpy.run_path(sys.argv[0], run_name='__main__')"
)
END_S = 90.0


def patient(every_s: float = 60.0) -> tuple[str, ...]:
    """The bridge for tests of what it says: it gives a hub under load the time that it needs."""
    return (sys.executable, "-c", _PATIENT.format(every_s=every_s))


def patient_hook(script: Path) -> tuple[str, ...]:
    """The hook's own script, which gives a hub under load the time that it needs."""
    return (sys.executable, "-I", "-c", _PATIENT_HOOK, str(script))


@dataclass(slots=True)
class BridgeClient:
    """Sends lines; every answer is kept by its id until somebody asks for it."""

    process: subprocess.Popen[bytes]
    version: str = LEGACY[-1]
    _next: int = 0
    _answers: dict[object, queue.Queue[Any]] = field(default_factory=dict)
    stray: list[Any] = field(default_factory=list)
    _reader: threading.Thread | None = None

    @classmethod
    def start(
        cls,
        env: Mapping[str, str],
        *,
        cwd: Path,
        version: str = LEGACY[-1],
        argv: Sequence[str] = BRIDGE,
    ) -> BridgeClient:
        process = subprocess.Popen(
            list(argv), env=dict(env), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        client = cls(process, version)
        client._reader = threading.Thread(target=client._read, daemon=True)
        client._reader.start()
        return client

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            waiting = self._answers.get(answer.get("id"))
            if waiting is None:
                self.stray.append(answer)
            else:
                waiting.put(answer)

    def line(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, object] | None = None) -> int:
        self._next += 1
        given = dict(params or {})
        if self.version == MODERN:
            given = {"_meta": envelope(), **given}
        self._answers[self._next] = queue.Queue()
        document = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": given}
        self.line(json.dumps(document).encode() + b"\n")
        return self._next

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        document = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        self.line(json.dumps(document).encode() + b"\n")

    def answer(self, identity: int, *, within_s: float = 60) -> Any:  # noqa: ANN401  (JSON of the hub under test)
        return self._answers[identity].get(timeout=within_s)

    def has_answer(self, identity: int) -> bool:
        return not self._answers[identity].empty()

    def request(self, method: str, params: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401
        return self.answer(self.send(method, params))

    def open(self, name: str = "claude-code") -> Any:  # noqa: ANN401
        """Introduce ourselves and return the result."""
        if self.version == MODERN:
            return self.request("server/discover")["result"]
        result = self.request(
            "initialize",
            {
                "protocolVersion": self.version,
                "capabilities": {},
                "clientInfo": {"name": name, "version": "1"},
            },
        )["result"]
        self.notify("notifications/initialized")
        return result

    def begin_tool(self, name: str, **arguments: object) -> int:
        given = {key.rstrip("_"): value for key, value in arguments.items()}
        return self.send("tools/call", {"name": name, "arguments": given})

    def tool_answer(self, identity: int) -> Any:  # noqa: ANN401
        answer = self.answer(identity)
        assert "result" in answer, answer
        return json.loads(answer["result"]["content"][0]["text"])

    def tool(self, name: str, **arguments: object) -> Any:  # noqa: ANN401
        return self.tool_answer(self.begin_tool(name, **arguments))

    def data(self, name: str, **arguments: object) -> Any:  # noqa: ANN401
        envelope = self.tool(name, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]

    def end(self) -> int:
        """Close the bridge's input, read what it still says, return its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(END_S)
        if self._reader is not None:
            self._reader.join(END_S)
        self.process.stdout.close()
        return status

    def kill(self) -> None:
        """End it whatever it does; ending it twice is fine."""
        self.process.kill()
        self.end()
