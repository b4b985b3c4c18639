"""Agents for tests: a real process that is called like an agent CLI and runs what it is told."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.hub.running import RunningHub
from tests.support import Ran, tfx
from tfx.core.identity import identify
from tfx.hub.ancestry import facts_of

_LOOP = 'while IFS= read -r line; do eval "$line" >"$OUT" 2>"$ERR" </dev/null; echo $?; done'
_numbers = count(1)


@dataclass(slots=True)
class Agent:
    """One agent of a workspace; `tfx` runs below its process, as a tool call would."""

    hub: RunningHub
    name: str
    session: str
    workspace: Path
    process: subprocess.Popen[bytes]
    scratch: Path

    @classmethod
    def start(cls, hub: RunningHub, name: str, workspace: Path) -> Agent:
        scratch = hub.home / f"agent-{next(_numbers)}"
        scratch.mkdir()
        env = {**hub.env, "OUT": str(scratch / "out"), "ERR": str(scratch / "err")}
        process = subprocess.Popen(
            ["codex", "-c", _LOOP],
            executable="/bin/sh",
            env=env,
            cwd=workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        found = identify(process.pid)
        assert found is not None
        lease = hub.call(
            "attach",
            cli="codex",
            workspace=str(workspace),
            process=facts_of(found),
            agent_id=name,
        )["lease_id"]
        return cls(hub, name, lease, workspace, process, scratch)

    def sh(self, line: str) -> Ran:
        """Run one line in the agent's shell."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        out, err = (self.scratch.joinpath(name).read_text("utf-8") for name in ("out", "err"))
        return Ran(code, out, err)

    def tfx(self, *words: str) -> Ran:
        """Run tfx below the agent."""
        return self.sh(shlex.join([sys.executable, "-m", "tfx", *words]))

    def does(self, *words: str) -> Any:  # noqa: ANN401  (JSON of the command under test)
        """Run a command that has to succeed; return its data."""
        ran = self.tfx(*words, "--json")
        assert ran.code == 0, ran.out + ran.err
        return ran.data

    def refused(self, *words: str) -> dict[str, Any]:
        """Run a command that must be refused; return its problem."""
        ran = self.tfx(*words, "--json")
        assert ran.code != 0, ran.out
        [problem] = ran.document["problems"]
        assert isinstance(problem, dict)
        return {**problem, "exit": ran.code}

    def end(self) -> None:
        """End its process; the hub is not told."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@dataclass(frozen=True, slots=True)
class Person:
    """The person at the machine: no agent above the shell."""

    hub: RunningHub
    workspace: Path

    def tfx(self, *words: str, stdin: str = "", **extra: str) -> Ran:
        return tfx(self.workspace, *words, env={**self.hub.env, **extra}, stdin=stdin)

    def has(self, title: str, **fields: object) -> str:
        """Put an accepted task on the board without a command; return its number."""
        given: dict[str, object] = {"room": str(self.workspace), "accept": True, **fields}
        made = self.hub.post("/v1/work_add", {"title": title, **given}).data
        return str(made["task"]["task"])

    def does(self, *words: str, stdin: str = "") -> Any:  # noqa: ANN401
        ran = self.tfx(*words, "--json", stdin=stdin)
        assert ran.code == 0, ran.out + ran.err
        return ran.data

    def refused(self, *words: str) -> dict[str, Any]:
        ran = self.tfx(*words, "--json")
        assert ran.code != 0, ran.out
        [problem] = ran.document["problems"]
        assert isinstance(problem, dict)
        return {**problem, "exit": ran.code}
