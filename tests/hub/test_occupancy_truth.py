"""A seat that ended is ended in every row, and to everybody who asks again (EV-B3, B7, B8, L7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tests.hub.occupying import (
    GRACE_MS,
    HOUR_MS,
    TERMINAL,
    beat,
    body_of,
    busy,
    close_terminal,
    far,
    finish,
    free,
    hold,
    listed,
    open_terminal,
    refusal,
    release,
    start,
)
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import AgentId, OpId
from tfx.hub.occupancy_models import Evidence, InvocationKind
from tfx.hub.wire import agents, invocations, occupancy


async def beat_of(bed: Bed, run: str) -> invocations.InvocationBeatResult:
    request = invocations.InvocationBeatRequest(invocation_id=run)
    return await bed.core.invocations.invocation_beat(NOBODY, request)


async def forced_off(bed: Bed) -> None:
    await free(bed, force=True)


async def taken_over_by_force(bed: Bed) -> None:
    await hold(bed, force=True)


async def retired(bed: Bed) -> None:
    request = agents.RetireRequest(agent_id=AgentId("bob"))
    await bed.core.retiring.agents_retire(OPERATOR_CALLER, request)
    await bed.register("bob")


@pytest.mark.parametrize("end", [forced_off, taken_over_by_force, retired])
def test_ev_b3_ev_b7_a_person_who_ends_a_terminal_invocation_ends_both_of_its_rows(
    tmp_path: Path, end: Callable[[Bed], Awaitable[None]]
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        old = await start(bed, kind=TERMINAL)
        await end(bed)
        (run,) = await listed(bed)
        assert (run.state.value, run.evidence) == ("lost", Evidence.FORCE)
        assert body_of(bed, "invocation_lost") == {"beat_age_ms": 0, "evidence": "force"}
        assert ("operator",) in bed.rows("SELECT actor FROM log WHERE kind = 'invocation_lost'")
        lost = await refusal(beat_of(bed, old))
        assert (lost.reason, lost.details["evidence"]) == ("lease-lost", "force")
        new = await start(bed, kind=TERMINAL)
        running = await listed(bed, state="running")
        assert [each.invocation_id for each in running] == [new]
        assert (await finish(bed, old)).is_late  # EV-I2
        assert (await busy(bed)).seats[-1].seat_id == new

    with_bed(tmp_path / "hub.db", story)
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_b3_a_beat_of_a_row_that_lost_its_seat_in_an_older_version_is_refused(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed, kind=TERMINAL)
        row = "UPDATE occupancy SET invocation = NULL, invocation_holder = NULL, "
        clear = row + "invocation_at_ms = NULL"
        await bed.core.store.write(lambda tx: tx.all(clear))
        assert (await refusal(beat_of(bed, run))).reason == "lease-lost"

    play(story)


def pulse_rows(bed: Bed) -> set[str]:
    return set(bed.core.store.pulses._pulses)


@pytest.mark.parametrize("by", ["release", "force", "takeover"])
def test_ev_l7_ev_b7_a_retried_hold_that_has_ended_is_told_so(play: Play, by: str) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await hold(bed, op_id="h2")
        bed.core.store.pulses._pulses.clear()
        if by == "release":
            await release(bed, first.hold_id)
        elif by == "force":
            await free(bed, force=True)
        else:
            await hold(bed, force=True)
        events, pulses = bed.kinds(), pulse_rows(bed)
        lost = await refusal(hold(bed, op_id="h2"))
        assert (lost.reason, lost.details["seat_id"]) == ("lease-lost", first.hold_id)
        assert (bed.kinds(), pulse_rows(bed)) == (events, pulses)
        assert first.hold_id not in pulses
        assert (await busy(bed)).busy is (by == "takeover")

    play(story)


def test_ev_l7_a_retried_terminal_that_was_closed_is_told_so(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await open_terminal(bed, op_id="t")
        assert (await open_terminal(bed, op_id="t")).terminal_id == first.terminal_id
        await close_terminal(bed, first.terminal_id)
        bed.core.store.pulses._pulses.clear()
        lost = await refusal(open_terminal(bed, op_id="t"))
        assert (lost.reason, lost.details["seat_id"]) == ("lease-lost", first.terminal_id)
        assert pulse_rows(bed) == set()
        assert not (await busy(bed)).busy

    play(story)


@pytest.mark.parametrize("kind", list(InvocationKind))
@pytest.mark.parametrize("by", ["finish", "probe"])
def test_ev_l7_a_retried_start_of_what_has_ended_is_told_so(
    play: Play, kind: InvocationKind, by: str
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        process = far()
        first = await start(bed, process=process, kind=kind, op_id="i", ttl_ms=10_000)
        assert await start(bed, process=process, kind=kind, op_id="i", ttl_ms=10_000) == first
        if by == "finish":
            await finish(bed, first)
        else:
            await bed.tick(HOUR_MS)
            assert (await bed.core.running.probe()).lost == (first,)
        bed.core.store.pulses._pulses.clear()
        again = start(bed, process=process, kind=kind, op_id="i", ttl_ms=10_000)
        lost = await refusal(again)
        assert (lost.reason, lost.details["seat_id"]) == ("lease-lost", first)
        assert lost.details.get("evidence") == ("deadline" if by == "probe" else None)
        assert pulse_rows(bed) == set()

    play(story)


def test_ev_l7_a_retried_hold_tells_the_deadline_as_a_jump_has_moved_it(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await hold(bed, op_id="h")
        bed.clock.wall_ms -= HOUR_MS
        await bed.tick()
        assert (await hold(bed, op_id="h")).until_ms == first.until_ms - HOUR_MS

    play(story)


def test_ev_l7_a_late_retry_of_register_promises_no_lease_that_has_ended(play: Play) -> None:
    async def story(bed: Bed) -> None:
        first = await bed.register("bob", op_id="k1")
        bed.clock.pass_ms(1_000)
        await bed.core.agents.deregister(NOBODY, agents.DeregisterRequest(agent_id=AgentId("bob")))
        bed.clock.pass_ms(1_000)
        late = await bed.register("bob", op_id="k1")
        assert late.lease_id == first.lease_id
        assert late.lease_expires_ms == late.server_time_ms - 1_000
        await bed.register("bob", op_id="k2")
        bed.clock.pass_ms(1_000)
        later = await bed.register("bob", op_id="k1")
        assert later.lease_expires_ms <= later.server_time_ms - 1_000

    play(story)


def test_ev_l7_force_needs_the_holders_that_were_seen_so_that_a_repetition_evicts_nobody(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        blind = occupancy.AgentsFreeRequest(
            agent_id=AgentId("bob"), force=True, op_id=OpId("again")
        )
        with pytest.raises(InvalidRequest) as refused:
            await bed.core.occupancy.agents_free(OPERATOR_CALLER, blind)
        assert refused.value.reason == "generation-needed"
        assert (await free(bed, force=True, generation=0)).evicted == ()
        await hold(bed)
        with pytest.raises(StateConflict) as stale:
            await free(bed, force=True, generation=0)
        assert stale.value.reason == "stale"
        assert (await busy(bed)).busy

    play(story)


def test_ev_b8_a_release_again_is_no_error_however_many_came_since(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await hold(bed)
        assert await release(bed, first.hold_id)
        for _ in range(3):
            later = await hold(bed)
            assert not await release(bed, first.hold_id)  # beside a successor
            await release(bed, later.hold_id)
            assert not await release(bed, first.hold_id)  # and after it
        forced = await hold(bed)
        await free(bed, force=True)
        assert (await refusal(release(bed, forced.hold_id))).reason == "lease-lost"
        assert not await release(bed, first.hold_id)

    play(story)


def test_ev_b8_a_terminal_is_closed_again_however_many_came_since(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await open_terminal(bed)
        assert await close_terminal(bed, first.terminal_id)
        second = await open_terminal(bed)
        assert not await close_terminal(bed, first.terminal_id)
        await free(bed, force=True)
        assert not await close_terminal(bed, first.terminal_id)
        assert (await refusal(close_terminal(bed, second.terminal_id))).reason == "lease-lost"
        assert (await refusal(close_terminal(bed, "no-such-one"))).reason == "lease-lost"

    play(story)


def test_ev_b9_a_clock_that_is_set_back_makes_no_beat_an_old_one(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        held = await hold(bed, process=far(), ttl_ms=100_000)
        bed.clock.wall_ms -= HOUR_MS
        await bed.tick()
        for _ in range(4):
            await bed.tick(50_000)
            await beat(bed, held.hold_id)
        assert await bed.core.occupancy.sweep() == 0

    play(story)
