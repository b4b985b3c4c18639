"""Review leases: one reviewer, never the author (work.md §4, WK-D7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.hub.work.crew import Crew, PlayCrew, Worker, all_refused, later, refused
from tfx.errors import TfxError


async def in_review(crew: Crew, author: Worker) -> int:
    return (await crew.owned(author, "in_progress", "in_review")).task


def test_wk_r1_one_reviewer_at_a_time(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        task = await in_review(crew, ann)
        review = await bob.review(task)
        assert (review.agent_id, review.session) == ("bob", bob.session)
        with refused("held", "state-conflict") as error:
            await cat.review(task)
        assert "bob" in error.value.message
        assert (await cat.show(task)).review == review
        await bob.end_review(task, review_id=review.review_id)
        assert (await cat.show(task)).review is None
        assert (await cat.review(task)).review_id != review.review_id

    act(story)


def test_wk_r1_of_many_reviewers_at_once_one_wins(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        task = await in_review(crew, await crew.hire("ann"))
        crowd = [await crew.hire(f"agent-{n}") for n in range(8)]
        answers = await asyncio.gather(*(w.review(task) for w in crowd), return_exceptions=True)
        lost = [each.reason for each in answers if isinstance(each, TfxError)]
        assert lost == ["held"] * 7
        assert len(crew.bed.rows("SELECT * FROM review_leases")) == 1

    act(story)


@pytest.mark.parametrize("status", ["proposed", "assigned", "in_progress", "merged", "done"])
def test_wk_r1_only_what_is_in_review_is_reviewed(act: PlayCrew, status: str) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        if status == "proposed":
            await crew.person.add()
        elif status == "merged":
            await bob.review(await in_review(crew, ann))
            await bob.update(1, status="merged")
        else:
            steps = {"assigned": (), "in_progress": ("in_progress",)}
            await crew.owned(ann, *steps.get(status, ("in_progress", "done")))
        with refused("bad-status", "state-conflict"):
            await bob.review(1)

    act(story)


def test_wk_r2_nobody_reviews_its_own_work_in_any_session(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        task = await in_review(crew, ann)
        with refused("self-review", "access-denied"):
            await ann.review(task)
        await ann.leave()
        again = await crew.hire("ann")  # the assignee stays, and a session is no disguise
        with refused("self-review", "access-denied"):
            await again.review(task)
        with pytest.raises(TfxError):
            await again.bare.review(task)
        assert crew.bed.rows("SELECT * FROM review_leases") == []

    act(story)


def test_wk_r2_a_reviewer_that_becomes_the_author_reviews_no_more(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        task = await in_review(crew, ann)
        await bob.review(task)
        try:
            await ann.handoff(task, "bob")
        except TfxError as error:
            assert error.reason == "self-review"  # noqa: PT017  (refusing it is as good)
        seen = await crew.person.show(task)
        assert seen.assignee is not None
        assert seen.review is None or seen.review.agent_id != seen.assignee.agent_id

    act(story)


def test_wk_r3_the_same_key_claims_again_and_gets_the_same_review(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        task = await in_review(crew, ann)
        first = await bob.review(task)
        crew.clock.pass_ms(1_000)
        seq = crew.last_seq()
        assert await bob.review(task) == first
        assert crew.last_seq() == seq

    act(story)


def test_wk_r4_a_wrong_id_is_an_error_and_nothing_held_is_none(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        task = await in_review(crew, ann)
        assert await bob.end_review(task) is None
        review = await bob.review(task)
        with pytest.raises(TfxError) as error:
            await bob.end_review(task, review_id="no-such-review")
        assert error.value.kind.value in {"state-conflict", "not-found", "access-denied"}
        with pytest.raises(TfxError):
            await cat.end_review(task, review_id=review.review_id)
        assert (await bob.show(task)).review == review
        await bob.end_review(task)
        assert (await bob.show(task)).review is None
        assert await bob.end_review(task) is None

    act(story)


def test_wk_r5_a_review_is_no_right_to_do_the_work(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress", "in_review")
        await bob.review(1)
        steps = (
            bob.release(1, lease),
            bob.handoff(1, "bob", lease),
            bob.attach("file", "a.py", lease, task=1),
        )
        await all_refused(steps, "lease-kind", "access-denied")
        with refused("held", "state-conflict"):
            await bob.claim(1)
        assert (await ann.show(1)).lease == lease

    act(story)


def test_wk_r5_a_merge_needs_a_reviewer_who_is_not_the_holder(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress", "in_review")
        with pytest.raises(TfxError) as error:
            await ann.update(1, lease, status="merged")
        assert error.value.kind.value in {"access-denied", "state-conflict"}
        assert (await ann.show(1)).status == "in_review"
        await bob.review(1)
        with pytest.raises(TfxError):
            await ann.update(1, lease, status="merged")
        merged = await bob.update(1, lease, status="merged")
        assert (merged.status, merged.lease, merged.review) == ("merged", None, None)
        assert [row[:3] for row in crew.leases(1)] == [(0, "ann", "revoked")]
        assert (await bob.update(1, status="done")).status == "done"
        unleased = await crew.assigned("ann", status="in_review")
        for who in (crew.person, bob.bare):
            with refused("review-missing", "state-conflict"):
                await who.update(unleased, status="merged")

    act(story)


def test_wk_d7_a_review_is_claimed_inside_the_transaction(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await crew.owned(ann, "in_progress", "in_review")
        other = await crew.owned(cat, "in_progress", "in_review")
        async with crew.bed.writer_held():
            moving = await later(crew, ann.update(1, lease, status="in_progress"))
            too_late = await later(crew, bob.review(1))
            handing = await later(crew, cat.handoff(2, "bob", other))
            own_now = await later(crew, bob.review(2))
        await moving
        await handing
        with refused("bad-status"):
            await too_late
        with refused("self-review"):
            await own_now
        assert crew.bed.rows("SELECT * FROM review_leases") == []

    act(story)


def test_a_review_ends_when_its_task_leaves_review(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress", "in_review")
        await bob.review(1)
        await bob.update(1, lease, status="in_progress", note="no tests")
        assert (await ann.show(1)).review is None
        states = crew.bed.rows("SELECT status FROM review_leases")
        assert len(states) == 1
        assert states[0][0] in {"released", "revoked"}
        again = await ann.update(1, lease, status="in_review")
        assert (again.rounds, again.review) == (2, None)

    act(story)


def test_wk_d8_status_tells_a_reviewer_what_it_reviews(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_progress", "in_review")
        review = await bob.review(1)
        for found in (
            await bob.status(agent_id="bob"),
            await bob.status(room=bob.room),
            await bob.status(task=1, room=bob.room),
        ):
            assert found.reviews == (review,)
        assert (review.task, review.room) == (1, bob.room)
        assert (await ann.status(agent_id="ann")).reviews == ()

    act(story)


async def back_to_work(crew: Crew, ann: Worker, _bob: Worker) -> str:
    lease = (await ann.show(1)).lease
    await ann.update(1, lease, status="in_progress")
    assert crew.bed.rows("SELECT * FROM review_leases WHERE status = 'active'") == []
    return "verdict: in_progress"


async def gone(_crew: Crew, _ann: Worker, bob: Worker) -> str:
    await bob.leave()
    return "session ended"


async def another_life(crew: Crew, _ann: Worker, _bob: Worker) -> str:
    await crew.hire("bob")
    return "session ended"


async def released(_crew: Crew, ann: Worker, _bob: Worker) -> str:
    await ann.release(1, reason="lunch")
    return "lunch"


async def forced(crew: Crew, ann: Worker, _bob: Worker) -> str:
    await crew.boss.force(1, (await ann.show(1)).lease, reason="stuck")
    return "stuck"


async def deleted(crew: Crew, _ann: Worker, _bob: Worker) -> str:
    await crew.boss.delete(1)
    return "deleted"


async def by_the_person(crew: Crew, _ann: Worker, _bob: Worker) -> str:
    ended = await crew.boss.end_review(1, reason="too slow")
    assert ended is not None
    return "too slow"


@pytest.mark.parametrize(
    "end", [back_to_work, gone, another_life, released, forced, deleted, by_the_person]
)
def test_wk_d8_a_lost_review_is_told_with_its_reason_and_can_be_asked_about(
    act: PlayCrew, end: Callable[[Crew, Worker, Worker], Awaitable[str]]
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await in_review(crew, ann)
        review = await bob.review(1)
        assert (review.state.value, review.ended_at_ms, review.reason) == ("active", None, None)
        crew.clock.pass_ms(1_000)
        reason = await end(crew, ann, bob)
        (told,) = await bob.mail()
        assert (told["event"], told["review_id"], told["reason"]) == (
            *("review-lost", review.review_id, reason),
        )
        assert (told["task"], told["room"], told["session"]) == (1, bob.room, bob.session)
        found = await bob.status(lease_id=review.review_id)
        (ended,) = found.reviews
        assert (found.leases, ended.review_id, ended.task) == ((), review.review_id, 1)
        assert (ended.state.value, ended.reason) == ("revoked", reason)
        assert ended.ended_at_ms == crew.clock.now_ms()

    act(story)


def test_wk_d8_what_the_reviewer_ends_itself_is_no_news_to_it(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await in_review(crew, ann)
        first = await bob.review(1)
        await bob.end_review(1, reason="not mine")
        second = await bob.review(1)
        await bob.update(1, status="in_progress", note="no test")
        assert await bob.mail() == []
        for review, state in ((first, "released"), (second, "revoked")):
            (ended,) = (await bob.status(lease_id=review.review_id)).reviews
            assert ended.state.value == state
        with refused("unknown-lease", "not-found"):
            await bob.status(lease_id="never-was")

    act(story)
