"""A scripted day with real processes, while the hub is killed and started again twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.hub.bridging import BridgeClient
from tests.hub.running import RunningHub
from tests.hub.work.agent_process import Hired
from tests.support import TFX, gone, tfx

TOOLS = ("work_show", "work_update", "work_attach", "work_review_claim", "work_handoff")
NAMES = ("ann", "bob", "cat")
WORK = ("task_", "work_", "review_", "artifact_", "lock_", "claim_denied")


TOLD = [
    ("task_created", "cat"),
    ("work_claimed", "ann"),
    ("task_moved", "ann"),
    ("work_revoked", "ann"),
    ("work_claimed", "ann"),
    ("work_handed_off", "ann"),
    ("artifact_attached", "dee"),
    ("task_moved", "dee"),
    ("review_claimed", "bob"),
    ("review_revoked", "bob"),
    ("task_moved", "bob"),
    ("task_moved", "dee"),
    ("review_claimed", "bob"),
    ("work_revoked", "bob"),
    ("review_revoked", "bob"),
    ("task_moved", "bob"),
    ("task_moved", "bob"),
]


READ = (
    "task_created #1 to accepted by cat",
    "work_claimed #1 to assigned epoch 0 by ann",
    "claim_denied #1 held by cat",
    "task_moved #1 to in_progress by ann",
    "work_claimed #1 to in_progress epoch 1 by ann",
    "work_handed_off #1 to in_progress epoch 2 by ann for dee (metal work)",
    "task_moved #1 to in_review by dee",
    "review_claimed #1 by bob",
    "task_moved #1 to merged by bob",
    "task_moved #1 to done by bob",
)
"""What a person reads of it, among other lines."""


@pytest.fixture
def crew() -> Iterator[contextlib.ExitStack]:
    """Ends whatever a test starts."""
    with contextlib.ExitStack() as ending:
        yield ending


def hire(crew: contextlib.ExitStack, hub: RunningHub, name: str) -> Hired:
    hired = Hired.start(hub.env, name, hub.home)
    crew.callback(hired.kill)
    return hired


def story(hub: RunningHub, trace_id: str) -> list[tuple[str, str]]:
    """What `tfx hub trace` tells of the work: kind and actor, in its order."""
    ran = tfx(hub.home, "hub", "trace", trace_id, "--json", env=hub.env)
    assert ran.code == 0, ran.err
    plain = tfx(hub.home, "hub", "trace", trace_id, env=hub.env).out
    places = [plain.index(each) for each in READ]
    assert places == sorted(places), plain
    items = ran.data["items"]
    assert [each["seq"] for each in items] == sorted({each["seq"] for each in items})
    return [(each["kind"], each["actor"]) for each in items if each["kind"].startswith(WORK)]


@dataclass(slots=True)
class Day:
    """Who is there, and the task that the day is about."""

    crew: contextlib.ExitStack
    hub: RunningHub
    agents: dict[str, Hired]
    bridge: BridgeClient
    task: int = 0
    trace_id: str = ""

    @classmethod
    def begin(cls, crew: contextlib.ExitStack, hub: RunningHub) -> Day:
        """Three agents by the Python client, and dee by MCP through the bridge."""
        env = {**hub.env, "TFX_AGENT_ID": "dee"}
        argv = ("sh", "-c", '"$@"; exit $?', "sh", *TFX, "hub", "bridge", "--tools", "work")
        bridge = BridgeClient.start(env, cwd=hub.home, argv=argv)
        crew.callback(bridge.kill)
        bridge.open()
        offered = {tool["name"] for tool in bridge.request("tools/list")["result"]["tools"]}
        assert offered >= set(TOOLS)
        assert bridge.data("work_list")["room"] == str(hub.home)  # where its parent, a shell, is
        return cls(crew, hub, {name: hire(crew, hub, name) for name in NAMES}, bridge)

    def call(self, name: str, operation: str, **fields: object) -> Any:  # noqa: ANN401  (JSON)
        return self.agents[name].call(operation, task=self.task, **fields)

    def refused(self, name: str, operation: str, **fields: object) -> str:
        return self.agents[name].refused(operation, task=self.task, **fields)

    def tool(self, name: str, **fields: object) -> Any:  # noqa: ANN401  (JSON)
        return self.bridge.data(name, task=self.task, **fields)

    def create_and_claim(self) -> dict[str, Any]:
        """Cat makes the task, ann takes it, cat comes too late for it."""
        given = {"title": "Fix the door", "branch": "work/door", "accept": True}
        made = self.agents["cat"].call("work_add", **given)["task"]
        self.task, self.trace_id = made["task"], made["trace_id"]
        assert self.agents["cat"].refused("work_add", **given) == "duplicate-work"
        taken = self.agents["ann"].call("work_next", ttl_ms=3_600_000)
        assert (taken["task"]["task"], taken["lease"]["epoch"]) == (self.task, 0)
        assert self.refused("cat", "work_claim") == "held"
        lease = taken["lease"]
        assert isinstance(lease, dict)
        return lease

    def beat_while_the_hub_is_killed(self, lease: dict[str, Any]) -> None:
        """What is asked of a hub that is gone is answered by the next one."""
        ann = self.agents["ann"]
        assert [each["task"] for each in ann.call("work_beat", **beat(1))["leases"]] == [self.task]
        self.hub.kill()
        ann.ask("work_beat", **beat(2))
        self.hub = self.hub.again()
        assert ann.answer()["ok"]["leases"][0]["lease_id"] == lease["lease_id"]
        self.call("ann", "work_update", **fence(lease), status="in_progress", note="it sticks")

    def crash_and_reclaim(self, lease: dict[str, Any]) -> dict[str, Any]:
        """Ann's process dies; her next life takes up what she had."""
        ann = self.agents["ann"]
        ann.kill()
        assert gone(ann.process.pid)
        assert self.refused("bob", "work_update", title="mine") in {"lease-holder", "lease-missing"}
        self.agents["ann"] = hire(self.crew, self.hub, "ann")
        assert self.refused("ann", "work_update", **fence(lease), note="?") == "lease-lost"
        again = self.call("ann", "work_claim")["lease"]
        assert (again["epoch"], again["agent_id"]) == (1, "ann")
        seen = self.call("ann", "work_show")["task"]
        assert (seen["status"], seen["note"]) == ("in_progress", "it sticks")
        assert isinstance(again, dict)
        return again

    def hand_off(self, lease: dict[str, Any]) -> dict[str, Any]:
        """Ann hands it to dee, who works by MCP; the hub dies under her, the bridge starts it."""
        handed = self.call("ann", "work_handoff", **fence(lease), to="dee", reason="metal work")
        own = handed["lease"]
        assert (own["epoch"], own["agent_id"]) == (2, "dee")
        assert self.tool("work_show")["task"]["lease"]["lease_id"] == own["lease_id"]
        self.tool("work_attach", kind="pr", identity="o/r/7", **fence(own))
        self.hub.kill()
        moved = self.tool("work_update", status="in_review", **fence(own))
        assert moved["task"]["status"] == "in_review"
        self.hub = self.hub.again()
        assert isinstance(own, dict)
        return own

    def review(self, lease: dict[str, Any]) -> None:
        """Bob sends it back once, then merges and closes it."""
        own = self.bridge.tool("work_review_claim", task=self.task)
        assert own["error"]["code"] == "self-review"
        self.call("bob", "work_review_claim")
        assert self.refused("cat", "work_review_claim") == "held"
        self.call("bob", "work_update", status="in_progress", note="no test")
        self.tool("work_update", status="in_review", note="with a test", **fence(lease))
        self.call("bob", "work_review_claim")
        merged = self.call("bob", "work_update", status="merged")["task"]
        assert (merged["status"], merged["lease"], merged["review"]) == ("merged", None, None)
        assert (merged["pr"], merged["branch"], merged["rounds"]) == ("o/r/7", "work/door", 2)
        done = self.call("bob", "work_update", status="done")["task"]
        assert (done["status"], done["closed_at_ms"] is not None) == ("done", True)


