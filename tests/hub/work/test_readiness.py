"""Nothing is begun that is not ready, by whichever way it comes to its owner (WK-T11, T12, L4)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import Crew, PlayCrew, Story, refused
from tests.hub.work.test_edges import finish


async def rivals_of_a_held_task(crew: Crew) -> None:
    """Task 1 is held and task 2 may not run beside it."""
    await crew.owned(await crew.hire("holder"), exclusive="database")
    await crew.person.ready(exclusive="database")


async def a_task_behind_another(crew: Crew) -> None:
    """Task 2 waits for task 1."""
    await crew.person.ready()
    await crew.person.ready(blocked_by=[1])


@pytest.mark.parametrize("make", [rivals_of_a_held_task, a_task_behind_another])
def test_wk_t11_what_is_not_ready_is_given_to_nobody(act: PlayCrew, make: Story) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await make(crew)
        for who in (ann, ann.bare, crew.boss):
            with refused("not-ready", "state-conflict"):
                await who.update(2, status="assigned", assignee="ann")
        with refused("not-ready"):
            await crew.boss.update(2, label="ann")
        seen = await crew.person.show(2)
        assert (seen.status, seen.assignee, seen.lease) == ("accepted", None, None)
        with refused("not-ready"):
            await ann.claim(2)

    act(story)


@pytest.mark.parametrize("way", ["claim", "update", "next"])
def test_wk_l4_the_first_claim_of_what_was_given_by_hand_needs_a_ready_task(
    act: PlayCrew, way: str
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        task = await crew.assigned("ann")
        await crew.boss.update(task, blocked_by=[1])
        if way == "next":
            assert (await ann.take_next()).task.task == 1
            await ann.release(1)
        elif way == "claim":
            with refused("not-ready", "state-conflict"):
                await ann.claim(task)
        else:
            with refused("not-ready", "state-conflict"):
                await ann.update(task, status="assigned")
        assert (await crew.person.show(task)).lease is None
        await finish(crew, 1)
        lease = await ann.claim(task)
        await crew.person.update(1, status="accepted")  # it blocks again, and the work goes on
        await ann.leave()
        assert (await (await crew.hire("ann")).claim(task)).epoch == lease.epoch + 1

    act(story)


def test_wk_t11_work_under_way_takes_no_exclusion_key_that_is_in_use(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await crew.owned(ann, exclusive="database")
        second = await crew.owned(bob, "in_progress")
        for who in (bob, crew.boss):
            with refused("not-ready", "state-conflict") as error:
                await who.update(2, second, exclusive="database", title="mine")
            assert error.value.details["not_beside"] == [1]
        assert (await crew.person.show(2)).title == "do it"
        assert (await bob.update(2, second, exclusive="port")).exclusive == "port"
        await ann.update(1, first, exclusive="")
        assert (await bob.update(2, second, exclusive="database")).exclusive == "database"
        with refused("not-ready"):
            await ann.update(1, first, exclusive="database")

    act(story)


def test_wk_t11_a_claim_brings_no_edge_that_it_would_have_to_wait_for(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, exclusive="database")
        await crew.person.ready()
        await crew.person.ready()
        for who in (bob, bob.bare):
            for fields in ({"exclusive": "database"}, {"blocked_by": [2]}):
                with refused("not-ready", "state-conflict"):
                    await who.update(3, status="assigned", assignee="bob", **fields)
        seen = await crew.person.show(3)
        assert (seen.status, seen.lease, seen.exclusive, seen.blocked_by) == (
            *("accepted", None, None, ()),
        )
        taken = await bob.update(3, status="assigned", exclusive="port")
        assert (taken.lease is not None, taken.exclusive) == (True, "port")
        on_the_way = await bob.update(3, blocked_by=[2])  # it came up during the work
        assert on_the_way.blocked_by == (2,)

    act(story)
