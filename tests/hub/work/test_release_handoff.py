"""Giving work back and handing it on (work.md §3: release and handoff; WK-K2)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.hub.work.crew import (
    ELSEWHERE,
    HOUR_MS,
    Crew,
    PlayCrew,
    all_refused,
    later,
    refused,
    stated,
)
from tfx.errors import InvalidRequest, TfxError
from tfx.hub.operations import OPERATIONS
from tfx.hub.wire import agents


def test_wk_l15_a_release_needs_an_active_lease_its_fence_and_its_holder(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        for who in (ann, crew.person, crew.boss):
            with refused("lease-missing", "state-conflict"):
                await who.release(1)
        lease = await ann.claim(1)
        for wrong in ({"epoch": 1}, {"lease_id": "another"}):
            with refused("lease-changed", "state-conflict"):
                await ann.release(1, **{**stated(lease), **wrong})
        with refused("lease-holder", "access-denied"):
            await bob.release(1, lease)
        assert (await ann.show(1)).lease == lease
        await ann.release(1)  # neither id nor epoch has to be stated
        with refused("lease-missing"):
            await ann.release(1)

    act(story)


def test_wk_l16_a_release_frees_the_task_wholly(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for steps in ((), ("in_progress",), ("in_progress", "blocked"), ("in_review",)):
            lease = await crew.owned(ann, *steps)
            done = await ann.release(lease.task, lease, reason="lunch")
            assert done.released is not None
            assert (done.released.lease_id, done.released.state) == (lease.lease_id, "released")
            assert (done.released.reason, done.released.successor) == ("lunch", None)
            assert done.released.ended_at_ms == crew.clock.now_ms()
            assert (done.task.status, done.task.assignee, done.task.lease) == (
                *("accepted", None, None),
            )
            assert done.task.ready
            assert crew.leases(lease.task) == [(0, "ann", "released", "lunch")]
        four = "SELECT DISTINCT label, assignee, instance, session FROM tasks"
        assert crew.bed.rows(four) == [(None, None, None, None)]

    act(story)


def test_wk_l17_a_handoff_goes_to_exactly_one_live_session(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        gone = await crew.hire("gone")
        await gone.leave()
        await crew.hire("eve", room=ELSEWHERE)
        lease = await crew.owned(ann)
        for to in ("gone", "eve", "nobody-of-this-name"):
            with refused("target-unreachable", "agent-unavailable"):
                await ann.handoff(1, to, lease)
        with refused("target-not-unique", "state-conflict"):
            await ann.handoff(1, "bob", lease, to_session="another-life")
        assert crew.leases(1) == [(0, "ann", "active", None)]
        assert (await ann.show(1)).lease == lease
        done = await ann.handoff(1, "bob", lease, to_session=bob.session)
        assert (done.lease.agent_id, done.lease.session) == ("bob", bob.session)

    act(story)


def test_wk_l17_a_target_that_left_before_the_transaction_gets_nothing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        async with crew.bed.writer_held():
            leaving = await later(crew, bob.leave())
            handing = await later(crew, ann.handoff(1, "bob", lease))
        await leaving
        with refused("target-unreachable", "agent-unavailable"):
            await handing
        assert crew.active() == [(1, "ann", 0)]

    act(story)


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        ((), "assigned"),
        (("in_progress",), "in_progress"),
        (("in_progress", "blocked"), "assigned"),
        (("in_review",), "in_review"),
    ],
)
def test_wk_l18_a_handoff_ends_one_lease_and_begins_the_next_at_once(
    act: PlayCrew, steps: tuple[str, ...], after: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, *steps)
        seq = crew.last_seq()
        done = await ann.handoff(1, "bob", lease, reason="yours")
        assert (done.released.lease_id, done.released.state) == (lease.lease_id, "released")
        assert done.released.successor == done.lease.lease_id != lease.lease_id
        assert (done.lease.epoch, done.lease.agent_id, done.lease.session) == (
            *(1, "bob", bob.session),
        )
        assert (done.lease.ttl_ms, done.lease.expires_at_ms) == (None, None)
        assert (done.task.status, done.task.lease) == (after, done.lease)
        assert done.task.assignee is not None
        assert (done.task.assignee.agent_id, done.task.assignee.session) == ("bob", bob.session)
        kinds = [kind for kind, _, _ in crew.log()[seq:]]
        assert kinds.count("work_handed_off") == 1  # one event: never none, never two owners
        assert crew.active() == [(1, "bob", 1)]
        with refused("lease-lost") as error:
            await ann.update(1, lease, title="mine")
        assert error.value.details["successor"] == done.lease.lease_id

    act(story)


def test_wk_l18_a_failed_handoff_leaves_the_old_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        store, seen, seq = crew.bed.core.store, await ann.show(1), crew.last_seq()
        for fault in ("INSERT ON work_leases", "UPDATE ON tasks", "INSERT ON log"):
            sql = f"CREATE TEMP TRIGGER boom BEFORE {fault} BEGIN SELECT RAISE(ABORT, 'no'); END"
            await store.write(lambda tx, sql=sql: tx.all(sql))  # type: ignore[misc]
            with refused("constraint", "operation-failed"):
                await ann.handoff(1, "bob", lease)
            await store.write(lambda tx: tx.all("DROP TRIGGER boom"))
            assert (await ann.show(1), crew.last_seq()) == (seen, seq)
            assert await bob.mail() == []
        assert (await ann.handoff(1, "bob", lease)).lease.epoch == 1

    act(story)


def test_wk_l18_of_two_handoffs_at_once_one_succeeds(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await crew.owned(ann)
        answers = await asyncio.gather(
            *(ann.handoff(1, to, lease) for to in ("bob", "cat", "bob", "cat")),
            return_exceptions=True,
        )
        (won,) = [each for each in answers if not isinstance(each, BaseException)]
        lost = [each.reason for each in answers if isinstance(each, TfxError)]
        assert lost == ["lease-lost"] * 3
        assert crew.active() == [(1, won.lease.agent_id, 1)]
        told = [each["event"] for who in (bob, cat) for each in await who.mail()]
        assert told == ["handed-off"]

    act(story)


@pytest.mark.parametrize(("reason", "kept"), [("yours", "yours"), (None, "handed off")])
def test_wk_l18_a_handed_off_lease_keeps_the_reason_that_was_given(
    act: PlayCrew, reason: str | None, kept: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, _ = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        done = await ann.handoff(1, "bob", lease, reason=reason)
        assert done.released.reason == kept
        (asked,) = (await ann.status(lease_id=lease.lease_id)).leases
        assert (asked.state.value, asked.reason) == ("released", kept)
        assert asked.successor == done.lease.lease_id

    act(story)


@pytest.mark.parametrize("more", [{"to_instance": "desk-2"}, {}], ids=["named", "known"])
def test_wk_l6_a_handoff_writes_all_four_fields_of_the_assignee(
    act: PlayCrew, more: dict[str, object]
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        made = await crew.bed.call(
            "register",
            agents.RegisterResult,
            agent_id="bob",
            cli="codex",
            capabilities=["code"],
            topics=[],
            heartbeat_ttl_ms=7_200_000,
            workspace=ann.room,
            metadata=msgspec.Raw(b'{"instance":"desk-2"}'),
        )
        lease = await crew.owned(ann)
        done = await ann.handoff(1, "bob", lease, **more)
        assert done.lease.instance == "desk-2"
        owner = done.task.assignee
        assert owner is not None
        assert (owner.label, owner.agent_id, owner.instance, owner.session) == (
            *("bob", "bob", "desk-2", made.lease_id),
        )

    act(story)


def test_wk_l18_both_sides_hear_of_a_handoff(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        done = await ann.handoff(1, "bob", lease, reason="yours")
        (told,) = await bob.mail()
        assert (told["event"], told["task"], told["room"]) == ("handed-off", 1, ann.room)
        assert (told["lease_id"], told["epoch"]) == (done.lease.lease_id, 1)
        assert await ann.mail() == []  # it did so itself
        await crew.boss.handoff(1, "ann", done.lease)
        (lost,) = await bob.mail()
        assert lost["reason"]
        assert (lost["event"], lost["lease_id"], lost["epoch"]) == (
            *("lease-lost", done.lease.lease_id, 1),
        )
        now = (await ann.show(1)).lease
        assert now is not None
        assert lost["successor"] == now.lease_id

    act(story)


def test_wk_l19_there_is_no_other_action_on_a_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        assert "work_steal" not in OPERATIONS
        for name in ("work_release", "work_handoff"):
            with pytest.raises((TfxError, msgspec.ValidationError)) as error:
                await ann.ask(name, object, task=1, **stated(lease), action="steal")
            assert "steal" in str(error.value) or "action" in str(error.value)
        with pytest.raises((InvalidRequest, msgspec.ValidationError)):
            await ann.update(1, lease, status="stolen")
        assert (await ann.show(1)).lease == lease

    act(story)


def test_wk_l20_the_operator_skips_the_holder_check_and_keeps_the_fence(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        with refused("lease-changed"):
            await crew.boss.release(1, **{**stated(lease), "epoch": 9})
        with refused("lease-changed"):
            await crew.boss.handoff(1, "bob", lease_id="another", epoch=0)
        assert (await crew.boss.update(1, lease, title="mine")).title == "mine"
        done = await crew.boss.handoff(1, "bob", lease)
        assert done.lease.agent_id == "bob"
        with refused("lease-lost"):
            await crew.boss.release(1, lease)
        freed = await crew.boss.release(1, done.lease)
        assert (freed.task.status, freed.task.assignee) == ("accepted", None)
        (event,) = crew.log("work_released")
        assert event[1] == "operator"  # never nobody
        assert bob.session is not None

    act(story)


def test_wk_l21_who_saw_no_lease_fails_when_a_successor_has_claimed(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.assigned("ann")
        lease = await ann.claim(1)
        steps = (
            ann.bare.release(1, no_lease=True),
            bob.bare.update(1, no_lease=True, title="mine"),
            crew.boss.force(1, no_lease=True),
        )
        await all_refused(steps, "lease-changed", "state-conflict")
        assert (await ann.show(1)).lease == lease

    act(story)


def test_wk_k2_a_forced_release_frees_the_task_but_does_not_reopen_a_merged_one(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_review")
        done = await crew.boss.force(1, lease, reason="wrong one")
        assert (done.task.status, done.task.assignee) == ("accepted", None)
        assert crew.leases(1) == [(0, "ann", "revoked", "wrong one")]
        lease = await crew.owned(ann, "in_review")
        await bob.review(2)
        await bob.update(2, lease, status="merged")
        assert crew.leases(2)[0][2] == "revoked"
        with refused("lease-missing", "state-conflict"):
            await crew.boss.force(2, no_lease=True)
        assert (await crew.person.show(2)).status == "merged"

    act(story)


def test_wk_k2_a_finished_task_is_not_handed_off(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, _ = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress", "done")
        await crew.person.ready()
        await crew.person.update(2, status="cancelled")
        for who, task in ((ann, 1), (ann, 2), (crew.boss, 1)):
            with pytest.raises(TfxError) as error:
                await who.handoff(task, "bob")
            assert error.value.kind.value == "state-conflict"
        with pytest.raises(TfxError) as error:
            await ann.handoff(1, "bob", lease)
        assert error.value.kind.value == "state-conflict"
        assert crew.active() == []

    act(story)


def test_wk_k2_a_handoff_keeps_branch_pr_and_output(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, _ = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, branch="work/1", pr="o/r/7", output="a patch")
        done = await ann.handoff(1, "bob", lease, ttl_ms=HOUR_MS)
        assert (done.task.branch, done.task.pr, done.task.output) == ("work/1", "o/r/7", "a patch")
        assert done.lease.expires_at_ms == crew.clock.now_ms() + HOUR_MS

    act(story)
