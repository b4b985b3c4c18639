"""Every change of a leased task is fenced by (lease id, epoch) (work.md §3: mutation fence)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import ROOM, Crew, PlayCrew, all_refused, later, refused, stated
from tfx.errors import TfxError


def test_wk_l9_a_stated_lease_that_is_not_the_active_one_is_refused(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        old = await crew.owned(ann)
        await ann.release(1, old)
        new = await ann.claim(1)
        before = crew.last_seq()
        with refused("lease-lost", "state-conflict") as error:
            await ann.update(1, old, status="in_progress")
        assert (error.value.details["state"], error.value.details["reason"]) == (
            *("released", "released"),
        )
        assert error.value.details["successor"] in {None, new.lease_id}
        for wrong in (
            {"lease_id": new.lease_id, "epoch": 0},
            {"lease_id": new.lease_id, "epoch": 2},
            {"lease_id": "no-such-lease", "epoch": 1},
            {"no_lease": True},
        ):
            with refused("lease-changed", "state-conflict"):
                await ann.update(1, **wrong, status="in_progress")
        changed = {kind for kind, _, _ in crew.log()[before:]}
        assert changed <= {"claim_denied"}
        assert (await ann.update(1, new, status="in_progress")).status == "in_progress"

    act(story)


def test_wk_l9_from_some_lease_to_none_is_a_difference(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        old = await crew.owned(ann)
        await ann.release(1, old)
        steps = (
            ann.update(1, old, title="mine"),
            ann.release(1, old),
            ann.handoff(1, "ann", old),
            ann.attach("file", "a.py", old, task=1),
        )
        await all_refused(steps, "lease-lost", "state-conflict")
        assert (await ann.show(1)).title == "do it"

    act(story)


def test_wk_l9_the_hub_compares_what_it_saw_where_nothing_was_stated(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        await crew.person.ready()
        async with crew.bed.writer_held():
            forcing = await later(crew, crew.boss.force(1, lease))
            some_to_none = await later(crew, ann.update(1, title="mine"))
            claiming = await later(crew, ann.claim(2))
            none_to_some = await later(crew, bob.bare.update(2, title="mine"))
            by_nobody = await later(crew, crew.person.update(2, title="mine"))
        await forcing
        await claiming
        with refused("lease-lost", "state-conflict"):  # it ended after the hub had seen it
            await some_to_none
        steps = (none_to_some, by_nobody)
        await all_refused(steps, "lease-changed", "state-conflict")
        assert {(await ann.show(task)).title for task in (1, 2)} == {"do it"}

    act(story)


def test_wk_l9_a_lease_replaced_by_its_own_holder_is_another_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        async with crew.bed.writer_held():
            releasing = await later(crew, ann.release(1, lease))
            claiming = await later(crew, ann.claim(1))
            unstated = await later(crew, ann.update(1, title="mine"))
        await releasing
        assert (await claiming).epoch == 1
        with refused("lease-lost", "state-conflict"):
            await unstated

    act(story)


def test_wk_l9_a_revision_that_was_seen_is_compared_too(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        task = await crew.person.add()
        moved = await crew.person.update(1, title="b", expect=task.revision)
        with refused("stale", "state-conflict"):
            await crew.person.update(1, title="c", expect=task.revision)
        assert (await crew.person.update(1, title="c", expect=moved.revision)).title == "c"

    act(story)


def test_wk_l10_a_task_that_another_has_leased_is_not_changed(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        for who in (bob, bob.bare, ann.bare):
            for fields in ({"title": "mine"}, {"status": "blocked"}, {"pr": "x/1"}):
                with refused("lease-holder", "access-denied") as error:
                    await who.update(1, lease, **fields)
                held = {"holder": "ann", "lease_id": lease.lease_id, "epoch": 0}
                assert error.value.details.items() >= held.items()
        steps = (bob.release(1, lease), bob.handoff(1, "bob", lease))
        await all_refused(steps, "lease-holder", "access-denied")
        seen = await ann.show(1)
        assert (seen.lease, seen.title, seen.status) == (lease, "do it", "in_progress")

    act(story)


def test_wk_l10_the_reviewer_may_move_what_it_reviews(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await crew.owned(ann, "in_progress", "in_review")
        with refused("lease-holder"):
            await bob.update(1, status="in_progress", note="no tests")
        await bob.review(1)
        with refused("lease-holder"):
            await cat.update(1, status="in_progress")
        with refused("lease-holder"):
            await bob.bare.update(1, status="in_progress")
        back = await bob.update(1, lease, status="in_progress", note="no tests")
        assert (back.status, back.note, back.lease) == ("in_progress", "no tests", lease)
        with pytest.raises(TfxError) as error:
            await bob.update(1, status="blocked")
        assert error.value.reason in {"lease-holder", "lease-kind"}

    act(story)


def test_wk_l11_an_old_assignment_is_no_authority(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for status in ("assigned", "in_progress", "in_review"):
            task = await crew.assigned("ann", status=status)
            with refused("lease-missing", "state-conflict") as error:
                await ann.update(task, title="mine")
            assert "claim" in f"{error.value.message} {error.value.hint}"
        with refused("lease-missing"):
            await ann.attach("file", "a.py", task=1)
        lease = await ann.claim(1)
        assert (await ann.update(1, lease, title="mine")).title == "mine"
        free = await ann.ready()
        assert (await ann.update(free.task, title="ours")).title == "ours"

    act(story)


def test_wk_l12_only_claim_and_handoff_change_the_assignee_of_leased_work(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        for who in (ann, crew.boss):
            with pytest.raises(TfxError) as error:
                await who.update(1, lease, assignee="bob")
            assert "handoff" in f"{error.value.message} {error.value.hint}"
        assert (await ann.show(1)).lease == lease
        free = await crew.person.ready()
        with pytest.raises(TfxError):
            await bob.update(free.task, assignee="cat")
        assert (await ann.show(free.task)).assignee is None

    act(story)


def test_wk_l13_nobody_changes_a_leased_task(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        person = crew.person
        steps = (
            person.update(1, title="mine"),
            person.update(1, lease, status="in_progress"),
            person.release(1, lease),
            person.handoff(1, "ann", lease),
            person.attach("file", "a.py", lease, task=1),
        )
        await all_refused(steps, "actor-missing")
        seen = await ann.show(1)
        assert (seen.lease, seen.artifacts, seen.title) == (lease, (), "do it")

    act(story)


def test_wk_l14_an_artifact_of_a_leased_task_obeys_the_fence(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, branch="feature")
        for fields in ({"task": 1}, {}):
            with refused("lease-holder", "access-denied"):
                await bob.attach("branch", "feature", **fields)
        with refused("actor-missing"):
            await crew.person.attach("branch", "feature")
        stale = {**stated(lease), "epoch": 7}
        with refused("lease-changed"):
            await ann.attach("branch", "feature", **stale)
        assert (await ann.show(1)).artifacts == ()
        seen = await ann.attach("branch", "feature", lease)
        assert [(each.kind, each.identity) for each in seen.artifacts] == [("branch", "feature")]
        assert seen.artifacts[0].attached_by == "ann"
        with refused("task-needed", "invalid-request"):
            await ann.attach("pr", "linked/to/nothing")

    act(story)


def test_wk_l14_what_is_attached_becomes_the_tasks_own_branch_and_pr(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        await ann.attach("branch", "work/1", lease, task=1)
        await ann.attach("pr", "https://example.org/pr/7", lease, task=1)
        seen = await ann.attach("file", "docs/plan.md", lease, task=1)
        assert (seen.branch, seen.pr) == ("work/1", "https://example.org/pr/7")
        assert len(seen.artifacts) == 3
        count = len(crew.log("artifact_attached"))
        again = await ann.attach("file", "docs/plan.md", lease, task=1)
        assert again.artifacts == seen.artifacts
        assert len(crew.log("artifact_attached")) == count

    act(story)


@pytest.mark.parametrize(
    "fault", ["BEFORE INSERT ON artifacts", "AFTER INSERT ON artifacts", "BEFORE UPDATE ON tasks"]
)
def test_wk_l14_task_and_artifact_are_stored_together_or_not_at_all(
    act: PlayCrew, fault: str
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        store, before = crew.bed.core.store, await ann.show(1)
        seq = crew.last_seq()
        sql = f"CREATE TEMP TRIGGER boom {fault} BEGIN SELECT RAISE(ABORT, 'injected'); END"
        await store.write(lambda tx: tx.all(sql))
        with refused("constraint", "operation-failed"):
            await ann.attach("pr", "https://example.org/pr/7", lease, task=1)
        assert (await ann.show(1), crew.last_seq()) == (before, seq)
        await store.write(lambda tx: tx.all("DROP TRIGGER boom"))
        assert (await ann.attach("pr", "https://example.org/pr/7", lease, task=1)).pr is not None

    act(story)


def test_wk_l9_a_fence_of_another_task_opens_nothing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        other = await crew.owned(ann)
        with refused("lease-changed", "state-conflict"):
            await ann.update(1, other, title="mine")
        assert other.room == ROOM

    act(story)


@pytest.mark.parametrize("supervised", [True, False])
def test_wk_l8_what_comes_with_an_assignment_is_kept(act: PlayCrew, *, supervised: bool) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        who = ann if supervised else ann.bare
        await crew.person.ready()
        fields = {"note": "on it", "title": "clearer", "branch": "work/1"}
        seen = await who.update(1, status="assigned", assignee="ann", **fields)
        assert (seen.status, seen.note, seen.title, seen.branch) == (
            *("assigned", "on it", "clearer", "work/1"),
        )
        assert (seen.lease is not None) == supervised
        await crew.person.ready(branch="taken")
        await crew.person.ready()
        with refused("duplicate-work"):
            await who.update(3, status="assigned", assignee="ann", branch="taken")
        third = await crew.person.show(3)
        assert (third.status, third.lease, third.assignee) == ("accepted", None, None)

    act(story)
