"""Who may claim, and what a claim makes (work.md §3: authority, claim)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.hub.work.crew import ELSEWHERE, HOUR_MS, Crew, PlayCrew, Worker, later, refused
from tfx.errors import TfxError

AUTHORITY = {"access-denied", "authentication-required"}


async def denied(crew: Crew, worker: Worker, task: int = 1) -> TfxError:
    """Let a worker try every way to a lease; return how the last was refused."""
    with pytest.raises(TfxError):
        await worker.take_next()
    with pytest.raises(TfxError) as error:
        await worker.claim(task)
    assert error.value.kind.value in AUTHORITY, error.value.reason
    assert crew.active() == []
    return error.value


def test_wk_a1_a_claim_needs_agent_and_session(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        await denied(crew, ann.bare)
        assert (await denied(crew, crew.person)).reason == "actor-missing"
        assert (await denied(crew, crew.boss)).reason == "actor-missing"
        await denied(crew, Worker(crew.bed, None, ann.session))
        assert (await ann.claim(1)).agent_id == "ann"

    act(story)


def test_wk_a2_the_session_must_be_unended_and_the_agents_own(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        assert (await denied(crew, Worker(crew.bed, "ann", bob.session))).reason in {
            *("authority-ended", "actor-invalid", "actor-mismatch"),
        }
        again = await crew.hire("ann")  # from another process: the first life has ended
        assert (await denied(crew, ann)).reason == "authority-ended"
        await again.leave()
        assert (await denied(crew, again)).reason == "authority-ended"

    act(story)


def test_wk_a2_an_agent_works_in_its_own_room_only(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        stranger = await crew.hire("eve", room=ELSEWHERE)
        here = Worker(crew.bed, "eve", stranger.session)
        await crew.person.ready()
        assert (await denied(crew, here)).reason == "foreign-room"
        with refused("foreign-room", "access-denied"):
            await here.update(1, title="mine")
        with refused("foreign-room", "access-denied"):
            await here.add()
        without_room = Worker(crew.bed, "eve", stranger.session, room=None)  # type: ignore[arg-type]
        assert (await without_room.add()).room == ELSEWHERE

    act(story)


def test_a_room_is_needed_and_is_that_of_the_agent_when_left_out(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        nowhere = Worker(crew.bed, None, None, room=None)  # type: ignore[arg-type]
        with refused("room-needed", "invalid-request"):
            await nowhere.add()
        with refused("room-needed", "invalid-request"):
            await nowhere.board()
        homely = Worker(crew.bed, "ann", ann.session, room=None)  # type: ignore[arg-type]
        assert (await homely.ready()).task == 1
        assert (await homely.claim(1)).room == ann.room

    act(story)


def test_wk_a3_a_session_that_the_hub_does_not_know_is_refused(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.hire("ann")
        await crew.person.ready()
        for name in ("ann", "never-seen"):
            unknown = Worker(crew.bed, name, "no-such-session")
            assert (await denied(crew, unknown)).reason in {"authority-ended", "actor-invalid"}
            with pytest.raises(TfxError) as error:
                await unknown.update(1, title="mine")
            assert error.value.kind.value == "access-denied"

    act(story)


def test_wk_a4_an_unsupervised_worker_changes_unleased_tasks_and_mints_no_lease(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        task = await ann.bare.ready()
        await ann.bare.update(task.task, title="clearer", note="seen")
        assigned = await ann.bare.update(task.task, status="assigned", assignee="ann")
        assert assigned.assignee is not None
        assert (assigned.assignee.agent_id, assigned.lease) == ("ann", None)
        for status in ("in_progress", "in_review", "done"):
            assert (await ann.bare.update(task.task, status=status)).status == status
        assert crew.bed.rows("SELECT * FROM work_leases") == []

    act(story)


def test_wk_a4_the_end_of_a_session_touches_no_lease_that_is_not_its_own(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(bob)
        by_hand = await crew.assigned("ann", status="in_progress")
        before = await crew.person.show(by_hand)
        await ann.leave()
        assert await crew.person.show(by_hand) == before
        assert (await crew.person.show(1)).lease == lease

    act(story)


def test_wk_a5_authority_is_checked_again_inside_the_transaction(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await crew.owned(bob)
        async with crew.bed.writer_held():
            leaving = await later(crew, ann.leave())
            claiming = await later(crew, ann.claim(1))
            going = await later(crew, bob.leave())
            updating = await later(crew, bob.update(2, lease, title="mine"))
        await leaving
        await going
        for each in (claiming, updating):
            with refused("authority-ended", "access-denied"):
                await each
        assert crew.active() == []
        assert (await crew.person.show(2)).title == "do it"

    act(story)


def test_wk_l1_a_claim_expires_what_is_due_first(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        await ann.claim(1, ttl_ms=60_000)
        crew.clock.pass_ms(59_999)
        with refused("held"):
            await bob.claim(1)
        crew.clock.pass_ms(1)  # expires ≤ now, and no sweep has run
        lease = await bob.claim(1)
        assert (lease.epoch, lease.agent_id) == (1, "bob")
        assert [row[:3] for row in crew.leases(1)] == [(0, "ann", "expired"), (1, "bob", "active")]
        kinds = [kind for kind, _, _ in crew.log(task=1)]
        assert [kind for kind in kinds if kind.startswith("work_")] == [
            *("work_claimed", "work_expired", "work_claimed"),
        ]

    act(story)


def test_wk_l2_claiming_again_returns_the_same_row_byte_for_byte(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        first = await ann.claim(1, ttl_ms=HOUR_MS, label="Ann", worktree="/w", instance="i")
        await ann.update(1, first, status="in_progress")
        assert (await ann.beat(1)).accepted
        crew.clock.pass_ms(5_000)
        row = crew.bed.rows("SELECT * FROM work_leases")
        pulse, seq = crew.bed.rows("SELECT * FROM pulses"), crew.last_seq()
        seen = (await crew.person.show(1)).lease
        for fields in ({}, {"ttl_ms": 2 * HOUR_MS}, {"label": "Else", "worktree": "/else"}):
            again = await ann.claim(1, **fields)
            assert msgspec.json.encode(again) == msgspec.json.encode(seen)
        assert crew.bed.rows("SELECT * FROM work_leases") == row
        assert (crew.bed.rows("SELECT * FROM pulses"), crew.last_seq()) == (pulse, seq)

    act(story)


def test_wk_l3_a_lease_of_anyone_else_is_a_conflict(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        held = {"holder": "ann", "lease_id": lease.lease_id, "epoch": 0}
        with refused("held", "state-conflict") as error:
            await bob.claim(1)
        assert error.value.details.items() >= held.items()
        assert "handoff" in (error.value.hint or "")
        # Another session of the same key can only be there if its end went unseen: force it.
        sql = "UPDATE agents SET session = 'another-life' WHERE id = 'ann'"
        await crew.bed.core.store.write(lambda tx: tx.all(sql))
        with refused("held", "state-conflict") as error:
            await Worker(crew.bed, "ann", "another-life").claim(1)
        assert error.value.details.items() >= held.items()
        assert crew.leases(1) == [(0, "ann", "active", None)]
        back = f"UPDATE agents SET session = '{ann.session}' WHERE id = 'ann'"
        await crew.bed.core.store.write(lambda tx: tx.all(back))

    act(story)


def test_wk_l4_a_fresh_claim_needs_an_accepted_task_that_is_nobodys_or_mine(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, person = await crew.hire("ann"), crew.person
        await person.add()
        await person.ready()
        await person.update(2, status="cancelled")
        await person.ready()
        await person.update(3, status="assigned", assignee="ann")
        await person.update(3, status="in_progress")
        await person.update(3, status="done")
        for task, status in ((1, "proposed"), (2, "cancelled"), (3, "done")):
            with refused("bad-status", "state-conflict") as error:
                await ann.claim(task)
            assert status in error.value.message
        with refused("unknown-task", "not-found"):
            await ann.claim(99)
        await person.ready()
        assert (await ann.claim(4)).epoch == 0
        assert (await person.show(4)).status == "assigned"

    act(story)


@pytest.mark.parametrize("status", ["assigned", "in_progress", "in_review", "blocked"])
def test_wk_l4_a_reclaim_keeps_the_status_and_is_for_the_assignee_alone(
    act: PlayCrew, status: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        task = await crew.assigned("ann")
        for step in {"blocked": ("in_progress", "blocked"), "assigned": ()}.get(status, (status,)):
            await crew.person.update(task, status=step)
        with pytest.raises(TfxError) as error:
            await bob.claim(task)
        assert error.value.kind.value in {"state-conflict", "access-denied"}
        assert crew.active() == []
        assert (await ann.claim(task)).epoch == 0
        assert (await crew.person.show(task)).status == status

    act(story)


def test_wk_l5_a_lease_gets_the_next_epoch_a_new_id_and_no_expiry(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        made = [lease]
        now = crew.clock.now_ms()
        assert (lease.epoch, lease.created_at_ms, lease.last_beat_ms) == (0, now, now)
        assert (lease.ttl_ms, lease.expires_at_ms, lease.ended_at_ms) == (None, None, None)
        assert crew.bed.rows("SELECT created_at_ms, updated_at_ms FROM work_leases") == [(now, now)]
        for worker in (bob, ann, ann):
            released = (await Worker(crew.bed, lease.agent_id, lease.session).release(1)).released
            assert released is not None
            crew.clock.pass_ms(10)
            lease = await worker.claim(1)
            made.append(lease)
        await crew.boss.force(1, lease)
        made.append(await bob.claim(1, ttl_ms=60_000))
        crew.clock.pass_ms(60_000)
        made.append(await ann.claim(1))
        assert [each.epoch for each in made] == [0, 1, 2, 3, 4, 5]
        assert len({each.lease_id for each in made}) == 6

    act(story)


def test_wk_l6_a_claim_writes_all_four_fields_of_the_assignee(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        task = await crew.assigned("ann")
        before = (await crew.person.show(task)).assignee
        assert before is not None
        assert before.session is None
        await ann.claim(task, label="Ann B.", instance="i-1")
        after = (await crew.person.show(task)).assignee
        assert after is not None
        assert (after.label, after.agent_id, after.instance, after.session) == (
            *("Ann B.", "ann", "i-1", ann.session),
        )

    act(story)


def test_wk_l7_of_many_claims_one_succeeds_and_one_row_is_there(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        crowd = [await crew.hire(f"agent-{n}") for n in range(16)]
        await crew.person.ready()
        answers = await asyncio.gather(*(each.claim(1) for each in crowd), return_exceptions=True)
        (won,) = [each for each in answers if not isinstance(each, BaseException)]
        lost = [each for each in answers if isinstance(each, TfxError)]
        assert [each.reason for each in lost] == ["held"] * 15
        assert {each.details["holder"] for each in lost} == {won.agent_id}
        assert crew.leases(1) == [(0, won.agent_id, "active", None)]

    act(story)


def test_wk_l8_setting_assigned_is_a_claim(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for fields in ({}, {"assignee": "ann"}):
            task = await ann.ready()
            taken = await ann.update(task.task, status="assigned", **fields)
            assert taken.lease is not None
            assert (taken.status, taken.lease.agent_id, taken.lease.session) == (
                *("assigned", "ann", ann.session),
            )
            assert taken.lease == await ann.claim(task.task)
        task = await ann.ready()
        with pytest.raises(TfxError) as error:
            await ann.update(task.task, status="assigned", assignee="bob")
        assert "handoff" in f"{error.value.message} {error.value.hint}"
        assert (await ann.show(task.task)).status == "accepted"

    act(story)
