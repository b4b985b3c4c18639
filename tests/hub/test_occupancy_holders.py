"""A holder that was replaced, slept or died: what it says no longer counts (EV-B7 … B11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import OPERATOR_CALLER, Bed, FakeClock, with_bed
from tests.hub.occupying import (
    GRACE_MS,
    HOUR_MS,
    TERMINAL,
    Door,
    beat,
    body_of,
    busy,
    close_terminal,
    delivery,
    ended,
    far,
    free,
    hold,
    listed,
    me,
    open_terminal,
    refusal,
    release,
    start,
)
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core.identity import Proof
from tfx.errors import NotFound, StateConflict
from tfx.hub.models import AgentId, Limits
from tfx.hub.wire import agents
from tfx.hub.wire import occupancy as wire


def test_ev_b8_freeing_again_never_evicts_who_came_after(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await hold(bed)
        seen = (await busy(bed)).generation
        assert len((await free(bed, force=True, generation=seen)).evicted) == 1
        later = await hold(bed)
        with pytest.raises(StateConflict) as refused:
            await free(bed, force=True, generation=seen)
        assert refused.value.reason == "stale"
        assert [each.seat_id for each in (await busy(bed)).seats] == [later.hold_id]

    play(story)


def test_ev_b7_nothing_that_an_old_holder_says_counts(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        old = await hold(bed, process=ended(), message=sent.message_id)
        new = await hold(bed, message=sent.message_id)
        assert (old.attempt, new.attempt) == (1, 2)
        assert (await refusal(beat(bed, old.hold_id))).reason == "lease-lost"
        for delivered in (True, False):
            late = release(bed, old.hold_id, delivered=delivered)
            assert (await refusal(late)).reason == "lease-lost"
        assert await delivery(bed, sent.message_id) == ("claimed", 2, None)
        assert await release(bed, new.hold_id, delivered=True)
        assert await delivery(bed, sent.message_id) == ("acked", 2, None)

    play(story)


def test_ev_b7_a_holder_that_was_declared_gone_is_told_so_even_without_a_successor(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        terminal = await open_terminal(bed, process=ended())
        assert await bed.core.occupancy.sweep() == 1
        held = await hold(bed, process=ended())
        assert await bed.core.occupancy.sweep() == 1
        assert (await refusal(release(bed, held.hold_id))).reason == "lease-lost"
        assert (await refusal(close_terminal(bed, terminal.terminal_id))).reason == "lease-lost"

    play(story)


def test_ev_b7_a_retired_agents_holders_lose_what_they_held(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        held = await hold(bed)
        await start(bed, kind=TERMINAL)
        await bed.core.retiring.agents_retire(
            OPERATOR_CALLER, agents.RetireRequest(agent_id=AgentId("bob"))
        )
        assert not (await busy(bed)).seats
        assert (await refusal(release(bed, held.hold_id))).reason == "lease-lost"
        assert (await refusal(beat(bed, held.hold_id))).reason == "lease-lost"
        with pytest.raises(NotFound):
            await hold(bed)

    play(story)


def test_ev_b8_release_and_beat_are_idempotent_and_never_touch_a_successor(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        old = await hold(bed, process=ended())
        new = await hold(bed)
        await refusal(release(bed, old.hold_id))
        await refusal(beat(bed, old.hold_id))
        (seat,) = (await busy(bed)).seats
        assert seat.seat_id == new.hold_id
        for _ in range(2):
            await beat(bed, new.hold_id)
        events = len(bed.kinds())
        await beat(bed, new.hold_id)
        assert len(bed.kinds()) == events  # a beat is no event
        assert await release(bed, new.hold_id, op_id="key")
        assert await release(bed, new.hold_id, op_id="key")
        assert not await release(bed, new.hold_id)
        assert bed.kinds().count("receiver_released") == 1

    play(story)


def test_ev_b8_a_retried_hold_is_the_same_hold(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        first = await hold(bed, message=sent.message_id, op_id="key")
        again = await hold(bed, message=sent.message_id, op_id="key")
        assert msgspec.structs.replace(again, server_time_ms=0) == msgspec.structs.replace(
            first, server_time_ms=0
        )
        assert (await refusal(hold(bed, op_id="key"))).reason == "idempotency-conflict"

    play(story)


def test_ev_b9_ev_t9_nine_hours_of_sleep_take_nothing_over_in_the_grace_window(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("cat")
        await bed.tick(GRACE_MS)
        held = await hold(bed, process=far(), ttl_ms=30_000)
        await open_terminal(bed, "cat", far(), 30_000)
        run = await start(bed, "cat", far(), kind=TERMINAL, ttl_ms=30_000)
        bed.clock.sleep_ms(9 * HOUR_MS)
        # before the jump is even noticed
        assert await bed.core.occupancy.sweep() == 0
        await refusal(hold(bed))
        await bed.tick()
        assert "clock_jumped" in bed.kinds()
        (seat,) = (await busy(bed)).seats
        assert seat.until_ms == held.until_ms + 9 * HOUR_MS
        await bed.tick(GRACE_MS - 1)  # longer than the deadline: nobody could call meanwhile
        assert await bed.core.occupancy.sweep() == 0
        assert (await bed.core.running.probe()).lost == ()
        await refusal(hold(bed))
        await bed.tick(1)
        assert await bed.core.occupancy.sweep() == 2
        assert (await bed.core.running.probe()).lost == (run,)

    play(story)


def test_ev_b9_every_deadline_of_every_tier_moves_with_the_sleep(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        await hold(bed, process=far(), ttl_ms=600_000)
        await open_terminal(bed, "bob", far(), 600_000)
        await start(bed, "bob", far(), kind=TERMINAL, ttl_ms=600_000)
        bed.clock.sleep_ms(9 * HOUR_MS)
        await bed.tick()
        await bed.tick(599_999)
        assert await bed.core.occupancy.sweep() == 0
        assert (await bed.core.running.probe()).lost == ()
        assert [seat.evidence for seat in (await busy(bed)).seats] == [None] * 3
        await bed.tick(1)
        assert await bed.core.occupancy.sweep() == 2
        assert len((await bed.core.running.probe()).lost) == 1

    play(story)


def test_ev_b9_ev_t9_a_clock_that_steps_back_and_forth_ends_nothing(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        await hold(bed, process=far(), ttl_ms=600_000)
        for step in (-HOUR_MS, 365 * 24 * HOUR_MS, -2 * HOUR_MS):
            bed.clock.wall_ms += step
            await bed.tick()
            await bed.tick(GRACE_MS)
            assert await bed.core.occupancy.sweep() == 0
        await bed.tick(600_000)
        assert await bed.core.occupancy.sweep() == 1

    play(story)


def test_ev_b9_after_a_restart_holders_get_time_to_call_before_a_deadline_counts(
    tmp_path: Path,
) -> None:
    clock = FakeClock()

    async def first(bed: Bed) -> None:
        await bed.register("bob")
        held = await hold(bed, process=far(), ttl_ms=30_000)
        await bed.tick(10_000)
        await beat(bed, held.hold_id)

    async def second(bed: Bed) -> None:
        (seat,) = (await busy(bed)).seats
        assert seat.beat_age_ms == 10 * HOUR_MS  # the beat has survived the restart
        assert await bed.core.occupancy.sweep() == 0
        await bed.tick(GRACE_MS)
        assert await bed.core.occupancy.sweep() == 1

    with_bed(tmp_path / "hub.db", first, clock=clock)
    clock.pass_ms(10 * HOUR_MS)
    with_bed(tmp_path / "hub.db", second, clock=clock, instance="two")
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_b10_a_takeover_is_one_event_that_replays_without_any_process(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        old_process = ended()
        old = await hold(bed, process=old_process)
        await bed.tick(7_000)
        before = len(bed.kinds())
        new = await hold(bed)
        assert bed.kinds()[before:] == ["receiver_taken_over"]
        body = body_of(bed, "receiver_taken_over")
        evicted = body["evicted"]
        assert isinstance(evicted, dict)
        assert (evicted["id"], evicted["evidence"]) == (old.hold_id, "pid-gone")
        assert evicted["beat_age_ms"] == 7_000
        assert evicted["holder"]["pid"] == old_process.pid
        assert body["hold"] == new.hold_id

    with_bed(tmp_path / "hub.db", story)
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_b10_a_terminal_and_its_invocation_are_taken_over_with_their_evidence(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        gone = ended()
        terminal = await open_terminal(bed, process=gone)
        run = await start(bed, process=gone, kind=TERMINAL)
        again = await open_terminal(bed)
        assert again.taken_over is not None
        assert again.taken_over.seat_id == terminal.terminal_id
        successor = await start(bed, kind=TERMINAL)
        assert bed.kinds()[-3:] == ["invocation_lost", "invocation_started", "agent_busy"]
        evicted = body_of(bed, "agent_busy")["evicted"]
        assert isinstance(evicted, dict)
        assert (evicted["id"], evicted["evidence"]) == (run, "pid-gone")
        assert [(each.invocation_id, each.state.value) for each in await listed(bed)] == [
            (successor, "running"),
            (run, "lost"),
        ]

    play(story)


def test_ev_b11_a_dead_holders_message_is_queued_again_with_its_attempt_counted(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob", ttl_ms=86_400_000)
        held = await hold(bed, process=ended(), message=sent.message_id)
        assert held.attempt == 1
        await bed.tick(HOUR_MS)  # no visibility time-out: the hold says how long
        assert await delivery(bed, sent.message_id) == ("claimed", 1, None)
        assert await bed.core.occupancy.sweep() == 1
        assert await delivery(bed, sent.message_id) == ("queued", 1, None)
        (message,) = (await bed.poll("bob")).messages
        assert message.attempt == 2

    play(story)


def test_ev_b11_a_hold_that_ends_without_delivery_gives_its_message_back(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        for end in ("release", "force"):
            held = await hold(bed, message=sent.message_id)
            assert not (await bed.poll("bob")).messages
            if end == "release":
                await release(bed, held.hold_id)
            else:
                await free(bed, force=True)
            assert (await delivery(bed, sent.message_id))[0] == "queued"
        held = await hold(bed, message=sent.message_id)
        await bed.ack("bob", sent.message_id)  # the receiver's word counts (K-25)
        await release(bed, held.hold_id)
        assert await delivery(bed, sent.message_id) == ("acked", 3, None)

    play(story)


def test_ev_b11_ev_t8_a_message_that_kills_every_turn_becomes_a_dead_letter(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        for _ in range(2):
            await hold(bed, process=ended(), message=sent.message_id)
            await bed.core.occupancy.sweep()
        assert await delivery(bed, sent.message_id) == ("dead", 2, "max-attempts")
        assert (await refusal(hold(bed, message=sent.message_id))).reason == "not-queued"
        await hold(bed)  # the refused one has changed nothing

    with_bed(tmp_path / "hub.db", story, limits=Limits(max_attempts=2))
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_b11_only_a_message_that_waits_for_this_agent_can_be_guarded(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("cat")
        sent = await bed.publish("ann", "cat")
        with pytest.raises(NotFound):
            await hold(bed, message=sent.message_id)
        with pytest.raises(NotFound):
            await hold(bed, message="no-such-message")
        assert not (await busy(bed)).seats

    play(story)


def test_ev_t7_a_sweep_decides_again_inside_its_transaction(play: Play) -> None:
    async def story(bed: Bed) -> None:
        door = Door(bed)
        await bed.register("bob")
        held = await hold(bed, process=msgspec.structs.replace(me(), pid=77))
        door.dead[77] = Proof.PID_GONE
        looked = bed.core.store.read

        async def then_released(query: object) -> object:
            found: object = await looked(query)  # type: ignore[arg-type]
            await release(bed, held.hold_id)
            await hold(bed, process=msgspec.structs.replace(me(), pid=77))
            return found

        bed.core.store.read = then_released  # type: ignore[method-assign, assignment]
        assert await bed.core.occupancy.sweep() == 0
        bed.core.store.read = looked  # type: ignore[method-assign]
        assert len((await busy(bed)).seats) == 1  # another than the one that was looked at
        assert await bed.core.occupancy.sweep() == 1

    play(story)


def test_two_holds_at_once_in_one_group_commit_have_one_winner(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        answers = await asyncio.gather(*(hold(bed) for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(each, wire.ReceiverHoldResult) for each in answers) == 1

    play(story)
