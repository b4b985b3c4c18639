"""What takes a lease away, and how its holder hears of it (WK-L22 … L24, D4 … D6, D8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.hub.driver import OPERATOR_CALLER
from tests.hub.work.crew import ELSEWHERE, HOUR_MS, Crew, PlayCrew, all_refused, refused
from tfx.core.identity import identify
from tfx.hub.wire import agents


@pytest.mark.parametrize("end", ["done", "cancelled"])
def test_wk_l22_a_status_outside_of_owned_work_revokes_the_lease_first(
    act: PlayCrew, end: str
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        seen = await ann.update(1, lease, status=end)
        assert (seen.status, seen.lease) == (end, None)
        assert [row[:3] for row in crew.leases(1)] == [(0, "ann", "revoked")]
        kinds = [kind for kind, _, _ in crew.log(task=1)]
        assert kinds[-2:] == ["work_revoked", "task_moved"]
        with refused("lease-lost"):
            await ann.update(1, lease, title="mine")

    act(story)


def test_wk_l22_values_that_stay_the_same_revoke_nothing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await ann.update(1, lease, assignee="ann", title="do it", note="x")
        await ann.update(1, lease, status="blocked")
        await ann.update(1, lease, status="in_review")
        assert (await ann.show(1)).lease == lease

    act(story)


def test_wk_l22_the_schema_refuses_a_change_that_the_lease_would_not_match(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        for change in (
            "UPDATE tasks SET status = 'done', closed_at_ms = 1",
            "UPDATE tasks SET assignee = 'bob'",
            "UPDATE tasks SET session = NULL",
            "UPDATE work_leases SET agent = 'bob'",
            "UPDATE work_leases SET epoch = 5",
        ):
            with refused("constraint"):
                await crew.bed.core.store.write(lambda tx, sql=change: tx.all(sql))  # type: ignore[misc]
        for label in ("another name", "ann"):  # no label is ever compared (WK-D6)
            sql = f"UPDATE tasks SET label = '{label}'"
            await crew.bed.core.store.write(lambda tx, sql=sql: tx.all(sql))  # type: ignore[misc]

    act(story)


def test_wk_l23_deleting_a_task_deletes_its_leases(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_review")
        review = await bob.review(1)
        await ann.attach("file", "a.py", lease, task=1)
        await crew.person.ready(blocked_by=[1])
        assert (await crew.boss.delete(1)).deleted
        assert not (await crew.boss.delete(1)).deleted
        for table in ("work_leases", "review_leases"):
            assert crew.bed.rows(f"SELECT * FROM {table} WHERE status = 'active'") == []
        assert crew.bed.rows("SELECT * FROM artifacts") == []
        board = await crew.person.status(room=ann.room)
        assert (board.leases, board.reviews) == ((), ())
        assert (await crew.person.board()).tasks[0].ready
        steps = (ann.update(1, lease, title="mine"), ann.claim(1), bob.review(1))
        await all_refused(steps, "unknown-task", "not-found")
        (told,) = await ann.mail()
        assert (told["lease_id"], told["successor"]) == (lease.lease_id, None)
        (ended,) = (await ann.status(lease_id=lease.lease_id)).leases  # what became of it: WK-D8
        (judged,) = (await bob.status(lease_id=review.review_id)).reviews
        for each in (ended, judged):
            assert (each.state.value, each.reason, each.task) == ("revoked", "deleted", 1)

    act(story)


async def deregister(crew: Crew) -> None:
    await crew.bed.call("deregister", agents.DeregisterResult, agent_id="ann")


async def retire(crew: Crew) -> None:
    await crew.bed.call(
        "agents_retire", agents.RetireResult, caller=OPERATOR_CALLER, agent_id="ann"
    )


async def prune(crew: Crew) -> None:
    await crew.bed.tick(3 * HOUR_MS)
    await crew.bed.call("heartbeat", agents.HeartbeatResult, agent_id="bob")
    gone = await crew.bed.call(
        "agents_prune", agents.PruneAgentsResult, caller=OPERATOR_CALLER, unseen_ms=0, dry_run=False
    )
    assert "ann" in gone.agents


async def another_process(crew: Crew) -> None:
    await crew.hire("ann")


async def attach(crew: Crew) -> None:
    """Another process says that it is ann, as a bridge does, once hers was silent for too long."""
    await crew.bed.tick(3 * HOUR_MS)
    me = identify()
    assert me is not None
    process = {
        "pid": me.pid, "start_token": me.start_token, "boot_id": me.boot_id, "host": me.host,
        "pid_namespace": me.pid_namespace,
    }  # fmt: skip
    await crew.bed.call(
        "attach", agents.AttachResult, cli="codex", workspace="/home/u/project/.git",
        agent_id="ann", process=process,
    )  # fmt: skip


End = Callable[[Crew], Awaitable[None]]
ENDS: list[End] = [deregister, retire, prune, another_process, attach]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_wk_l24_the_end_of_a_session_revokes_its_leases_and_reviews_at_once(
    act: PlayCrew, end: End
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        mine = await crew.owned(ann, "in_progress")
        await crew.owned(bob, "in_review")
        await ann.review(2)
        seq = crew.last_seq()
        await end(crew)
        assert [row[:3] for row in crew.leases(1)] == [(0, "ann", "revoked")]
        assert "session" in str(crew.leases(1)[0][3])
        assert crew.bed.rows("SELECT status FROM review_leases") == [("revoked",)]
        assert crew.active() == [(2, "bob", 0)]
        task = await crew.person.show(1)
        assert (task.status, task.assignee is not None) == ("in_progress", True)
        assert task.assignee is not None
        assert task.assignee.agent_id == "ann"
        kinds = [kind for kind, _, _ in crew.log()[seq:]]
        assert {"work_revoked", "review_revoked"} <= set(kinds)
        with refused("authority-ended"):
            await ann.update(1, mine, title="mine")

    act(story)


def test_wk_l24_only_the_same_key_reclaims_with_the_next_epoch(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        old = await crew.owned(ann, "in_progress")
        await ann.leave()
        with pytest.raises(Exception, match="ann"):
            await bob.claim(1)
        again = await crew.hire("ann")
        new = await again.claim(1)
        assert (new.epoch, new.lease_id != old.lease_id) == (1, True)
        assert (await again.show(1)).status == "in_progress"
        with refused("lease-lost"):
            await again.update(1, old, title="mine")
        assert (await again.update(1, new, title="mine")).title == "mine"

    act(story)


def test_the_same_process_registering_again_keeps_session_and_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann", pid=77)
        lease = await crew.owned(ann)
        again = await crew.hire("ann", pid=77)
        assert again.session == ann.session
        assert (await again.update(1, lease, title="mine")).lease == lease

    act(story)


def test_wk_a2_the_same_process_in_another_room_is_another_life(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann", pid=77)
        lease = await crew.owned(ann)
        moved = await crew.hire("ann", pid=77, room=ELSEWHERE)
        assert moved.session != ann.session
        assert crew.leases(lease.task) == [(0, "ann", "revoked", "session ended")]

    act(story)


def test_wk_d1_a_lapsed_register_lease_alone_takes_no_work_away(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann", ttl_ms=10_000)
        lease = await crew.owned(ann)
        await crew.bed.tick(24 * HOUR_MS)
        assert (await ann.update(1, lease, title="still mine")).lease == lease

    act(story)


def test_wk_d4_neither_age_nor_expiry_gives_anybody_authority(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        await crew.bed.tick(HOUR_MS)
        for who in (ann, bob):
            with refused("lease-lost"):
                await who.update(1, lease, status="in_progress")
        with refused("lease-lost"):
            await ann.renew(lease)
        next_one = await bob.claim(1)
        assert next_one.epoch == 1
        steps = (ann.update(1, lease, title="mine"), ann.release(1, lease), ann.renew(lease))
        await all_refused(steps, "lease-lost")
        assert (await ann.show(1)).lease == next_one

    act(story)


def test_wk_d5_a_forced_release_is_the_operators_and_needs_fence_and_reason(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        with pytest.raises(Exception, match="reason"):
            await crew.boss.force(1, lease, reason=None)
        with pytest.raises(Exception, match=r"."):
            await crew.boss.force(1, lease, reason="")
        with refused("lease-changed"):
            await crew.boss.force(1, lease, epoch=3)
        with pytest.raises(Exception, match="lease"):
            await crew.boss.force(1)  # what it takes must be said
        assert (await ann.show(1)).lease == lease
        done = await crew.boss.force(1, lease, reason="it loops")
        assert done.released is not None
        assert (done.released.state, done.released.reason) == ("revoked", "it loops")
        assert (done.task.status, done.task.assignee) == ("accepted", None)
        ((_, actor, body),) = crew.log("work_forced")
        assert (actor, body["reason"], body["lease"]) == ("operator", "it loops", lease.lease_id)

    act(story)


def test_wk_d5_a_dead_assignee_without_a_lease_is_forced_off_too(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_progress")
        await ann.leave()
        done = await crew.boss.force(1, no_lease=True, reason="it died")
        assert (done.released, done.task.status, done.task.assignee) == (None, "accepted", None)
        ((_, _, body),) = crew.log("work_forced")
        assert body["reason"] == "it died"
        assert (await bob.claim(1)).epoch == 1

    act(story)


def test_wk_d6_a_rename_keeps_the_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, label="Ann")
        rename = "UPDATE tasks SET label = 'Annabel'"
        await crew.bed.core.store.write(lambda tx: tx.all(rename))
        assert (await ann.claim(1, label="Annabel")).lease_id == lease.lease_id
        seen = await ann.update(1, lease, status="in_progress", title="new")
        assert seen.lease == lease

    act(story)


async def lose_by_release(crew: Crew) -> None:
    await crew.boss.release(1)


async def lose_by_force(crew: Crew) -> None:
    found = (await crew.person.show(1)).lease
    await crew.boss.force(1, found, reason="it loops")


async def lose_by_expiry(crew: Crew) -> None:
    await crew.bed.tick(HOUR_MS)


async def lose_by_move(crew: Crew) -> None:
    await crew.boss.update(1, status="cancelled")


LOSSES: list[End] = [lose_by_release, lose_by_force, lose_by_expiry, lose_by_move]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
def test_wk_d8_a_lost_lease_is_told_to_its_holder_and_status_answers(
    act: PlayCrew, lose: End
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        (open_one,) = (await bob.status(lease_id=lease.lease_id)).leases
        assert (open_one.state, open_one.lease_id) == ("active", lease.lease_id)
        await lose(crew)
        told = (await ann.mail())[-1]
        assert set(told) >= {"event", "room", "task", "lease_id", "epoch", "reason", "successor"}
        assert (told["room"], told["task"], told["lease_id"], told["epoch"]) == (
            *(ann.room, 1, lease.lease_id, 0),
        )
        (ended,) = (await ann.status(lease_id=lease.lease_id)).leases
        assert ended.state != "active"
        assert (ended.reason, ended.ended_at_ms) == (told["reason"], crew.clock.now_ms())
        assert told["reason"]

    act(story)


def test_wk_d8_status_names_who_came_after_however_the_lease_ended(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lost = await ann.claim(1, ttl_ms=HOUR_MS)
        crew.clock.pass_ms(2 * HOUR_MS)
        await crew.bed.core.upkeep.tick()
        assert (await ann.status(lease_id=lost.lease_id)).leases[0].successor is None
        after = await bob.claim(1)
        assert (await ann.status(lease_id=lost.lease_id)).leases[0].successor == after.lease_id
        with refused("lease-lost") as error:
            await ann.update(1, lost, status="in_progress")
        assert error.value.details["successor"] == after.lease_id

    act(story)


def test_wk_d8_status_tells_what_a_task_had_and_what_an_agent_holds(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await crew.owned(ann)
        second = (await ann.handoff(1, "bob", first)).lease
        other = await crew.owned(ann)
        lock = await crew.boss.lock(1)
        of_task = await bob.status(task=1, room=ann.room)
        assert [each.epoch for each in of_task.leases] == [1, 0]
        assert [each.lock_id for each in of_task.locks] == [lock.lock_id]
        held = [each.lease_id for each in (await bob.status(agent_id="ann")).leases]
        assert other.lease_id in held
        assert second.lease_id not in held
        active = (await bob.status(room=ann.room)).leases
        assert {each.lease_id for each in active} == {second.lease_id, other.lease_id}
        with refused("unknown-lease", "not-found"):
            await bob.status(lease_id="no-such-lease")
        with refused("room-needed", "invalid-request"):
            await bob.status()

    act(story)


def test_the_notice_of_a_loss_is_stored_with_the_loss(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        sql = (
            "CREATE TEMP TRIGGER boom BEFORE INSERT ON messages "
            "BEGIN SELECT RAISE(ABORT, 'injected'); END"
        )
        await crew.bed.core.store.write(lambda tx: tx.all(sql))
        with refused("constraint"):
            await crew.boss.force(1, lease)
        assert crew.active() == [(1, "ann", 0)]
        await crew.bed.core.store.write(lambda tx: tx.all("DROP TRIGGER boom"))
        await crew.boss.force(1, lease)
        assert len(await ann.mail()) == 1

    act(story)
