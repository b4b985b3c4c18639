"""Who keeps an agent busy: one row, three tiers, takeover by proof of death only (EV-B1 … B6)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tests.hub.occupying import (
    GRACE_MS,
    HOUR_MS,
    TERMINAL,
    Door,
    beat,
    body_of,
    busy,
    close_terminal,
    far,
    finish,
    free,
    hold,
    listed,
    me,
    open_terminal,
    refusal,
    release,
    start,
)
from tests.hub.store.test_queries import plan
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core import database
from tfx.core.identity import Liveness, Proof
from tfx.errors import AccessDenied, NotFound
from tfx.hub.models import AgentId
from tfx.hub.occupancy_models import Evidence, Tier
from tfx.hub.schema import registry
from tfx.hub.store import occupancy
from tfx.hub.wire import agents
from tfx.hub.wire import occupancy as wire


def test_ev_b1_a_receiver_has_one_holder_and_the_refusal_names_it(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        held = await hold(bed)
        refused = await refusal(hold(bed))
        assert refused.reason == "receiver-busy"
        assert refused.details["seat_id"] == held.hold_id
        assert (refused.details["pid"], refused.details["liveness"]) == (me().pid, "alive")
        assert await release(bed, held.hold_id)
        again = await hold(bed)
        assert again.hold_id != held.hold_id
        assert again.generation > held.generation

    play(story)


def test_ev_b1_the_three_tiers_are_set_and_cleared_independently(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        held = await hold(bed)
        terminal = await open_terminal(bed)
        assert [seat.tier for seat in terminal.beside] == [Tier.MESSAGE]
        run = await start(bed, kind=TERMINAL)
        assert [seat.tier for seat in (await busy(bed)).seats] == list(Tier)
        await release(bed, held.hold_id)
        assert [seat.tier for seat in (await busy(bed)).seats] == [Tier.TERMINAL, Tier.INVOCATION]
        assert (await refusal(hold(bed))).details["tier"] == "terminal"
        await close_terminal(bed, terminal.terminal_id)
        assert (await refusal(hold(bed))).details["tier"] == "invocation"
        await finish(bed, run)
        assert not (await busy(bed)).busy
        assert (await hold(bed)).generation > held.generation

    play(story)


@pytest.mark.parametrize("column", ["hold", "terminal", "invocation"])
def test_ev_b1_each_id_is_unique_over_all_rows(column: str) -> None:
    connection = database.open_memory()
    registry.create(connection)
    insert = (
        f"INSERT INTO occupancy (agent, stream, {column}, {column}_holder, {column}_at_ms, "
        "hold_until_ms, last_seq) VALUES (?, 1, 'x', '{}', 1, ?, 1)"
    )
    until = 1 if column == "hold" else None
    connection.execute(insert, ("ann", until))
    with pytest.raises(database.ConstraintError):
        connection.execute(insert, ("bob", until))
    connection.close()


def test_ev_b1_the_generation_rises_even_over_an_agent_that_was_forgotten(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        before = await hold(bed)
        await bed.core.retiring.agents_retire(
            OPERATOR_CALLER, agents.RetireRequest(agent_id=AgentId("bob"))
        )
        bed.clock.pass_ms(31 * 24 * HOUR_MS)
        await bed.core.upkeep.forget()
        assert bed.rows("SELECT count(*) FROM occupancy") == [(0,)]
        await bed.register("bob")
        assert (await hold(bed)).generation > before.generation

    with_bed(tmp_path / "hub.db", story)
    refolds_to_itself(tmp_path / "hub.db")


def test_ev_b2_the_busy_check_is_one_search_by_key_and_never_the_invocations() -> None:
    assert plan(occupancy.BY_AGENT) == ["SEARCH occupancy USING PRIMARY KEY (agent=?)"]
    assert "invocations" not in occupancy.BY_AGENT


def test_ev_b2_stale_running_rows_do_not_make_an_agent_busy(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for _ in range(50):
            await start(bed, process=me())
        assert len(await listed(bed, state="running", limit=500)) == 50
        answer = await busy(bed)
        assert (answer.busy, answer.tier, answer.seats) == (False, None, ())
        await hold(bed)

    play(story)


def test_ev_b2_an_agent_that_nobody_knows_is_an_error_and_not_idle(play: Play) -> None:
    async def story(bed: Bed) -> None:
        with pytest.raises(NotFound):
            await busy(bed, "nobody")
        with pytest.raises(NotFound):
            await hold(bed, "nobody")

    play(story)


def test_ev_b3_busy_row_and_diagnostic_row_agree_and_change_together(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        run = await start(bed, kind=TERMINAL)
        ((id_of_row, holder, record, record_holder),) = bed.rows(
            "SELECT o.invocation, o.invocation_holder, i.id, i.holder FROM occupancy o "
            "JOIN invocations i ON i.id = o.invocation"
        )
        assert (id_of_row, holder) == (record, record_holder)
        assert id_of_row == run
        seqs = bed.rows("SELECT seq FROM log WHERE kind IN ('invocation_started', 'agent_busy')")
        assert int(seqs[1][0] or 0) == int(seqs[0][0] or 0) + 1
        await finish(bed, run)
        assert bed.kinds()[-2:] == ["invocation_finished", "agent_idle"]
        assert bed.rows("SELECT invocation FROM occupancy") == [(None,)]
        other = await start(bed)
        assert other != run
        assert not (await busy(bed)).busy  # a turn is no session in a terminal

    play(story)


@pytest.mark.parametrize("proof", list(Proof))
def test_ev_b4_a_holder_that_is_proven_dead_is_taken_over_at_once(play: Play, proof: Proof) -> None:
    async def story(bed: Bed) -> None:
        door = Door(bed)
        await bed.register("bob")
        old = await hold(bed, process=msgspec.structs.replace(me(), pid=77))
        door.dead[77] = proof
        assert not (await busy(bed)).busy
        new = await hold(bed)
        assert new.taken_over is not None
        assert (new.taken_over.seat_id, new.taken_over.evidence.value) == (
            old.hold_id,
            proof.value,
        )
        assert new.generation > old.generation

    play(story)


def test_ev_b4_another_boot_proves_death_and_an_unknown_one_does_not(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        rebooted = msgspec.structs.replace(me(), boot_id="0" * 36)
        await hold(bed, process=rebooted)
        new = await hold(bed, process=far())
        assert new.taken_over is not None
        assert new.taken_over.evidence is Evidence.BOOT_DIFFERS
        assert (await refusal(hold(bed))).details["liveness"] == "unknown"

    play(story)


def test_ev_b4_a_holder_that_cannot_be_looked_at_is_held_until_its_deadline(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        old = await hold(bed, process=far(), ttl_ms=100_000)
        await bed.tick(99_999)
        await refusal(hold(bed))
        await beat(bed, old.hold_id)  # the deadline runs from its last sign of life
        await bed.tick(99_999)
        await refusal(hold(bed))
        await bed.tick(1)
        new = await hold(bed)
        assert new.taken_over is not None
        assert (new.taken_over.evidence, new.taken_over.beat_age_ms) == (
            Evidence.DEADLINE,
            100_000,
        )

    play(story)


def test_ev_b4_pid_2_of_a_restarted_container_is_no_proof_of_anything(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.tick(GRACE_MS)
        other = msgspec.structs.replace(me(), pid_namespace="pid:[1]", pid=2)
        await hold(bed, process=other, ttl_ms=60_000)
        (seat,) = (await busy(bed)).seats
        assert seat.liveness is Liveness.UNKNOWN
        assert await bed.core.occupancy.sweep() == 0
        await bed.tick(60_000)
        assert await bed.core.occupancy.sweep() == 1

    play(story)


def test_ev_b5_the_whole_identity_of_the_holder_is_in_the_event(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await hold(bed)
        own = me()
        assert body_of(bed, "receiver_held")["holder"] == {
            "boot_id": own.boot_id,
            "host": own.host,
            "pid": own.pid,
            "pid_namespace": own.pid_namespace,
            "start_token": own.start_token,
            "ttl_ms": 600_000,
        }

    play(story)


def test_ev_b6_eight_silent_hours_do_not_take_a_live_holders_lease(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", ttl_ms=7_200_000)
        held = await hold(bed, ttl_ms=10_000)
        terminal = await open_terminal(bed, ttl_ms=10_000)
        await bed.tick(8 * HOUR_MS)
        assert await bed.core.occupancy.sweep() == 0
        message, seat = (await busy(bed)).seats
        assert (message.beat_age_ms, message.liveness) == (8 * HOUR_MS, Liveness.ALIVE)
        assert (message.evidence, seat.evidence) == (None, None)
        assert (await free(bed)).evicted == ()
        assert await release(bed, held.hold_id)
        assert await close_terminal(bed, terminal.terminal_id)

    play(story)


def test_ev_b6_force_is_the_operators_and_an_event_with_its_evidence(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        old = await hold(bed)
        request = wire.ReceiverHoldRequest(agent_id=AgentId("bob"), process=me(), force=True)
        with pytest.raises(AccessDenied) as refused:
            await bed.core.receivers.receiver_hold(NOBODY, request)
        assert refused.value.reason == "operator-needed"
        new = await hold(bed, force=True)
        assert new.taken_over is not None
        assert (new.taken_over.seat_id, new.taken_over.evidence) == (old.hold_id, Evidence.FORCE)
        await open_terminal(bed)
        await start(bed, kind=TERMINAL)
        freed = await free(bed, force=True)
        assert {each.evidence for each in freed.evicted} == {Evidence.FORCE}
        assert len(freed.evicted) == 3
        assert not (await busy(bed)).seats
        assert bed.kinds()[-4:] == [
            "receiver_released",
            "terminal_closed",
            "invocation_lost",
            "agent_idle",
        ]
        ((actor,),) = bed.rows("SELECT actor FROM log ORDER BY seq DESC LIMIT 1")
        assert actor == "operator"
        assert [run.state.value for run in await listed(bed)] == ["lost"]

    play(story)


def test_agents_shows_who_keeps_each_busy(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("cat")
        held = await hold(bed)
        await bed.tick(5_000)
        page = await bed.core.agents.agents(NOBODY, agents.AgentsRequest())
        bob, cat = page.agents
        assert (cat.generation, cat.seats) == (0, ())
        assert bob.generation == held.generation
        (seat,) = bob.seats
        assert (seat.tier, seat.pid, seat.beat_age_ms) == (Tier.MESSAGE, me().pid, 5_000)

    play(story)
