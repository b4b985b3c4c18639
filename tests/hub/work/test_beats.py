"""Beats, time to live and the sweeper (WK-L25 … L28, D1 … D3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.driver import FakeClock, with_bed
from tests.hub.work.crew import HOUR_MS, ROOM, Crew, PlayCrew, Worker, refused
from tfx.errors import TfxError

YEAR_2099 = 4_070_908_800_000
MINUTE_MS = 60_000


def test_wk_l25_a_beat_counts_only_with_a_greater_sequence_and_a_time_not_going_back(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        assert (await ann.beat(5, 1_000)).accepted
        before = (await ann.show(1)).lease
        crew.clock.pass_ms(500)
        for sequence, at in ((5, 1_000), (4, 2_000), (0, 1_000), (6, 999), (7, -1)):
            refusal = await ann.beat(sequence, at)
            assert (refusal.accepted, refusal.leases) == (False, ())
            assert (await ann.show(1)).lease == before
        assert (await ann.beat(6, 1_000)).accepted
        assert (await ann.beat(8, 1_001)).accepted
        assert (await ann.show(1)).lease != before

    act(story)


def test_wk_l25_a_beat_of_an_ended_or_strange_session_is_not_accepted(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        thief = Worker(crew.bed, "bob", ann.session)
        stranger = Worker(crew.bed, "bob", "no-such-session")
        for who in (thief, stranger):
            refusal = await who.beat(1)
            assert (refusal.accepted, refusal.leases) == (False, ())
        await ann.leave()
        refusal = await ann.beat(1)
        assert (refusal.accepted, refusal.leases) == (False, ())
        assert crew.bed.rows("SELECT * FROM pulses") == []
        assert (await bob.status(lease_id=lease.lease_id)).leases[0].last_beat_ms == (
            lease.created_at_ms
        )

    act(story)


def test_wk_l26_the_last_beat_is_when_the_hub_received_it(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        crew.clock.pass_ms(7_000)
        assert (await ann.beat(1, YEAR_2099)).accepted
        lease = (await ann.show(1)).lease
        assert lease is not None
        assert lease.last_beat_ms == crew.clock.now_ms() < YEAR_2099
        (found,) = (await ann.status(lease_id=lease.lease_id)).leases
        assert found.last_beat_ms == lease.last_beat_ms

    act(story)


def test_wk_l27_a_beat_returns_the_leases_that_are_still_active(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, _ = await crew.hire("ann"), await crew.hire("bob")
        made = [await crew.owned(ann) for _ in range(4)]
        await ann.release(1, made[0])
        await ann.handoff(2, "bob", made[1])
        await ann.update(3, made[2], status="cancelled")
        held = (await ann.beat(1)).leases
        assert [(each.lease_id, each.epoch, each.room, each.task) for each in held] == [
            (made[3].lease_id, 0, ann.room, 4),
        ]

    act(story)


def test_wk_l28_a_beat_revives_extends_and_moves_nothing(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        revision, seq = (await ann.board()).revision, crew.last_seq()
        crew.clock.pass_ms(HOUR_MS // 2)
        assert (await ann.beat(1)).accepted
        assert ((await ann.board()).revision, crew.last_seq()) == (revision, seq)
        seen = (await ann.show(1)).lease
        assert seen is not None
        assert (seen.expires_at_ms, seen.epoch) == (lease.expires_at_ms, 0)
        await crew.bed.tick(HOUR_MS // 2)
        beat = await ann.beat(2)
        assert beat.leases == ()
        assert crew.leases(1)[0][2] == "expired"
        assert (await ann.show(1)).lease is None

    act(story)


def test_beats_survive_a_rebuild_and_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    hired: list[str] = []

    async def first(crew: Crew) -> None:
        ann = await crew.hire("ann")
        assert ann.session is not None
        hired.append(ann.session)
        await crew.owned(ann)
        clock.pass_ms(5_000)
        assert (await ann.beat(9, 1_000)).accepted

    async def second(crew: Crew) -> None:
        ann = Worker(crew.bed, "ann", hired[0])
        assert not (await ann.beat(9, 1_000)).accepted
        seen = (await ann.show(1)).lease
        assert seen is not None
        assert seen.last_beat_ms == clock.now_ms()

    path = tmp_path / "hub.db"
    with_bed(path, lambda bed: first(Crew(bed)), clock=clock)
    with_bed(path, lambda bed: second(Crew(bed)), clock=clock, instance="instance-2")


def test_wk_d1_only_a_claim_that_asks_for_it_expires(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, _ = await crew.hire("ann"), await crew.hire("bob")
        plain = await crew.owned(ann)
        by_hand = await crew.assigned("ann")
        await crew.person.ready()
        timed = await ann.claim(3, ttl_ms=HOUR_MS)
        assert (plain.expires_at_ms, timed.expires_at_ms) == (None, crew.clock.now_ms() + HOUR_MS)
        onward = (await ann.handoff(3, "bob", timed)).lease
        assert (onward.ttl_ms, onward.expires_at_ms) == (None, None)
        await crew.bed.tick(30 * 24 * HOUR_MS)
        assert crew.active() == [(1, "ann", 0), (3, "bob", 1)]
        assert (await crew.person.show(by_hand)).status == "assigned"

    act(story)


def test_wk_d2_renewing_sets_the_hubs_now_plus_the_time_to_live(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        crew.clock.pass_ms(10_000)
        again = await ann.renew(lease)
        assert again.expires_at_ms == crew.clock.now_ms() + HOUR_MS
        longer = await ann.renew(lease, ttl_ms=2 * HOUR_MS)
        assert (longer.ttl_ms, longer.expires_at_ms) == (
            *(2 * HOUR_MS, crew.clock.now_ms() + 2 * HOUR_MS),
        )
        assert (longer.lease_id, longer.epoch) == (lease.lease_id, 0)
        with refused("lease-changed", "state-conflict"):
            await ann.renew(lease, epoch=1)
        with pytest.raises(TfxError) as error:
            await bob.renew(lease)
        assert error.value.kind.value == "access-denied"
        plain = await crew.owned(ann)
        with pytest.raises(TfxError) as error:
            await ann.renew(plain, ttl_ms=HOUR_MS)
        assert error.value.kind.value in {"state-conflict", "invalid-request"}
        await ann.release(1, lease)
        with refused("lease-lost", "state-conflict"):
            await ann.renew(lease)

    act(story)


def test_wk_d3_the_sweeper_expires_what_is_due_and_frees_the_task(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for _ in range(3):
            await crew.person.ready()
        made = [await ann.claim(task, ttl_ms=HOUR_MS) for task in (1, 2, 3)]
        await ann.update(2, made[1], status="in_progress")
        await ann.update(2, made[1], status="in_review")
        await ann.renew(made[2], ttl_ms=2 * HOUR_MS)
        await crew.bed.tick(HOUR_MS - 1)
        assert [task for task, _, _ in crew.active()] == [1, 2, 3]
        await crew.bed.tick(1)
        assert [task for task, _, _ in crew.active()] == [3]
        freed, reviewed = await ann.show(1), await ann.show(2)
        assert (freed.status, freed.assignee, freed.ready) == ("accepted", None, True)
        assert reviewed.status == "in_review"
        assert reviewed.assignee is not None
        assert reviewed.assignee.agent_id == "ann"
        assert {row[2] for task in (1, 2) for row in crew.leases(task)} == {"expired"}
        assert {actor for _, actor, _ in crew.log("work_expired")} == {"hub:hub"}
        with refused("lease-lost"):
            await ann.update(2, made[1], title="mine")

    act(story)


def test_wk_d3_swept_and_lazily_expired_rows_are_identical(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        for steps in ((), (), ("in_progress", "in_review"), ("in_progress", "in_review")):
            task = (await crew.person.ready()).task
            lease = await ann.claim(task, ttl_ms=HOUR_MS)
            for status in steps:
                await ann.update(task, lease, status=status)
        crew.clock.pass_ms(HOUR_MS)
        await bob.claim(1)  # expires its own task's lease only
        await ann.claim(3)
        assert [row[2] for row in crew.leases(2)] == ["active"]
        await crew.bed.core.upkeep.tick()
        columns = "status, epoch, agent, session, ended_at_ms, reason, successor, expires_at_ms"
        for lazy, swept in ((1, 2), (3, 4)):
            rows = [
                crew.bed.rows(
                    f"SELECT {columns} FROM work_leases l WHERE epoch = 0 AND task = "
                    "(SELECT stream FROM tasks WHERE number = ?)",
                    task,
                )
                for task in (lazy, swept)
            ]
            assert rows[0] == rows[1]
            bodies = [
                [body for kind, _, body in crew.log(task=task) if kind == "work_expired"]
                for task in (lazy, swept)
            ]
            for each in bodies[0] + bodies[1]:
                each.pop("lease")
            assert bodies[0] == bodies[1] != []

    act(story)


@pytest.mark.parametrize(("ttl_ms", "left_ms"), [(20 * MINUTE_MS, 5), (4 * HOUR_MS, 10)])
def test_wk_d3_the_holder_is_warned_once_before_the_end(
    act: PlayCrew, ttl_ms: int, left_ms: int
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=ttl_ms)
        await crew.bed.tick(ttl_ms - left_ms * MINUTE_MS - 1)
        assert await ann.mail() == []
        await crew.bed.tick(1)
        (warning,) = await ann.mail()
        assert (warning["task"], warning["lease_id"], warning["epoch"]) == (1, lease.lease_id, 0)
        for _ in range(3):
            await crew.bed.tick(1_000)
        assert await ann.mail() == []
        await ann.renew(lease)
        await crew.bed.tick(ttl_ms - left_ms * MINUTE_MS)
        assert len(await ann.mail()) == 1
        await crew.bed.tick(left_ms * MINUTE_MS)
        (lost,) = await ann.mail()
        assert lost["event"] != warning["event"]

    act(story)


def test_wk_d3_ev_b9_a_suspend_takes_no_lease_away(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        crew.clock.pass_ms(HOUR_MS // 2)
        crew.clock.sleep_ms(9 * HOUR_MS)
        await crew.bed.core.upkeep.tick()
        assert crew.active() == [(1, "ann", 0)]
        assert await ann.mail() == []
        seen = (await ann.show(1)).lease
        assert seen is not None
        assert lease.expires_at_ms is not None
        assert seen.expires_at_ms == lease.expires_at_ms + 9 * HOUR_MS
        await crew.bed.tick(HOUR_MS // 2)
        assert crew.active() == []

    act(story)


def test_wk_d3_what_became_due_while_the_hub_was_away_gets_a_minute(tmp_path: Path) -> None:
    clock = FakeClock()

    async def first(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for ttl_ms in (HOUR_MS, 3 * HOUR_MS):
            await ann.claim((await crew.person.ready()).task, ttl_ms=ttl_ms)

    async def second(crew: Crew) -> None:
        await crew.bed.core.upkeep.tick()  # nobody could renew meanwhile
        (kept,) = (await crew.person.status(task=1, room=ROOM)).leases
        assert (kept.state, kept.ttl_ms) == ("active", HOUR_MS)
        assert kept.expires_at_ms == crew.clock.now_ms() + 60_000
        (other,) = (await crew.person.status(task=2, room=ROOM)).leases
        assert other.expires_at_ms == other.created_at_ms + 3 * HOUR_MS
        crew.clock.pass_ms(61_000)
        await crew.bed.core.upkeep.tick()
        assert [task for task, _, _ in crew.active()] == [2]
        assert (await crew.person.show(1)).status == "accepted"
        assert await crew.bed.refolds()

    path = tmp_path / "hub.db"
    with_bed(path, lambda bed: first(Crew(bed)), clock=clock)
    clock.pass_ms(2 * HOUR_MS)
    with_bed(path, lambda bed: second(Crew(bed)), clock=clock, instance="instance-2")
