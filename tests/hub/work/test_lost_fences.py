"""Who lost a task and states no fence is told so, until it claims again (WK-L9, WK-D4, WK-D8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.hub.work.crew import HOUR_MS, Crew, PlayCrew, Worker, refused
from tfx.hub.wire.work import LeaseView

Loss = Callable[[Crew, Worker, LeaseView], Awaitable[object]]


async def expires(crew: Crew, _ann: Worker, _lease: LeaseView) -> None:
    await crew.bed.tick(2 * HOUR_MS)


async def is_forced(crew: Crew, _ann: Worker, lease: LeaseView) -> None:
    await crew.boss.force(1, lease)


async def is_handed_on(_crew: Crew, ann: Worker, lease: LeaseView) -> None:
    await ann.handoff(1, "bob", lease)


async def is_released_by_the_person(crew: Crew, _ann: Worker, lease: LeaseView) -> None:
    await crew.boss.release(1, lease)


async def is_cancelled(crew: Crew, _ann: Worker, lease: LeaseView) -> None:
    await crew.boss.update(1, lease, status="cancelled")


LOSSES = [expires, is_forced, is_handed_on, is_released_by_the_person, is_cancelled]


@pytest.mark.parametrize("loss", LOSSES)
def test_wk_l9_who_lost_a_task_changes_it_no_more_without_a_fence(
    act: PlayCrew, loss: Loss
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        await loss(crew, ann, lease)
        before = await crew.person.show(1)
        steps = (
            ann.update(1, note="still at it"),
            ann.update(1, title="mine"),
            ann.update(1, status="accepted"),
            ann.attach("file", "a.py", task=1),
            ann.release(1),
            ann.handoff(1, "bob"),
        )
        for step in steps:
            with refused("lease-lost", "state-conflict") as error:
                await step
            assert error.value.details["lease_id"] == lease.lease_id
            assert error.value.details["reason"]
            successor = None if before.lease is None else before.lease.lease_id
            assert error.value.details["successor"] == successor
        seen = await crew.person.show(1)
        assert (seen.note, seen.title, seen.status) == (before.note, before.title, before.status)
        if loss is not is_cancelled:  # others are not held up by what ann lost
            free = crew.person if before.lease is None else bob
            assert (await free.update(1, note="seen")).note == "seen"

    act(story)


@pytest.mark.parametrize("loss", [expires, is_forced, is_released_by_the_person])
def test_wk_l9_who_claims_again_or_says_what_it_knows_goes_on(act: PlayCrew, loss: Loss) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        await loss(crew, ann, lease)
        assert (await ann.update(1, no_lease=True, note="I know")).note == "I know"
        with refused("lease-lost"):
            await ann.update(1, note="I do not")
        again = await ann.update(1, status="assigned")  # a claim, too (WK-L8)
        assert (again.lease is not None, again.status) == (True, "assigned")
        assert (await ann.update(1, note="mine")).note == "mine"

    act(story)


def test_wk_l9_what_the_holder_ended_itself_is_no_loss(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        await ann.release(1, lease)
        assert (await ann.update(1, note="given back")).note == "given back"
        lease = await ann.claim(1)
        await ann.update(1, lease, status="in_progress")
        await ann.update(1, lease, status="done")
        assert (await ann.update(1, note="one thing more")).note == "one thing more"
        lease = await crew.owned(ann, "in_progress", "in_review")
        await bob.review(2)
        await bob.update(2, status="merged")
        assert (await ann.update(2, status="done")).status == "done"  # it was taken in

    act(story)


def test_wk_l9_a_former_holder_that_never_began_may_review(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        given = (await ann.handoff(1, "bob", await crew.owned(ann))).lease
        for status in ("in_progress", "in_review"):
            await bob.update(1, given, status=status)
        with refused("lease-lost"):
            await ann.update(1, status="in_progress")
        await ann.review(1)
        assert (await ann.update(1, status="in_progress", note="no")).note == "no"

    act(story)


def test_wk_l9_another_life_and_another_task_lost_nothing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.boss.force(1, await crew.owned(ann))
        other = await crew.owned(ann)
        assert (await ann.update(2, note="mine")).lease == other
        ann = await crew.hire("ann")
        assert (await ann.update(1, note="a new life")).note == "a new life"
        assert (await ann.bare.update(1, note="unsupervised")).note == "unsupervised"

    act(story)
