"""A hub with one board for doctor to look at, running and stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import apsw

from tests.doctor.world import Clinic, commands
from tests.hub.running import RunningHub
from tfx.core.identity import ProcessIdentity, identify
from tfx.hub.ancestry import facts_of

HOUR_MS = 3_600_000


@dataclass(slots=True)
class Scene:
    """A hub with one board, and what happens on it."""

    clinic: Clinic
    hub: RunningHub

    @property
    def room(self) -> str:
        return str(self.clinic.home / "a b")

    @property
    def place(self) -> str:
        return "~/a b"

    def agent(self, name: str, process: ProcessIdentity | None) -> str:
        """Register an agent of the board; return its session."""
        if process is not None:
            facts = facts_of(process)
            given = {"agent_id": name, "cli": "x", "workspace": self.room, "process": facts}
            return str(self.hub.post("/v1/attach", given).data["lease_id"])
        return str(
            self.hub.call(
                "register",
                agent_id=name,
                cli="x",
                capabilities=["code"],
                topics=[],
                heartbeat_ttl_ms=7_200_000,
                workspace=self.room,
            )["lease_id"]
        )

    def task(self) -> int:
        made = self.hub.call("work_add", room=self.room, title="x", accept=True)
        return int(made["task"]["task"])

    def claimed(self, name: str, session: str, **more: object) -> dict[str, Any]:
        """Let an agent claim a new task; return the lease."""
        who = {"room": self.room, "agent_id": name, "session": session, "task": self.task()}
        lease = self.hub.post("/v1/work_claim", {**who, **more}).data["lease"]
        assert isinstance(lease, dict)
        return lease

    def held(self, name: str, process: ProcessIdentity | None, **more: object) -> dict[str, Any]:
        return self.claimed(name, self.agent(name, process), **more)

    def stop(self) -> None:
        self.hub.end()

    def later(self, hours: float) -> None:
        """Let everything on a stopped hub have happened so long ago."""
        ago = round(hours * HOUR_MS)
        connection = apsw.Connection(str(self.hub.files.database))
        for table, columns in (
            ("beats", ("seen_at_ms",)),
            ("pulses", ("received_at_ms",)),
            ("agents", ("registered_at_ms", "ended_at_ms")),
            ("tasks", ("changed_at_ms",)),
            ("work_leases", ("created_at_ms", "updated_at_ms")),
            ("review_leases", ("created_at_ms", "ended_at_ms")),
            ("locks", ("set_at_ms",)),
        ):
            for column in columns:
                connection.execute(f"UPDATE {table} SET {column} = {column} - ?", (ago,))
        connection.close()

    def again(self, hours: float = 0) -> None:
        """Start the hub again; it says that it has run for so long."""
        self.hub = self.hub.again()
        self.ran_for(hours)

    def silent(self, hours: float) -> None:
        """Let nobody have said a word for so long, though the hub ran."""
        self.stop()
        self.later(hours)
        self.again(hours)

    def ran_for(self, hours: float) -> None:
        """Let the running hub say so."""
        file = self.hub.files.state
        document = json.loads(file.read_text())
        document["started_at_ms"] -= round(hours * HOUR_MS)
        file.write_text(json.dumps(document))

    def work(self) -> dict[str, Any]:
        return self.clinic.rows("hub.work")

    def busy(self) -> dict[str, Any]:
        return self.clinic.rows("hub.busy")

    def follow(self, found: Any, number: int = 0) -> Any:  # noqa: ANN401  (a row; JSON)
        """Do what a row says, as a shell would."""
        line = commands(found)[number]
        done = subprocess.run(
            ["/bin/sh", "-c", line.replace("tfx ", f"{sys.executable} -m tfx ", 1) + " --json"],
            env=self.clinic.env,
            cwd=self.clinic.home,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return json.loads(done.stdout)["data"]


def me() -> ProcessIdentity:
    own = identify()
    assert own is not None
    return own


def gone() -> ProcessIdentity:
    """A process that has lived."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = identify(child.pid)
        assert found is not None
        child.communicate(b"\n")
    return found


def wait(true: Any) -> bool:  # noqa: ANN401  (a predicate)
    for _ in range(600):
        if true():
            return True
        time.sleep(0.1)
    return False
