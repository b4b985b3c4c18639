"""Races of real processes against a real hub (WK-L7, L18, D3, D4)."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import pytest

from tests.hub.running import RunningHub
from tests.hub.waiting import LIMIT_S, until
from tests.hub.work.agent_process import Agent, Hired
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.errors import TfxError
from tfx.hub.daemon import launch
from tfx.hub.state import RunWishes

CROWD = 16
ROOM = "/home/u/race"
Answer = tuple[str, dict[str, Any] | str]

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.hub.work.agent_process"])


@dataclass(frozen=True, slots=True)
class Start:
    """What a racer does when everybody is there; it lives on until it may leave."""

    env: dict[str, str]
    call: str
    fields: dict[str, object]
    barrier: Barrier
    leave: Event


def racer(start: Start, name: str, answers: Any) -> None:  # noqa: ANN401  (a queue of the context)
    """Register, wait until everybody has, call at the same moment, stay until the end.

    Whose process is gone loses its leases: so nobody goes before all was looked at.
    """
    os.environ.clear()
    os.environ.update(start.env)
    agent = Agent(name, ROOM)
    agent.register()
    start.barrier.wait(120)
    try:
        answers.put((name, agent.call(start.call, start.fields)))
    except TfxError as error:
        answers.put((name, error.reason))
    start.leave.wait(170)


@contextlib.contextmanager
def race(hub: RunningHub, call: str, **fields: object) -> Iterator[list[Answer]]:
    """Let sixteen processes do one thing at once; inside they live, and what they were told."""
    start = Start(hub.env, call, fields, processes.Barrier(CROWD), processes.Event())
    answers = processes.SimpleQueue()
    names = [f"racer-{n}" for n in range(CROWD)]
    crowd = [processes.Process(target=racer, args=(start, name, answers)) for name in names]
    for each in crowd:
        each.start()
    try:
        yield [answers.get() for _ in crowd]
    finally:
        start.leave.set()
        for each in crowd:
            each.join(60)
    assert [each.exitcode for each in crowd] == [0] * CROWD


def add(hub: RunningHub) -> int:
    task = hub.call("work_add", title="do it", accept=True, room=ROOM)["task"]["task"]
    assert isinstance(task, int)
    return task


def history(hub: RunningHub, task: int) -> list[tuple[int, str, str]]:
    """Epoch, holder and state of every lease of a task, oldest first."""
    found = hub.call("work_status", task=task, room=ROOM)["leases"]
    return [(each["epoch"], each["agent_id"], each["state"]) for each in reversed(found)]


@pytest.fixture
def hired(hub: RunningHub) -> Iterator[dict[str, Hired]]:
    """Two agents in processes of their own."""
    crew = {name: Hired.start(hub.env, name, ROOM) for name in ("ann", "bob")}
    yield crew
    for each in crew.values():
        each.kill()


def test_wk_l7_of_sixteen_processes_one_gets_the_lease_and_one_row_is_there(
    hub: RunningHub,
) -> None:
    task = add(hub)
    with race(hub, "work_claim", task=task) as told:
        won = [(name, answer) for name, answer in told if isinstance(answer, dict)]
        assert len(won) == 1
        assert [answer for _, answer in told if isinstance(answer, str)] == ["held"] * (CROWD - 1)
        assert history(hub, task) == [(0, won[0][0], "active")]
        owner = hub.call("work_show", task=task, room=ROOM)["task"]["assignee"]
        assert owner["agent_id"] == won[0][0]
    assert hub.call("rebuild_check", operator=True)["equal"]


def test_wk_t12_sixteen_processes_that_ask_for_the_next_get_sixteen_tasks(hub: RunningHub) -> None:
    tasks = [add(hub) for _ in range(CROWD)]
    with race(hub, "work_next") as told:
        got = [answer["task"]["task"] for _, answer in told if isinstance(answer, dict)]
        assert sorted(got) == tasks
        active = hub.call("work_status", room=ROOM)["leases"]
        assert sorted(each["task"] for each in active) == tasks
        assert len({each["agent_id"] for each in active}) == CROWD


def test_wk_l24_ev_b4_a_holder_proven_dead_loses_its_lease_and_its_next_life_reclaims(
    hub: RunningHub, hired: dict[str, Hired]
) -> None:
    task = add(hub)
    hired["ann"].call("work_claim", task=task)
    hired["ann"].kill()
    until(lambda: history(hub, task) != [(0, "ann", "active")])
    assert history(hub, task) == [(0, "ann", "revoked")]
    assert hired["bob"].refused("work_claim", task=task) == "bad-status"  # it is still ann's
    again = Hired.start(hub.env, "ann", ROOM)
    try:
        assert again.call("work_claim", task=task)["lease"]["epoch"] == 1
    finally:
        again.kill()


def test_wk_l18_two_handoffs_at_once_leave_one_owner(
    hub: RunningHub, hired: dict[str, Hired]
) -> None:
    ann = hired["ann"]
    third = Hired.start(hub.env, "cat", ROOM)
    try:
        for _ in range(5):
            task = add(hub)
            lease = ann.call("work_claim", task=task)["lease"]
            fence = {"task": task, "lease_id": lease["lease_id"], "epoch": lease["epoch"]}
            # Two processes speak for the same session: ann's own, and one that knows its lease.
            given = {**fence, "agent_id": "ann", "session": ann.session, "room": ROOM}
            ann.ask("work_handoff", **fence, to="bob")
            third.ask("work_handoff", **given, to="cat")
            answers = [ann.answer(), third.answer()]
            won = [each["ok"]["lease"]["agent_id"] for each in answers if "ok" in each]
            lost = [each["code"] for each in answers if "code" in each]
            assert (len(won), lost) == (1, ["lease-lost"])
            assert history(hub, task) == [(0, "ann", "released"), (1, won[0], "active")]
    finally:
        third.kill()
    assert hub.call("rebuild_check", operator=True)["equal"]


def test_wk_d3_a_claim_against_the_sweeper_leaves_one_owner(
    hub: RunningHub, hired: dict[str, Hired]
) -> None:
    ann, bob = hired["ann"], hired["bob"]
    task = add(hub)
    lease = ann.call("work_claim", task=task, ttl_ms=10_000)["lease"]
    told: list[dict[str, Any]] = []
    deadline = time.monotonic() + LIMIT_S
    while not told or "ok" not in told[-1]:
        assert time.monotonic() < deadline
        if told and time.time() * 1000 < lease["expires_at_ms"] - 200:
            time.sleep(0.1)
        bob.ask("work_claim", task=task)
        told.append(bob.answer())
    # a test that stood still for ten seconds comes too late to be refused
    assert {each["code"] for each in told[:-1]} <= {"held"}
    won = told[-1]["ok"]["lease"]
    assert won["created_at_ms"] >= lease["expires_at_ms"]
    assert history(hub, task) == [(0, "ann", "expired"), (1, "bob", "active")]
    expired = [each for each in kinds(hub) if each == "work_expired"]
    assert len(expired) == 1
    fence = {"lease_id": lease["lease_id"], "epoch": lease["epoch"]}
    assert ann.refused("work_update", task=task, **fence, title="mine") == "lease-lost"


def kinds(hub: RunningHub) -> list[str]:
    return [str(each["kind"]) for each in hub.call("events", limit=500)["events"]]


def test_wk_d4_a_stopped_holder_wakes_up_to_refusals_after_a_takeover(
    hub: RunningHub, hired: dict[str, Hired]
) -> None:
    ann, bob = hired["ann"], hired["bob"]
    task = add(hub)
    lease = ann.call("work_claim", task=task)["lease"]
    fence = {"task": task, "lease_id": lease["lease_id"], "epoch": lease["epoch"]}
    ann.call("work_update", **fence, status="in_progress")
    ann.process.send_signal(signal.SIGSTOP)
    ann.ask("work_update", **fence, title="mine")
    ann.ask("work_attach", **fence, kind="file", identity="a.py")
    ann.ask("work_release", **fence)
    ann.ask("work_handoff", **fence, to="bob")
    ann.ask("work_renew", lease_id=lease["lease_id"], epoch=0, ttl_ms=60_000)
    ann.ask("work_beat", sequence=1, observed_at_ms=1)
    hub.call(
        "work_force_release", operator=True, room=ROOM, reason="it stands still",
        task=task, lease_id=lease["lease_id"], epoch=lease["epoch"],
    )  # fmt: skip
    taken = bob.call("work_claim", task=task)
    ann.process.send_signal(signal.SIGCONT)
    assert [ann.answer().get("code") for _ in range(5)] == ["lease-lost"] * 5
    assert ann.told[-1]["details"]["reason"] == "it stands still"
    assert ann.answer()["ok"]["leases"] == []
    after = hub.call("work_show", task=task, room=ROOM)["task"]
    assert (after["title"], after["artifacts"], after["lease"]) == ("do it", [], taken["lease"])
    assert history(hub, task) == [(0, "ann", "revoked"), (1, "bob", "active")]


def test_wk_b5_wk_b1_the_one_lock_keeps_a_second_writer_out(hub: RunningHub) -> None:
    holder = locks.holder(hub.files.lock)
    assert holder is not None
    assert holder.pid == hub.pid
    assert hub.files.lock == Path(f"{hub.files.database.resolve()}.lock")
    again = launch.start(Paths.resolve(hub.env), RunWishes(port=0))
    assert again.probe.recorded is not None
    assert again.probe.recorded.pid == hub.pid
    assert locks.try_lock(hub.files.lock, "test") is None
