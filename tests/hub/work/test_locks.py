"""Locks of rooms and tasks, and the order in which a decision is made (WK-K1, K3, K4, K6)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import ELSEWHERE, Crew, PlayCrew, Worker, all_refused, refused
from tfx.errors import TfxError


@pytest.mark.parametrize("scope", ["room", "task"])
def test_wk_k1_a_lock_stops_claims_and_changes_until_it_is_cleared(
    act: PlayCrew, scope: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, person = await crew.hire("ann"), await crew.hire("bob"), crew.person
        lease = await crew.owned(ann, "in_progress")
        reviewed = await crew.owned(ann, "in_review")
        await person.ready()
        tasks = (1, 2, 3) if scope == "task" else (None,)
        made = [await crew.boss.lock(task, note="stop") for task in tasks]
        steps = (
            ann.update(1, lease, title="mine"),
            ann.attach("file", "a.py", lease, task=1),
            ann.handoff(1, "bob", lease),
            bob.review(2),
            ann.claim(3),
            person.update(3, status="assigned", assignee="ann"),
        )
        await all_refused(steps, "lock-active", "state-conflict")
        with refused("lock-active" if scope == "room" else "nothing-ready"):
            await bob.take_next()
        if scope == "room":
            with refused("lock-active"):
                await person.add()
            assert [each.task for each in made] == [None]
        assert (await ann.show(1)).locks == (made[0],)
        assert not (await ann.show(3)).ready
        for task, lock in zip(tasks, made, strict=True):
            assert (await crew.boss.unlock(task)) == lock
            assert await crew.boss.unlock(task) is None
        assert (await ann.update(1, lease, title="mine")).title == "mine"
        assert (await bob.review(reviewed.task)).agent_id == "bob"
        assert (await bob.take_next()).task.task == 3

    act(story)


def test_wk_k1_a_task_lock_stops_its_task_alone_and_a_room_lock_its_room_alone(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        eve = await crew.hire("eve", room=ELSEWHERE)
        await crew.person.ready()
        await crew.person.ready()
        await crew.boss.lock(1)
        assert (await ann.take_next()).task.task == 2
        await crew.person.add()
        await crew.boss.lock()
        assert (await eve.claim((await eve.ready()).task)).agent_id == "eve"

    act(story)


@pytest.mark.parametrize(
    "reason", ["human_stop", "duplicate", "manager_pause", "revoked", "policy"]
)
def test_wk_k1_a_lock_has_one_of_five_reasons_and_is_the_operators(
    act: PlayCrew, reason: str
) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.ready()
        lock = await crew.boss.lock(1, reason=reason, note="why")
        assert (lock.reason, lock.note, lock.task, lock.set_by) == (reason, "why", 1, "operator")
        with pytest.raises(Exception, match="mood"):
            await crew.boss.lock(1, reason="mood")
        again = await crew.boss.lock(1, reason=reason, note="why")
        assert again.lock_id == lock.lock_id
        assert len(crew.log("lock_set")) == 1

    act(story)


def test_wk_k1_the_operator_frees_what_is_locked(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        await crew.boss.lock()
        done = await crew.boss.force(1, lease)
        assert done.task.status == "accepted"
        assert not done.task.ready

    act(story)


def test_wk_k1_the_order_is_lock_actor_lease_kind_holder_missing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await crew.owned(ann, "in_progress", "in_review")
        await bob.review(1)
        wrong = {"lease_id": lease.lease_id, "epoch": 9}
        dead = Worker(crew.bed, "ann", "no-such-session")
        await crew.boss.lock(1)
        with refused("lock-active"):
            await dead.handoff(1, "bob", **wrong)  # everything is wrong: the lock is told
        await crew.boss.unlock(1)
        with refused("actor-invalid"):
            await dead.handoff(1, "bob", **wrong)
        for who in (bob, cat):
            with refused("lease-changed"):
                await who.release(1, **wrong)
        with refused("lease-kind"):
            await bob.release(1, lease)
        with refused("lease-holder"):
            await cat.release(1, lease)
        await ann.release(1, lease)
        with refused("lease-missing"):
            await ann.release(1)

    act(story)


def test_wk_k3_a_lease_matches_key_and_session(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, instance="i-1")
        for who in (bob, ann.bare, bob.bare):
            with refused("lease-holder"):
                await who.update(1, lease, title="mine")
        assert (await ann.update(1, lease, title="mine")).lease == lease

    act(story)


def test_wk_k4_each_change_is_guarded_as_what_it_is(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        waiting = await crew.assigned("ann")
        steps = [
            bob.claim(waiting),
            bob.update(1, lease, status="in_review"),
            bob.update(1, lease, pr="o/r/7"),
            bob.attach("file", "a.py", lease, task=1),
            bob.update(1, lease, status="blocked"),
        ]
        for step in steps:
            with pytest.raises(TfxError):
                await step
            crew.clock.pass_ms(60_000)  # the same refusal within a minute is counted only
        verbs = [body["verb"] for _, _, body in crew.log("claim_denied")]
        assert verbs == ["claim", "complete", "attach", "attach", "update"]

    act(story)


def test_wk_k6_a_refusal_is_an_event_of_the_task_though_the_call_fails(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        lock = await crew.boss.lock((await crew.person.ready()).task)
        with refused("held"):
            await bob.claim(1)
        with refused("lock-active"):
            await ann.claim(2)
        with refused("lease-holder"):
            await bob.release(1, lease)
        with refused("actor-invalid"):
            await Worker(crew.bed, "bob", "no-such-session").claim(1)
        (held, by), (locked, to), (foreign, who), (strange, hub) = [
            (body, actor) for _, actor, body in crew.log("claim_denied")
        ]
        assert (strange["code"], strange["agent"], strange["session"], hub) == (
            *("actor-invalid", "bob", "no-such-session", "hub:hub"),
        )
        assert (by, held["agent"], held["session"]) == ("bob", "bob", bob.session)
        assert (held["code"], held["lease"], held["verb"]) == ("held", lease.lease_id, "claim")
        assert "ann" in held["reason"]
        assert (to, locked["code"], locked["lock"]) == ("ann", "lock-active", lock.lock_id)
        assert (who, foreign["code"], foreign["lease"]) == ("bob", "lease-holder", lease.lease_id)
        assert [kind for kind, _, _ in crew.log(task=1)][-3:] == ["claim_denied"] * 3
        assert [kind for kind, _, _ in crew.log(task=2)][-1] == "claim_denied"

    act(story)


def test_wk_k6_what_is_allowed_is_an_event_with_actor_lease_and_reason(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        onward = (await ann.handoff(1, "bob", lease, reason="yours")).lease
        await bob.release(1, onward, reason="lunch")
        await ann.claim(1)
        seen = [(kind, actor) for kind, actor, _ in crew.log(task=1) if kind != "task_created"]
        assert seen == [
            ("work_claimed", "ann"),
            ("task_moved", "ann"),
            ("work_handed_off", "ann"),
            ("work_released", "bob"),
            ("work_claimed", "ann"),
        ]
        ((_, _, handed),) = crew.log("work_handed_off")
        assert (handed["evicted"], handed["lease"], handed["reason"]) == (
            *(lease.lease_id, onward.lease_id, "yours"),
        )
        ((_, _, freed),) = crew.log("work_released")
        assert (freed["lease"], freed["reason"]) == (onward.lease_id, "lunch")

    act(story)
