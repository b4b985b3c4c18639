"""What comes twice, late, or after the thing is gone: one effect, and a true answer (WK-T6)."""

from __future__ import annotations

import msgspec
import pytest

from tests.hub.work.crew import Crew, PlayCrew, refused
from tfx.hub.wire import leases


def test_wk_t6_a_key_gives_its_task_when_what_it_waits_for_was_deleted(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await ann.add("first")
        made = await ann.add("second", client_key="K", blocked_by=[1], parent=1)
        await crew.boss.delete(1)
        again = await ann.add("second", client_key="K", blocked_by=[1], parent=1)
        assert again.task == made.task
        with refused("idempotency-conflict"):
            await ann.add("second", client_key="K", blocked_by=[1])

    act(story)


@pytest.mark.parametrize("key", ["client_key", "op_id"])
def test_wk_t6_a_task_that_was_deleted_is_not_told_as_made(act: PlayCrew, key: str) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await ann.ready("one", **{key: "K"})
        await crew.boss.delete(1)
        with refused("unknown-task", "not-found"):
            await ann.ready("one", **{key: "K"})
        assert crew.bed.rows("SELECT count(*) FROM tasks") == [(1,)]

    act(story)


def test_wk_k1_a_lock_asked_for_again_is_the_same_or_said_to_be_gone(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.ready()
        made = await crew.boss.lock(1, op_id="lock")
        assert await crew.boss.lock(1, op_id="lock") == made
        with refused("idempotency-conflict"):
            await crew.boss.lock(None, op_id="lock")
        with refused("lock-active"):
            await crew.boss.lock(1, note="another note")
        cleared = [
            (await crew.boss.ask("work_unlock", leases.LockClearResult, task=1, op_id="go")).cleared
            for _ in range(2)
        ]
        assert cleared == [made, made]
        with refused("stale"):
            await crew.boss.lock(1, op_id="lock")
        assert (await crew.person.show(1)).ready

    act(story)


def test_wk_k1_a_lock_goes_with_its_deleted_task(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.ready()
        await crew.boss.lock(1)
        await crew.boss.delete(1)
        assert (await crew.person.board()).locks == ()

    act(story)


def test_wk_r4_the_end_of_a_review_asked_for_again_tells_the_same(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_review")
        review = await bob.review(1)
        ended = [await bob.end_review(1, op_id="end") for _ in range(2)]
        assert ended[0] == ended[1]
        assert ended[0] is not None
        assert (ended[0].review_id, ended[0].state.value) == (review.review_id, "released")

    act(story)


def test_wk_l14_what_is_attached_again_as_something_else_becomes_that(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        await ann.attach("link", "work/1", lease, task=1)
        made = await ann.attach("branch", "work/1", lease, task=1)
        assert [(each.kind, each.identity) for each in made.artifacts] == [("branch", "work/1")]
        assert made.branch == "work/1"
        await ann.attach("branch", "work/2", lease, task=1)
        back = await ann.attach("branch", "work/1", lease, task=1)
        assert (back.branch, len(back.artifacts)) == ("work/1", 2)
        assert (await ann.attach("branch", "work/1", lease, task=1)).revision == back.revision

    act(story)


def test_wk_d5_a_task_that_only_a_name_has_is_forced_free(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.ready()
        await crew.boss.update(1, status="assigned", label="Bob")
        freed = await crew.boss.force(1, no_lease=True)
        assert (freed.released, freed.task.status.value) == (None, "accepted")
        assert freed.task.assignee is None

    act(story)


def test_h_31_a_task_with_many_artifacts_shows_the_newest_and_counts_all(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        for number in range(50):
            shown = await ann.attach("file", f"/{number}/" + "y" * 400, lease, task=1)
        assert (len(shown.artifacts), shown.artifacts_total) == (5, 50)
        shown = await ann.show(1)
        assert (len(shown.artifacts), shown.artifacts_total) == (20, 50)
        assert shown.artifacts[-1].identity.startswith("/49/")
        assert len(msgspec.json.encode(shown)) < 16 * 1024
        await ann.attach("file", "/0/" + "y" * 400, lease, task=1)
        assert (await ann.show(1)).artifacts_total == 50

    act(story)
