"""A time in which the hub itself did not run ends nothing: nobody could be heard (WK-D3, EV-B9)."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import pytest

from tests.hub.driver import Bed
from tests.hub.occupying import TERMINAL, beat, busy, facts, far, hold, open_terminal, start
from tests.hub.running import RunningHub
from tests.hub.work.crew import Crew, PlayCrew, later, refused
from tfx.core.identity import identify
from tfx.hub.models import AgentState
from tfx.hub.wire import agents

GRACE_MS = 60_000
GAP_MS = 12_000
TTL_MS = 10_000


async def runs_for(bed: Bed, ms: int) -> None:
    """Let a hub that runs take its commands, one a second."""
    for _ in range(ms // 1_000):
        await bed.tick(1_000)


async def state_of(bed: Bed, name: str) -> AgentState:
    page = await bed.call("agents", agents.AgentsResult)
    (found,) = [each for each in page.agents if each.agent_id == name]
    return found.state


@pytest.mark.parametrize("first", ["renew", "rival", "sweep"])
def test_wk_d3_a_lease_outlives_a_time_without_the_hub(act: PlayCrew, first: str) -> None:
    async def story(crew: Crew) -> None:
        crew.bed.core.store.clock.watch()
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=TTL_MS)
        await runs_for(crew.bed, 9_000)
        crew.clock.pass_ms(GAP_MS)
        if first == "renew":  # whoever is heard first, before the sweep
            await ann.renew(lease)
        elif first == "rival":
            with refused("held"):
                await bob.claim(1)
        await crew.bed.tick()
        assert crew.active() == [(1, "ann", 0)]
        assert len(crew.log("clock_jumped")) == 1
        renewed = await ann.renew(lease)
        assert renewed.expires_at_ms == crew.clock.now_ms() + TTL_MS
        await runs_for(crew.bed, TTL_MS)
        assert crew.active() == []

    act(story)


def test_wk_d3_who_could_not_renew_gets_a_minute_and_no_more(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        crew.bed.core.store.clock.watch()
        ann = await crew.hire("ann")
        for ttl_ms in (TTL_MS, 3_600_000):
            await ann.claim((await crew.person.ready()).task, ttl_ms=ttl_ms)
        crew.clock.pass_ms(GAP_MS)
        await crew.bed.tick()
        ends = [each.expires_at_ms for each in (await ann.status(agent_id="ann")).leases]
        now = crew.clock.now_ms()
        assert sorted(end - now for end in ends if end) == [GRACE_MS, 3_600_000]
        await runs_for(crew.bed, GRACE_MS)
        assert crew.active() == [(2, "ann", 0)]

    act(story)


def test_wk_d3_ev_b9_a_suspend_gives_the_same_minute(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        await ann.claim(1, ttl_ms=TTL_MS)
        crew.clock.pass_ms(TTL_MS - 1)
        crew.clock.sleep_ms(3_600_000)
        await crew.bed.tick()
        await crew.bed.tick(GRACE_MS - 1)
        assert crew.active() == [(1, "ann", 0)]
        await crew.bed.tick(1)
        assert crew.active() == []

    act(story)


def test_wk_d3_ev_b9_a_deadline_that_is_given_beside_the_jump_counts_from_behind_it(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        store = crew.bed.core.store
        crew.clock.sleep_ms(3_600_000)
        async with crew.bed.writer_held():
            jump = await later(crew, crew.bed.core.upkeep.follow_clock())
            behind = await later(crew, store.write(lambda tx: tx.now_ms))
        assert await behind == crew.clock.now_ms()
        assert await jump == 3_600_000

    act(story)


def test_ev_b9_holds_invocations_and_names_outlive_a_time_without_the_hub(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        bed = crew.bed
        crew.bed.core.store.clock.watch()
        await crew.hire("bob", ttl_ms=TTL_MS)
        await runs_for(bed, GRACE_MS)  # the grace of the start is over
        await bed.call("heartbeat", agents.HeartbeatResult, agent_id="bob")
        held = await hold(bed, process=far(), ttl_ms=TTL_MS)
        await open_terminal(bed, process=far(), ttl_ms=TTL_MS)
        run = await start(bed, process=far(), kind=TERMINAL, ttl_ms=TTL_MS)
        await runs_for(bed, 5_000)
        crew.clock.pass_ms(GAP_MS)
        # before it is even followed
        assert await bed.core.occupancy.sweep() == 0
        assert (await bed.core.running.probe()).lost == ()
        assert await state_of(bed, "bob") is AgentState.ONLINE
        await bed.tick()
        assert await state_of(bed, "bob") is AgentState.ONLINE
        assert [seat.evidence for seat in (await busy(bed)).seats] == [None] * 3
        await runs_for(bed, GRACE_MS - 1_000)
        assert await bed.core.occupancy.sweep() == 0
        assert (await bed.core.running.probe()).lost == ()
        await beat(bed, held.hold_id)
        other = msgspec.structs.replace(far(), pid=9)
        wish = {"cli": "x", "workspace": "/w", "agent_id": "bob", "process": other}
        assert await state_of(bed, "bob") is not AgentState.ONLINE
        found = await bed.call("attach", agents.AttachResult, **msgspec.to_builtins(wish))
        assert found.agent_id == "bob.2"
        await runs_for(bed, 1_000)
        assert await bed.core.occupancy.sweep() == 1  # the terminal; the hold has beaten
        assert (await bed.core.running.probe()).lost == (run,)

    act(story)


def test_ev_b9_a_hub_that_runs_has_no_gap_however_long(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        crew.bed.core.store.clock.watch()
        ann = await crew.hire("ann")
        await crew.person.ready()
        await ann.claim(1, ttl_ms=TTL_MS)
        await runs_for(crew.bed, TTL_MS)
        assert crew.active() == []
        assert crew.log("clock_jumped") == []

    act(story)


def test_ev_b9_a_stopped_hub_that_goes_on_has_ended_no_lease(hub: RunningHub) -> None:
    own = identify()
    assert own is not None
    lives = msgspec.to_builtins(facts(own))
    elsewhere = {**lives, "host": "another-host"}
    session = hub.call(
        "register",
        agent_id="ann",
        cli="codex",
        capabilities=["code"],
        topics=[],
        heartbeat_ttl_ms=TTL_MS,
        workspace="/w",
        process=lives,
    )["lease_id"]
    who = {"agent_id": "ann", "session": session}
    task = hub.call("work_add", **who, title="x", accept=True)["task"]["task"]
    lease = hub.call("work_claim", **who, task=task, ttl_ms=TTL_MS)["lease"]
    held = hub.call("receiver_hold", agent_id="ann", process=elsewhere, ttl_ms=TTL_MS)
    run = hub.call(
        "invocation_start", agent_id="ann", kind="turn", process=elsewhere, ttl_ms=TTL_MS
    )
    os.kill(hub.pid, signal.SIGSTOP)
    try:
        time.sleep(GAP_MS / 1_000)
    finally:
        os.kill(hub.pid, signal.SIGCONT)
    (seen,) = hub.call("work_status", lease_id=lease["lease_id"])["leases"]
    assert seen["state"] == "active"
    fence = {"lease_id": lease["lease_id"], "epoch": lease["epoch"]}
    assert hub.call("work_renew", **who, **fence)["lease"]["state"] == "active"
    assert hub.call("receiver_beat", agent_id="ann", hold_id=held["hold_id"])
    assert hub.call("invocation_beat", invocation_id=run["invocation_id"])
    assert hub.call("heartbeat", agent_id="ann", lease_id=session)
    kinds = []
    for _ in range(600):
        kinds = [each["kind"] for each in hub.call("events", limit=500)["events"]]
        if "clock_jumped" in kinds:
            break
        time.sleep(0.1)
    assert "clock_jumped" in kinds
    assert {"work_expired", "receiver_released", "invocation_lost"}.isdisjoint(kinds), kinds
