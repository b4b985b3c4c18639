from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, with_bed
from tfx.core.identity import identify, start_token
from tfx.errors import NotFound, StateConflict
from tfx.hub.models import AgentId, AgentState, LeaseId, StatusScope
from tfx.hub.wire import agents, views


def facts_of(pid: int | None = None, start: str | None = None) -> agents.ProcessFacts:
    """Ourselves, or a process that is not there any more."""
    own = identify()
    assert own is not None
    return agents.ProcessFacts(
        pid=pid or own.pid,
        start_token=start or own.start_token,
        boot_id=own.boot_id,
        host=own.host,
        pid_namespace=own.pid_namespace,
    )


async def attach(
    bed: Bed,
    process_facts: agents.ProcessFacts,
    workspace: str = "/home/u/work/app",
    *,
    agent_id: str | None = None,
    find_only: bool = False,
) -> agents.AttachResult:
    return await bed.core.attaching.attach(
        NOBODY,
        agents.AttachRequest(
            cli="claude",
            workspace=workspace,
            process=process_facts,
            agent_id=None if agent_id is None else AgentId(agent_id),
            find_only=find_only,
        ),
    )


async def state_of(bed: Bed, name: str) -> AgentState:
    status = await bed.core.views.status(
        NOBODY, views.StatusRequest(scope=StatusScope.AGENT, agent_id=AgentId(name))
    )
    assert status.agent is not None
    return status.agent.state


def test_h_61_registering_again_keeps_the_inbox_and_takes_the_new_topics(play: Play) -> None:
    async def story(bed: Bed) -> None:
        first = await bed.register("bob", "old")
        await bed.publish("ann", "bob")
        second = await bed.register("bob", "new")
        assert first.lease_id != second.lease_id
        assert (await bed.publish("ann", "topic:old")).fanout_count == 0
        assert (await bed.publish("ann", "topic:new")).fanout_count == 1
        assert len((await bed.poll("bob")).messages) == 2
        assert bed.kinds().count("agent_registered") == 1

    play(story)


