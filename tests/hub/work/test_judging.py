"""Whoever did some of a piece of work neither reviews nor merges it (WK-R2, WK-R5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.hub.work.crew import Crew, PlayCrew, Worker, all_refused, refused
from tfx.hub.models import AgentId, LeaseId
from tfx.hub.store import reviews, tasks
from tfx.hub.store.tx import Tx

Way = Callable[[Crew, Worker, Worker], Awaitable[None]]


async def judged_by_the_third_alone(crew: Crew, ann: Worker, task: int = 1) -> None:
    """Neither ann nor who has the task now may judge it, in any life; cat may."""
    cat = await crew.hire("cat")
    again = await crew.hire("ann")
    seen = await crew.person.show(task)
    assert (seen.status, seen.assignee is not None) == ("in_review", True)
    for who in (ann, again):
        with pytest.raises(Exception, match=r"."):
            await who.review(task)
    error = (await all_refused([again.review(task)], "self-review", "access-denied"))[0]
    assert "ann" in error.message
    assert "another agent" in error.message
    with pytest.raises(Exception, match=r"."):
        await again.update(task, status="merged")
    await cat.review(task)
    with pytest.raises(Exception, match=r"."):
        await again.update(task, status="merged")
    assert (await cat.update(task, status="merged")).status == "merged"


async def hands_it_on_in_review(crew: Crew, ann: Worker, bob: Worker) -> None:
    lease = await crew.owned(ann, "in_progress", "in_review")
    await ann.handoff(1, str(bob.name), lease)


async def hands_it_on_while_it_works(crew: Crew, ann: Worker, bob: Worker) -> None:
    lease = await crew.owned(ann, "in_progress")
    done = await ann.handoff(1, "bob", lease)
    await bob.update(1, done.lease, status="in_review")


async def gives_it_back_half_done(crew: Crew, ann: Worker, bob: Worker) -> None:
    await ann.release(1, await crew.owned(ann, "in_progress"))
    await bob.update(1, await bob.claim(1), status="in_review")


async def gives_it_back_out_of_review(crew: Crew, ann: Worker, bob: Worker) -> None:
    await ann.release(1, await crew.owned(ann, "in_review"))
    await bob.update(1, await bob.claim(1), status="in_review")


async def gives_it_back_blocked(crew: Crew, ann: Worker, bob: Worker) -> None:
    await ann.release(1, await crew.owned(ann, "in_progress", "blocked"))
    await bob.update(1, await bob.claim(1), status="in_review")


async def loses_it_by_force(crew: Crew, ann: Worker, bob: Worker) -> None:
    await crew.boss.force(1, await crew.owned(ann, "in_progress"))
    await bob.update(1, await bob.claim(1), status="in_review")


async def loses_it_by_time(crew: Crew, ann: Worker, bob: Worker) -> None:
    await crew.person.ready()
    lease = await ann.claim(1, ttl_ms=60_000)
    await ann.update(1, lease, status="in_progress")
    crew.clock.pass_ms(60_000)
    await bob.update(1, await bob.claim(1), status="in_review")


async def attaches_what_it_made_and_gives_it_back(crew: Crew, ann: Worker, bob: Worker) -> None:
    lease = await crew.owned(ann)
    await ann.attach("link", "https://example.org/what-i-made", lease, task=1)
    await ann.release(1, lease)
    await bob.update(1, await bob.claim(1), status="in_review")


async def attaches_what_it_made_without_a_claim(crew: Crew, ann: Worker, bob: Worker) -> None:
    await crew.person.ready()
    await ann.attach("pr", "https://example.org/pr/7", task=1)
    await bob.update(1, await bob.claim(1), status="in_review")


async def works_without_a_session(crew: Crew, ann: Worker, bob: Worker) -> None:
    await crew.person.ready()
    await ann.bare.update(1, status="assigned", assignee="ann")
    await ann.bare.update(1, status="in_progress")
    await ann.bare.release(1)
    await bob.update(1, await bob.claim(1), status="in_review")


async def takes_it_up_again_by_itself(crew: Crew, ann: Worker, bob: Worker) -> None:
    lease = await crew.owned(ann, "in_progress")
    await ann.update(1, lease, status="cancelled")
    await ann.update(1, status="accepted")
    await bob.update(1, await bob.claim(1), status="in_review")


async def takes_it_up_again_as_nobody(crew: Crew, ann: Worker, bob: Worker) -> None:
    await crew.owned(ann, "in_progress", "done")
    await crew.person.update(1, status="accepted")
    await bob.update(1, await bob.claim(1), status="in_review")


@pytest.mark.parametrize(
    "way",
    [
        hands_it_on_in_review,
        hands_it_on_while_it_works,
        gives_it_back_half_done,
        gives_it_back_out_of_review,
        gives_it_back_blocked,
        loses_it_by_force,
        loses_it_by_time,
        attaches_what_it_made_and_gives_it_back,
        attaches_what_it_made_without_a_claim,
        works_without_a_session,
        takes_it_up_again_by_itself,
        takes_it_up_again_as_nobody,
    ],
)
def test_wk_r2_who_did_some_of_the_work_never_judges_it(act: PlayCrew, way: Way) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await way(crew, ann, bob)
        await judged_by_the_third_alone(crew, ann)

    act(story)


def test_wk_r2_who_has_a_task_by_its_registered_name_never_judges_it(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, cat = await crew.hire("ann", label="Ann"), await crew.hire("cat")
        await crew.person.ready()
        for status in ({"status": "assigned", "label": "Ann"}, {"status": "in_review"}):
            await crew.boss.update(1, **status)
        with refused("self-review", "access-denied"):
            await ann.review(1)
        await cat.review(1)
        assert (await cat.update(1, status="merged")).status == "merged"

    act(story)


def test_wk_r2_who_only_claimed_and_gave_back_may_judge(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        await ann.release(1, await crew.owned(ann))
        await ann.attach("link", "https://example.org/what-is-asked", task=1)
        lease = await bob.claim(1)
        await bob.update(1, lease, status="in_review")
        handed = await bob.handoff(1, "cat", lease)  # cat keeps it in review, and does nothing
        await cat.handoff(1, "bob", handed.lease)
        for judge in (cat, ann):
            assert (await judge.review(1)).agent_id == judge.name
            await judge.end_review(1)
        await ann.review(1)
        assert (await ann.update(1, status="merged")).status == "merged"

    act(story)


def test_wk_r2_work_that_is_settled_has_no_authors_any_more(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_progress", "in_review")
        await bob.review(1)
        await bob.update(1, status="merged")
        await bob.update(1, status="accepted")  # more is wanted, of what has been reviewed
        lease = await bob.claim(1)
        await bob.update(1, lease, status="in_progress")
        await bob.update(1, lease, status="in_review")
        assert (await ann.review(1)).agent_id == "ann"
        with refused("self-review"):
            await bob.review(1)
        await bob.update(1, lease, status="cancelled")
        await crew.boss.update(1, status="accepted")  # a person says that it begins anew
        await ann.update(1, await ann.claim(1), status="in_review")
        assert (await bob.review(1)).agent_id == "bob"

    act(story)


def test_wk_r5_an_author_that_is_the_reviewer_by_an_older_rule_merges_nothing(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await hands_it_on_in_review(crew, ann, bob)
        session = ann.session or ""

        def let_ann_review(tx: Tx) -> None:
            found = tasks.find(tx, bob.room, 1)
            assert found is not None
            reviews.claim(tx, found, LeaseId("old"), AgentId("ann"), session, None)

        await crew.bed.core.store.write(let_ann_review)
        assert (await crew.person.show(1)).review is not None
        steps = (ann.review(1), ann.update(1, status="merged"))
        await all_refused(steps, "self-review", "access-denied")
        assert (await crew.person.show(1)).status == "in_review"
        await ann.end_review(1)

    act(story)


def test_wk_r5_the_operator_merges_whoever_did_the_work(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress", "in_review")
        assert (await crew.boss.update(1, lease, status="merged")).status == "merged"

    act(story)


@pytest.mark.parametrize("loses_it", [False, True])
def test_wk_r2_who_worked_under_its_name_alone_reviews_nothing_of_it(
    act: PlayCrew, *, loses_it: bool
) -> None:
    """A name that nobody has filled in lets its agent work, so it makes an author (WK-T10)."""

    async def story(crew: Crew) -> None:
        bare = Worker(crew.bed, "ann", None)
        bob = await crew.hire("bob")
        await crew.person.ready()
        await crew.boss.update(1, status="assigned", label="ann")
        await bare.update(1, status="in_progress")
        if loses_it:
            await crew.boss.force(1, no_lease=True)
            await bob.update(1, await bob.claim(1), status="in_review")
        else:
            await bare.update(1, status="in_review")
        ann = await crew.hire("ann")
        await all_refused([ann.review(1)], "self-review", "access-denied")
        assert (await (await crew.hire("cat")).review(1)).agent_id == "cat"

    act(story)
