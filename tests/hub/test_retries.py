"""A retry with its key returns the first result and does nothing more (H-30, EV-L7, EV-L8)."""

from __future__ import annotations

import pytest

from tests.hub.conftest import Play
from tests.hub.driver import OPERATOR_CALLER, Bed
from tfx.errors import StateConflict
from tfx.hub.models import AgentId, OpId
from tfx.hub.operations import OPERATIONS
from tfx.hub.wire import admin, agents
from tfx.hub.wire.fields import Mutation, Repeatable


def test_h_30_every_operation_that_changes_something_takes_a_key() -> None:
    for row in OPERATIONS.values():
        assert issubclass(row.request, Mutation) is row.mutates, row.name
    kept_none = {name for name, row in OPERATIONS.items() if issubclass(row.request, Repeatable)}
    assert kept_none == {
        *("attach", "heartbeat", "ack", "rebuild", "prune", "shutdown"),
        *("receiver_beat", "terminal_beat", "invocation_beat", "work_beat"),
        *("invocations_probe", "agents_free"),
    }


def test_h_30_retiring_twice_with_one_key_returns_the_first_result(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("eve")
        await bed.publish("ann", "bob")
        await bed.publish("ann", "bob")

        async def retire(name: str, key: str) -> agents.RetireResult:
            return await bed.core.retiring.agents_retire(
                OPERATOR_CALLER, agents.RetireRequest(agent_id=AgentId(name), op_id=OpId(key))
            )

        first = await retire("bob", "k1")
        assert (first.retired, first.dead_lettered) == (True, 2)
        assert await retire("bob", "k1") == first
        await bed.register("bob")
        assert await retire("bob", "k1") == first
        assert (await bed.publish("ann", "bob")).fanout_count == 1  # bob was not retired again
        with pytest.raises(StateConflict) as refused:
            await retire("eve", "k1")
        assert refused.value.reason == "idempotency-conflict"

    play(story)


def test_h_30_pruning_agents_twice_with_one_key_returns_the_first_result(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("bob", "cat"):
            await bed.register(name, ttl_ms=10_000)
        await bed.publish("ann", "cat")
        request = agents.PruneAgentsRequest(unseen_ms=0, dry_run=False, op_id=OpId("k"))
        await bed.tick(3_600_000)
        first = await bed.core.retiring.agents_prune(OPERATOR_CALLER, request)
        assert first.agents == ("bob", "cat")
        await bed.register("dan", ttl_ms=10_000)
        await bed.tick(3_600_000)
        assert await bed.core.retiring.agents_prune(OPERATOR_CALLER, request) == first
        check = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert check.equal

    play(story)


def test_h_30_a_late_retry_of_deregister_leaves_the_next_session_alone(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        request = agents.DeregisterRequest(agent_id=AgentId("bob"), op_id=OpId("bye"))
        first = await bed.core.agents.deregister(OPERATOR_CALLER, request)
        await bed.register("bob", op_id="again")
        assert bed.core.store.beats.any_live(bed.clock.now_ms())
        assert await bed.core.agents.deregister(OPERATOR_CALLER, request) == first
        assert bed.core.store.beats.any_live(bed.clock.now_ms())

    play(story)


def test_h_30_a_late_retry_of_register_returns_its_own_lease_and_feeds_no_other(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        first = await bed.register("bob", op_id="k1", ttl_ms=10_000)
        second = await bed.register("bob", op_id="k2", ttl_ms=10_000)
        bed.clock.pass_ms(9_000)
        late = await bed.register("bob", op_id="k1", ttl_ms=10_000)
        assert late.lease_id == first.lease_id != second.lease_id
        assert late.lease_expires_ms == first.server_time_ms  # when the second one began
        bed.clock.pass_ms(2_000)
        assert not bed.core.store.beats.any_live(bed.clock.now_ms())

    play(story)


def test_h_30_a_late_retry_of_register_after_deregister_is_no_conflict(play: Play) -> None:
    async def story(bed: Bed) -> None:
        first = await bed.register("bob", op_id="k1")
        await bed.core.agents.deregister(
            OPERATOR_CALLER, agents.DeregisterRequest(agent_id=AgentId("bob"))
        )
        assert (await bed.register("bob", op_id="k1")).lease_id == first.lease_id

    play(story)