def test_h_61_a_lapsed_lease_is_stale_and_five_minutes_later_offline(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", ttl_ms=10_000)
        assert await state_of(bed, "bob") is AgentState.ONLINE
        await bed.tick(10_000)
        assert await state_of(bed, "bob") is AgentState.STALE
        await bed.tick(300_000)
        assert await state_of(bed, "bob") is AgentState.OFFLINE
        await bed.poll("bob")  # a call is a sign of life
        assert await state_of(bed, "bob") is AgentState.ONLINE

    play(story)


def test_h_61_ev_b9_nine_hours_of_sleep_end_no_lease_and_no_message(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", ttl_ms=60_000)
        await bed.publish("ann", "bob", ttl_ms=60_000)
        await bed.publish("ann", "bob", ttl_ms=60_000)
        await bed.poll("bob", most=1)
        bed.clock.sleep_ms(9 * 3_600_000)
        await bed.core.upkeep.tick()
        assert await state_of(bed, "bob") is AgentState.ONLINE
        assert await bed.dead() == ()
        assert bed.rows("SELECT state, count(*) FROM deliveries GROUP BY state") == [
            ("claimed", 1),
            ("queued", 1),
        ]
        await bed.tick(60_001)
        assert await state_of(bed, "bob") is AgentState.STALE
        assert len(await bed.dead()) == 2

    play(story)


def test_h_61_a_process_that_is_proven_dead_is_offline_whatever_its_lease_says(play: Play) -> None:
    async def story(bed: Bed) -> None:
        alive = await attach(bed, facts_of())
        dead = await attach(bed, facts_of(start="1"), "/home/u/work/other")
        assert alive.agent_id is not None
        assert dead.agent_id is not None
        assert await state_of(bed, alive.agent_id) is AgentState.ONLINE
        assert await state_of(bed, dead.agent_id) is AgentState.OFFLINE

    play(story)


def test_k_27_attach_finds_the_agent_of_a_process_again(play: Play) -> None:
    async def story(bed: Bed) -> None:
        assert (await attach(bed, facts_of(), find_only=True)).agent_id is None
        first = await attach(bed, facts_of())
        again = await attach(bed, facts_of())
        found = await attach(bed, facts_of(), find_only=True)
        assert first.agent_id == again.agent_id == found.agent_id == "claude.app"
        assert (first.created, again.created, found.created) == (True, False, False)
        assert first.lease_id == again.lease_id

    play(story)


def test_h_29_h_61_a_name_asked_for_is_never_taken_from_a_live_process(play: Play) -> None:
    other = facts_of(pid=1, start=start_token(1) or "x")

    async def story(bed: Bed) -> None:
        first = await attach(bed, facts_of(), agent_id="ann")
        second = await attach(bed, other, agent_id="ann")
        assert (first.agent_id, second.agent_id) == ("ann", "ann.2")
        for asked, answer in ((facts_of(), first), (other, second)):
            for find_only in (False, True):  # each stays who it is, asked again or looked up
                again = await attach(bed, asked, agent_id="ann", find_only=find_only)
                assert (again.agent_id, again.lease_id) == (answer.agent_id, answer.lease_id)
        assert bed.kinds().count("session_ended") == 0

    play(story)


def test_h_61_the_name_of_a_dead_process_is_taken_with_its_inbox(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await attach(bed, facts_of(start="1"), agent_id="ann")
        await bed.publish("bob", "ann")
        new = await attach(bed, facts_of(), "/home/u/work/other", agent_id="ann")
        assert (new.agent_id, new.created) == ("ann", True)
        assert len((await bed.poll("ann")).messages) == 1

    play(story)


def test_h_61_a_name_asked_for_is_taken_from_a_session_without_a_process(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("ann")
        await bed.register("bob.2")
        assert (await attach(bed, facts_of(), agent_id="ann")).agent_id == "ann"
        other = facts_of(pid=1, start=start_token(1) or "x")
        await attach(bed, other, agent_id="bob")
        third = await attach(bed, facts_of(), agent_id="bob")
        assert third.agent_id == "bob.3"  # nobody asked for the name of who is bob.2

    play(story)


def test_ev_b4_a_name_of_a_process_that_cannot_be_seen_is_held_until_its_deadline(
    play: Play,
) -> None:
    far = msgspec.structs.replace(facts_of(pid=2, start="7"), host="another-host")

    async def story(bed: Bed) -> None:
        for asked in ("ann", None):
            first = await attach(bed, far, agent_id=asked)
            held = await attach(bed, facts_of(start="1"), agent_id=asked)
            assert held.agent_id == f"{first.agent_id}.2"
        await bed.tick(600_000)  # its lease is over, and it could have called
        assert (await attach(bed, facts_of(), agent_id="ann")).agent_id == "ann"

    play(story)


def test_ev_b9_a_deadline_frees_no_name_before_everybody_could_call(tmp_path: Path) -> None:
    path, clock = tmp_path / "hub.db", FakeClock()
    far = msgspec.structs.replace(facts_of(pid=2, start="7"), host="another-host")

    async def first(bed: Bed) -> None:
        await attach(bed, far, agent_id="ann")

    async def after_hours(bed: Bed) -> None:
        assert (await attach(bed, facts_of(), agent_id="ann")).agent_id == "ann.2"
        await bed.tick(60_000)
        assert (await attach(bed, facts_of(start="1"), agent_id="ann")).agent_id == "ann"

    with_bed(path, first, clock=clock)
    clock.pass_ms(3_600_000)
    with_bed(path, after_hours, clock=clock, instance="instance-2")


def test_k_27_a_look_for_a_name_tells_whether_another_process_has_it(play: Play) -> None:
    async def story(bed: Bed) -> None:
        assert (await attach(bed, facts_of(), agent_id="ann", find_only=True)).agent_id is None
        await bed.register("ann")  # by a program that says no process
        named = await attach(bed, facts_of(), agent_id="ann", find_only=True)
        assert (named.agent_id, named.lease_id) == ("ann", None)
        await attach(bed, facts_of(pid=1, start=start_token(1) or "x"), agent_id="bob")
        held = await attach(bed, facts_of(), agent_id="bob", find_only=True)
        assert (held.agent_id, held.lease_id) == (None, None)
        await attach(bed, facts_of(start="1"), agent_id="cid")
        left = await attach(bed, facts_of(), agent_id="cid", find_only=True)
        assert (left.agent_id, left.lease_id) == ("cid", None)

    play(story)


def test_h_29_a_number_never_makes_a_name_too_long(play: Play) -> None:
    longest = "x" * 64

    async def story(bed: Bed) -> None:
        await attach(bed, facts_of(pid=1, start=start_token(1) or "x"), agent_id=longest)
        second = await attach(bed, facts_of(), agent_id=longest)
        assert second.agent_id == "x" * 62 + ".2"
        assert (await attach(bed, facts_of(), agent_id=longest)).agent_id == second.agent_id

    play(story)


def test_k_27_one_process_may_have_several_names_and_each_is_found(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("ann", "bob"):
            assert (await attach(bed, facts_of(), agent_id=name)).created
        for name in ("ann", "bob"):
            found = await attach(bed, facts_of(), agent_id=name, find_only=True)
            assert found.agent_id == name
        assert (await attach(bed, facts_of())).agent_id in {"ann", "bob"}

    play(story)


def test_k_27_further_processes_get_the_next_number_and_a_dead_ones_name_is_reused(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        first = await attach(bed, facts_of())
        second = await attach(bed, facts_of(pid=1, start=start_token(1) or "x"))
        assert (first.agent_id, second.agent_id) == ("claude.app", "claude.app.2")
        third = await attach(bed, facts_of(start="1"))  # same pid, an earlier life of it
        assert third.agent_id == "claude.app.3"
        fourth = await attach(bed, facts_of(start="2"))
        assert fourth.agent_id == "claude.app.3"

    play(story)


def test_h_29_names_of_two_workspaces_never_collide(play: Play) -> None:
    async def story(bed: Bed) -> None:
        one = await attach(bed, facts_of(), "/home/u/one/app")
        two = await attach(bed, facts_of(start="1"), "/home/u/two/app")
        assert one.agent_id == "claude.app"
        assert two.agent_id is not None
        assert two.agent_id.startswith("claude.app-")
        cjk = await attach(bed, facts_of(start="3"), "/home/u/프로젝트 A")
        assert cjk.agent_id == "claude.프로젝트-A"

    play(story)


def test_k_27_an_id_from_the_environment_wins(play: Play) -> None:
    async def story(bed: Bed) -> None:
        result = await attach(bed, facts_of(), agent_id="reviewer")
        assert result.agent_id == "reviewer"

    play(story)


def test_heartbeat_extends_the_lease_of_its_own_session_only(play: Play) -> None:
    async def story(bed: Bed) -> None:
        old = await bed.register("bob", ttl_ms=10_000)
        await bed.tick(5_000)
        request = agents.HeartbeatRequest(agent_id=AgentId("bob"), lease_id=old.lease_id)
        beat = await bed.core.agents.heartbeat(NOBODY, request)
        assert beat.lease_expires_ms == old.lease_expires_ms + 5_000
        await bed.register("bob")
        with pytest.raises(StateConflict) as lost:
            await bed.core.agents.heartbeat(NOBODY, request)
        assert lost.value.reason == "lease-lost"
        with pytest.raises(NotFound):
            await bed.core.agents.heartbeat(
                NOBODY, agents.HeartbeatRequest(agent_id=AgentId("nobody"))
            )

    play(story)


def test_ev_b8_deregistering_is_idempotent_and_never_ends_a_successor(play: Play) -> None:
    async def story(bed: Bed) -> None:
        old = await bed.register("bob")
        await bed.register("bob")
        request = agents.DeregisterRequest(agent_id=AgentId("bob"), lease_id=old.lease_id)
        assert not (await bed.core.agents.deregister(NOBODY, request)).ended
        assert await state_of(bed, "bob") is AgentState.ONLINE
        mine = agents.DeregisterRequest(agent_id=AgentId("bob"))
        assert (await bed.core.agents.deregister(NOBODY, mine)).ended
        assert not (await bed.core.agents.deregister(NOBODY, mine)).ended
        assert await state_of(bed, "bob") is AgentState.OFFLINE
        await bed.publish("ann", "bob")  # the inbox stays
        with pytest.raises(StateConflict) as ended:
            await bed.core.agents.heartbeat(
                NOBODY,
                agents.HeartbeatRequest(agent_id=AgentId("bob"), lease_id=LeaseId("x")),
            )
        assert ended.value.reason == "ended"

    play(story)


def test_h_30_registering_twice_with_one_key_gives_one_lease(play: Play) -> None:
    async def story(bed: Bed) -> None:
        one = await bed.register("bob", op_id="r")
        two = await bed.register("bob", op_id="r")
        assert one.lease_id == two.lease_id

    play(story)


def test_h_30_a_poll_with_its_key_returns_the_same_claim_while_it_is_visible(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for _ in range(3):
            await bed.publish("ann", "bob")
        one = await bed.poll("bob", most=2, op_id="p")
        two = await bed.poll("bob", most=2, op_id="p")
        assert [m.message_id for m in one.messages] == [m.message_id for m in two.messages]
        assert [m.attempt for m in two.messages] == [1, 1]
        with pytest.raises(StateConflict) as other:
            await bed.poll("bob", most=3, op_id="p")
        assert other.value.reason == "idempotency-conflict"
        await bed.tick(60_001)
        assert [m.attempt for m in (await bed.poll("bob", most=2, op_id="p")).messages] == [2, 2]

    play(story)


def test_h_6_prune_retires_agents_that_were_not_seen_and_says_so_first(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("old", ttl_ms=10_000)
        await bed.publish("ann", "old", ttl_ms=86_400_000)
        bed.clock.pass_ms(10_000_000)
        await bed.register("fresh")
        request = agents.PruneAgentsRequest(unseen_ms=3_600_000)
        would = await bed.core.retiring.agents_prune(OPERATOR_CALLER, request)
        assert (would.agents, would.dead_lettered, would.dry_run) == (("old",), 0, True)
        assert await state_of(bed, "old") is AgentState.OFFLINE
        apply = agents.PruneAgentsRequest(unseen_ms=3_600_000, dry_run=False)
        did = await bed.core.retiring.agents_prune(OPERATOR_CALLER, apply)
        assert (did.agents, did.dead_lettered) == (("old",), 1)
        listed = await bed.core.agents.agents(NOBODY, agents.AgentsRequest())
        assert [a.agent_id for a in listed.agents] == ["fresh"]

    play(story)


def test_a_retired_agent_that_registers_is_back(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", "news")
        await bed.core.retiring.agents_retire(
            OPERATOR_CALLER, agents.RetireRequest(agent_id=AgentId("bob"))
        )
        await bed.register("bob", "news")
        assert (await bed.publish("ann", "topic:news")).fanout_count == 1

    play(story)


def test_h_61_beats_survive_a_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "hub.db", FakeClock()

    async def first(bed: Bed) -> None:
        await bed.register("bob", ttl_ms=100_000)
        bed.clock.pass_ms(50_000)
        await bed.poll("bob")

    async def second(bed: Bed) -> None:
        bed.clock.pass_ms(90_000)
        assert await state_of(bed, "bob") is AgentState.ONLINE

    with_bed(path, first, clock=clock)
    with_bed(path, second, clock=clock, instance="two")
