"""What runs for agents, for people and diagnosis: it blocks nobody (EV-I)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, with_bed
from tests.hub.occupying import (
    GRACE_MS,
    HOUR_MS,
    busy,
    ended,
    far,
    finish,
    hold,
    listed,
    me,
    notify,
    release,
    start,
)
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core.identity import Liveness
from tfx.errors import InvalidRequest, NotFound, StateConflict
from tfx.hub.models import AgentId, Retention
from tfx.hub.occupancy_models import (
    Evidence,
    InvocationKind,
    InvocationState,
    Outcome,
)
from tfx.hub.wire import admin, agents, invocations, views

TERMINAL = InvocationKind.TERMINAL
DAY_MS = 86_400_000


async def beat(bed: Bed, run: str) -> invocations.InvocationBeatResult:
    request = invocations.InvocationBeatRequest(invocation_id=run)
    return await bed.core.invocations.invocation_beat(NOBODY, request)


async def probe(bed: Bed) -> tuple[str, ...]:
    return (await bed.core.running.invocations_probe(NOBODY, invocations.ProbeRequest())).lost


async def one(bed: Bed, run: str) -> invocations.InvocationView:
    (found,) = [each for each in await listed(bed) if each.invocation_id == run]
    return found


def test_ev_i1_running_becomes_lost_by_the_probe_only_and_once(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        alive = await start(bed)
        gone = await start(bed, process=ended(), title="a turn")
        await busy(bed)
        await bed.tick(HOUR_MS)
        phantom = await one(bed, gone)
        assert (phantom.state, phantom.liveness) == (InvocationState.RUNNING, Liveness.DEAD)
        assert not (await busy(bed)).busy
        await hold(bed)
        assert await probe(bed) == (gone,)
        assert await probe(bed) == ()
        lost = await one(bed, gone)
        assert (lost.state, lost.evidence, lost.title) == (
            InvocationState.LOST,
            Evidence.PID_GONE,
            "a turn",
        )
        assert (await one(bed, alive)).state is InvocationState.RUNNING
        assert bed.kinds().count("invocation_lost") == 1

    play(story)


def test_ev_i1_what_cannot_be_looked_at_is_lost_at_its_deadline_and_beats_move_it(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        run = await start(bed, process=far(), kind=TERMINAL, ttl_ms=60_000)
        await bed.tick(59_999)
        await beat(bed, run)
        await bed.tick(59_999)
        assert await probe(bed) == ()
        assert (await busy(bed)).busy
        await bed.tick(1)
        assert await probe(bed) == (run,)
        assert not (await busy(bed)).seats
        ((body,),) = bed.rows("SELECT body FROM log WHERE kind = 'invocation_lost'")
        assert msgspec.json.decode(str(body)) == {"beat_age_ms": 60_000, "evidence": "deadline"}
        with pytest.raises(StateConflict) as refused:
            await beat(bed, run)
        assert refused.value.reason == "lease-lost"

    play(story)


def test_ev_i1_the_hub_probes_by_itself(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed, process=ended(), kind=TERMINAL)
        await hold(bed, "bob", ended())
        monkeypatch.setattr(bed.core.upkeep, "_fallback_at", 0.0)
        await bed.core.upkeep.tick()
        assert (await one(bed, run)).state is InvocationState.LOST
        assert not (await busy(bed)).seats

    play(story)


def test_ev_b3_a_hold_over_a_dead_terminal_invocation_ends_both_of_its_rows(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed, process=ended(), kind=TERMINAL)
        await hold(bed)
        assert bed.kinds()[-3:] == ["invocation_lost", "agent_idle", "receiver_held"]
        assert (await one(bed, run)).state is InvocationState.LOST

    play(story)


def test_ev_i2_the_finish_says_how_it_ended_and_the_first_word_counts(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed)
        await bed.tick(5_000)
        first = await finish(bed, run, Outcome.FAILED, summary="half", error="no tests")
        again = await finish(bed, run, Outcome.OK, summary="all")
        assert again == first
        found = await one(bed, run)
        assert (found.outcome, found.summary, found.error, found.is_late) == (
            Outcome.FAILED,
            "half",
            "no tests",
            False,
        )
        assert found.ended_at_ms == found.started_at_ms + 5_000
        with pytest.raises(StateConflict):
            await beat(bed, run)
        with pytest.raises(NotFound):
            await finish(bed, "no-such-invocation")

    play(story)


def test_ev_i2_a_finish_after_lost_is_accepted_and_marked_late(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        old = await start(bed, process=ended(), kind=TERMINAL)
        assert await probe(bed) == (old,)
        new = await start(bed, kind=TERMINAL)
        await bed.tick(1_000)
        done = await finish(bed, old, summary="was only slow")
        assert done.is_late
        found = await one(bed, old)
        assert (found.state, found.summary, found.evidence) == (
            InvocationState.FINISHED,
            "was only slow",
            Evidence.PID_GONE,
        )
        (seat,) = (await busy(bed)).seats
        assert seat.seat_id == new  # nothing late touches a successor (EV-B8)

    with_bed(tmp_path / "hub.db", story)
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_i3_exactly_one_notifier_wins(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed)
        with pytest.raises(StateConflict) as refused:
            await notify(bed, run, "ann")
        assert refused.value.reason == "still-running"
        await finish(bed, run)
        answers = [await notify(bed, run, who) for who in ("ann", "cat", "ann")]
        assert [each.won for each in answers] == [True, False, False]
        assert {each.notified_by for each in answers} == {"ann"}
        assert bed.kinds().count("invocation_notified") == 1
        assert (await one(bed, run)).notified_by == "ann"

    play(story)


def test_an_invocation_starts_once_for_one_key(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        first = await start(bed, kind=TERMINAL, op_id="key")
        assert await start(bed, kind=TERMINAL, op_id="key") == first
        with pytest.raises(StateConflict) as refused:
            await start(bed, kind=TERMINAL)
        assert refused.value.reason == "receiver-busy"
        with pytest.raises(NotFound):
            await start(bed, "nobody")

    play(story)


def test_invocations_are_listed_newest_first_by_agent_state_and_task(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("cat")
        runs = [await start(bed, name) for name in ("bob", "cat", "bob", "cat")]
        await finish(bed, runs[0])
        await finish(bed, runs[3])
        everything = [each.invocation_id for each in await listed(bed)]
        assert everything == runs[::-1]
        assert [each.invocation_id for each in await listed(bed, state="running")] == [
            runs[2],
            runs[1],
        ]
        assert [each.invocation_id for each in await listed(bed, agent_id="bob")] == [
            runs[2],
            runs[0],
        ]
        of_both = await listed(bed, agent_id="bob", state="finished")
        assert [each.invocation_id for each in of_both] == [runs[0]]
        request = invocations.InvocationsRequest(limit=3)
        page = await bed.core.running.invocations(NOBODY, request)
        assert [each.invocation_id for each in page.invocations] == runs[:0:-1]
        rest = await listed(bed, before=page.next_before)
        assert [each.invocation_id for each in rest] == [runs[0]]
        with pytest.raises(InvalidRequest):
            await listed(bed, task=1)
        with pytest.raises(NotFound):
            await listed(bed, room="/nowhere", task=1)

    play(story)


def test_h_60_a_trace_tells_of_the_invocations_that_belong_to_it(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", trace_id="trace-1")
        run = await start(bed, trace_id="trace-1")
        await start(bed, trace_id="trace-2")
        await finish(bed, run, Outcome.CANCELLED)
        lost = await start(bed, process=ended(), trace_id="trace-1")
        await probe(bed)
        page = await bed.core.views.trace(NOBODY, views.TraceRequest(trace_id="trace-1"))
        assert [(each.kind, each.invocation_id, each.reason) for each in page.items] == [
            ("message_posted", None, None),
            ("invocation_started", run, None),
            ("invocation_finished", run, "cancelled"),
            ("invocation_started", lost, None),
            ("invocation_lost", lost, "pid-gone"),
        ]

    play(story)


# ------------------------------------------------------------------ EV-P8


def test_ev_p8_ended_invocations_are_forgotten_whole_and_what_remains_refolds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await finish(bed, await start(bed, kind=TERMINAL))
        old = await start(bed, kind=TERMINAL)
        await start(bed, process=ended())
        await probe(bed)
        bed.clock.pass_ms(13 * DAY_MS)
        await finish(bed, await start(bed))
        assert (await bed.core.upkeep.forget()).invocations == 0
        bed.clock.pass_ms(DAY_MS)
        assert (await bed.core.upkeep.forget()).invocations == 2
        assert len(await listed(bed)) == 2
        (seat,) = (await busy(bed)).seats
        assert seat.seat_id == old  # what still runs is never forgotten
        await bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        assert (await busy(bed)).seats[0].seat_id == old
        check = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert check.equal

    with_bed(path, story)
    refolds_to_itself(path)


@pytest.mark.parametrize("then", ["held", "released", "retired"])
def test_ev_p8_a_jump_that_shows_in_a_hold_keeps_its_run(tmp_path: Path, then: str) -> None:
    path, clock = tmp_path / "hub.db", FakeClock()
    keep = Retention(messages_ms=HOUR_MS, agents_ms=HOUR_MS)
    holds: list[str] = []

    async def first(bed: Bed) -> None:
        await bed.register("bob")
        holds.append((await hold(bed)).hold_id)
        await bed.tick()
        clock.sleep_ms(9 * HOUR_MS)
        await bed.tick()
        await bed.core.upkeep.end()

    async def second(bed: Bed) -> None:
        if then == "released":
            await release(bed, holds[0])
        elif then == "retired":
            request = agents.RetireRequest(agent_id=AgentId("bob"))
            await bed.core.retiring.agents_retire(OPERATOR_CALLER, request)
        clock.pass_ms(2 * HOUR_MS)
        gone = await bed.core.upkeep.forget()
        assert (gone.events > 0) is (then != "held")
        check = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert check.equal

    with_bed(path, first, clock=clock, keep=keep)
    with_bed(path, second, clock=clock, keep=keep, instance="two")
    refolds_to_itself(path)


def test_ev_p8_a_finish_after_its_agent_was_forgotten_is_recorded(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed, process=me())  # a turn: it occupies nobody and goes on
        request = agents.RetireRequest(agent_id=AgentId("bob"))
        await bed.core.retiring.agents_retire(OPERATOR_CALLER, request)
        bed.clock.pass_ms(31 * DAY_MS)
        await bed.core.upkeep.forget()
        assert not (await finish(bed, run)).is_late

    play(story)