def test_a_day_of_four_agents_is_told_in_order_by_its_trace(
    hub: RunningHub, crew: contextlib.ExitStack
) -> None:
    day = Day.begin(crew, hub)
    lease = day.create_and_claim()
    day.beat_while_the_hub_is_killed(lease)
    lease = day.crash_and_reclaim(lease)
    lease = day.hand_off(lease)
    day.review(lease)
    told = story(day.hub, day.trace_id)
    seen = [each for each in told if each[0] != "claim_denied"]
    assert seen[3][0] == "work_revoked"  # by the hub that saw her dead, or by her next life
    assert [*seen[:3], TOLD[3], *seen[4:]] == TOLD
    assert ("claim_denied", "cat") in told
    found = day.hub.call("work_status", task=day.task, room=str(hub.home))["leases"]
    assert [(each["epoch"], each["agent_id"], each["state"]) for each in reversed(found)] == [
        *((0, "ann", "revoked"), (1, "ann", "released"), (2, "dee", "revoked")),
    ]
    mail = day.agents["ann"].call("poll_messages", wait_ms=0, auto_ack=True)["messages"]
    lost = [each["payload"]["epoch"] for each in mail if each["topic"] == "work.lease"]
    assert lost == [0]  # what she handed off she knows
    assert day.hub.call("rebuild_check", operator=True)["equal"]


def beat(sequence: int) -> dict[str, Any]:
    return {"sequence": sequence, "observed_at_ms": sequence}


def fence(lease: dict[str, Any]) -> dict[str, Any]:
    return {"lease_id": lease["lease_id"], "epoch": lease["epoch"]}
