"""The task machine: nine states, numbers, keys, edges (work.md §2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.hub.driver import OPERATOR_CALLER, Bed, FakeClock, with_bed
from tests.hub.work.crew import ELSEWHERE, ROOM, Crew, PlayCrew, Worker, refused
from tfx.hub.models import Retention
from tfx.hub.wire import admin
from tfx.hub.work_models import TaskStatus

NEXT: dict[str, set[str]] = {
    "proposed": {"accepted", "cancelled"},
    "accepted": {"assigned", "cancelled"},
    "assigned": {"in_progress", "in_review", "cancelled"},
    "in_progress": {"blocked", "in_review", "done", "cancelled"},
    "blocked": {"in_progress", "in_review", "cancelled"},
    "in_review": {"merged", "in_progress", "blocked", "done", "cancelled"},
    "merged": {"done", "accepted"},
    "done": {"accepted"},
    "cancelled": {"accepted"},
}
"""The table of work.md §2, written down a second time."""
WAY: dict[str, tuple[str, ...]] = {
    "proposed": (),
    "accepted": ("accepted",),
    "assigned": ("accepted", "assigned"),
    "in_progress": ("accepted", "assigned", "in_progress"),
    "blocked": ("accepted", "assigned", "in_progress", "blocked"),
    "in_review": ("accepted", "assigned", "in_review"),
    "merged": ("accepted", "assigned", "in_review", "merged"),
    "done": ("accepted", "assigned", "in_progress", "done"),
    "cancelled": ("cancelled",),
}


async def step(crew: Crew, reviewer: Worker, task: int, status: str) -> None:
    """Move a task that nobody has leased, by hand; a merge needs its reviewer (WK-R5)."""
    if status == "merged":
        await reviewer.review(task)
        await reviewer.update(task, status=status)
    elif status == "assigned":
        await crew.boss.update(task, status=status, assignee="ann")
    else:
        await crew.boss.update(task, status=status)


def test_wk_t1_the_table_of_the_machine_is_that_of_the_design() -> None:
    assert set(NEXT) == set(WAY) == {status.value for status in TaskStatus}


@pytest.mark.parametrize("before", NEXT)
def test_wk_t1_only_the_listed_transitions_work_and_a_refusal_lists_them(
    act: PlayCrew, before: str
) -> None:
    async def story(crew: Crew) -> None:
        await crew.hire("ann")
        reviewer = await crew.hire("bob")
        for after in NEXT:
            task = (await crew.person.add(f"{before} to {after}")).task
            for status in WAY[before]:
                await step(crew, reviewer, task, status)
            assert (await crew.person.show(task)).status == before
            if after in NEXT[before]:
                await step(crew, reviewer, task, after)
                assert (await crew.person.show(task)).status == after
                continue
            fields = {"assignee": "ann"} if after == "assigned" else {}
            with refused("bad-transition", "invalid-request") as error:
                await crew.boss.update(task, status=after, **fields)
            allowed = error.value.details["allowed"]
            assert isinstance(allowed, list)
            assert {str(each) for each in allowed} == NEXT[before]
            assert all(each in error.value.message for each in NEXT[before])
            assert (await crew.person.show(task)).status == before

    act(story)


def test_wk_t2_without_a_status_the_status_stays(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        seen = await ann.update(1, lease, title="better", detail="how", priority=8, note="half way")
        assert (seen.status, seen.title, seen.detail_chars, seen.priority, seen.note) == (
            *("in_progress", "better", 3, 8, "half way"),
        )
        assert (await ann.show(1)).detail == "how"
        assert seen.lease == lease
        again = await ann.update(1, lease, status="", title="best")
        assert (again.status, again.title) == ("in_progress", "best")

    act(story)


def test_wk_t3_a_new_task_is_proposed_and_nobodys(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        task = await ann.add("think", detail="long", priority=7, branch="b", output="a plan")
        assert (task.status, task.assignee, task.lease, task.author) == (
            *("proposed", None, None, "ann"),
        )
        assert (task.title, task.detail_chars, task.priority, task.branch, task.output) == (
            *("think", 4, 7, "b", "a plan"),
        )
        assert (await ann.show(1)).detail == "long"
        assert not task.ready
        assert (await crew.person.add()).author == "operator"
        assert (await ann.ready()).status == "accepted"

    act(story)


def test_wk_t4_each_room_counts_for_itself_and_never_uses_a_number_twice(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        person, elsewhere = crew.person, Worker(crew.bed, None, None, room=ELSEWHERE)
        assert [(await person.add()).task for _ in range(3)] == [1, 2, 3]
        assert (await elsewhere.add()).task == 1
        assert (await crew.boss.delete(3)).deleted
        assert (await person.add()).task == 4
        for number in (1, 2, 4):
            await crew.boss.delete(number)
        assert (await person.add()).task == 5
        assert await crew.bed.refolds()

    act(story)


def test_wk_t4_a_refused_insert_consumes_no_number(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        person = crew.person
        await person.add(branch="taken")
        with refused("duplicate-work"):
            await person.add(branch="taken")
        with pytest.raises(Exception, match="77"):
            await person.add(blocked_by=[77])

        def boom(sql: str) -> None:
            crew.bed.core.store.queue(lambda tx: tx.connection.execute(sql))

        boom(
            "CREATE TEMP TRIGGER boom AFTER INSERT ON main.tasks "
            "BEGIN SELECT RAISE(ABORT, 'injected'); END"
        )
        with refused("constraint"):
            await person.add()
        boom("DROP TRIGGER boom")
        assert (await person.add()).task == 2

    act(story)


def test_wk_t4_the_counter_starts_above_what_is_there(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        for _ in range(3):
            await crew.person.add()
        await crew.bed.core.store.write(lambda tx: tx.all("DELETE FROM numbers"))
        assert (await crew.person.add()).task == 4

    act(story)


def test_wk_t4_the_number_of_a_forgotten_task_is_never_used_again(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "hub.db"
    keep = Retention(tasks_ms=1_000)

    async def first(bed: Bed) -> None:
        person = Crew(bed).person
        for status in ("cancelled", "cancelled", None):
            task = await person.add(client_key="k" if status is None else None)
            await person.update(task.task, status=status, title="seen")
        await person.update(3, status="cancelled")
        await person.update(1, title="the newest of its room, which stays")
        await bed.tick(2_000)
        pruned = await bed.core.upkeep.forget()
        assert pruned.tasks == 2
        assert bed.rows("SELECT number FROM tasks") == [(1,)]
        assert (await person.add()).task == 4
        await bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        await person.update(4, status="cancelled")
        await person.update(1, title="the newest again")
        await bed.tick(2_000)
        await bed.core.upkeep.forget()
        assert bed.rows("SELECT number FROM tasks") == [(1,)]

    async def second(bed: Bed) -> None:
        assert (await Crew(bed).person.add(client_key="k")).task == 5
        assert await bed.refolds()

    with_bed(path, first, clock=clock, keep=keep)
    with_bed(path, second, clock=clock, keep=keep, instance="instance-2")


def test_wk_t5_claiming_again_keeps_what_was_begun(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        assert await ann.claim(1) == lease
        assert (await ann.show(1)).status == "in_progress"
        await ann.leave()
        ann = await crew.hire("ann")
        assert (await ann.claim(1)).epoch == 1
        assert (await ann.show(1)).status == "in_progress"

    act(story)


def test_wk_t6_the_same_key_and_content_is_the_same_task(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await ann.add("fix it", detail="soon", client_key="k1")
        again = await ann.add("fix it", detail="soon", client_key="k1")
        assert (again.task, again.trace_id) == (first.task, first.trace_id)
        for fields in ({"detail": "late"}, {"priority": 9}, {"accept": True}, {"parent": 1}):
            wanted = {"detail": "soon", "client_key": "k1", **fields}
            with refused("idempotency-conflict", "state-conflict"):
                await ann.add("fix it", **wanted)
        with refused("idempotency-conflict", "state-conflict"):
            await ann.add("fix", detail="soon", client_key="k1")
        await crew.person.update(first.task, title="fix it well", status="accepted")
        later = await ann.add("fix it", detail="soon", client_key="k1")
        assert (later.task, later.title) == (first.task, "fix it well")
        theirs = await bob.add("fix it", detail="soon", client_key="k1")
        assert (theirs.task, theirs.author) == (first.task, "ann")  # a key is the room's
        with refused("idempotency-conflict", "state-conflict"):
            await bob.add("fix something else", client_key="k1")
        assert len(crew.log("task_created")) == 1
        elsewhere = Worker(crew.bed, None, None, room=ELSEWHERE)
        assert (await elsewhere.add("another board's", client_key="k1")).room == ELSEWHERE

    act(story)


def test_wk_t6_two_at_once_with_one_key_make_one_task(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        both = await asyncio.gather(*(ann.add("once", client_key="k") for _ in range(8)))
        assert {each.task for each in both} == {1}

    act(story)


def test_wk_t7_a_list_shows_what_is_open_in_order_of_creation(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        person = crew.person
        for number in range(1, 7):
            await person.ready(f"task {number}", priority=number)
        await person.update(2, status="cancelled")
        await crew.boss.update(4, status="assigned", assignee="ann")
        await crew.boss.update(4, status="in_progress")
        await crew.boss.update(4, status="done")
        await crew.boss.update(5, status="assigned", assignee="ann")
        await crew.boss.delete(6)
        seen = await person.board()
        assert (seen.room, [line.task for line in seen.tasks]) == (ROOM, [1, 3, 5])
        everything = await person.board(all=True)
        assert [line.task for line in everything.tasks][:5] == [1, 2, 3, 4, 5]
        closed = await person.board(status=["done", "cancelled"])
        assert [line.task for line in closed.tasks] == [2, 4]
        assert [line.task for line in (await person.board(assignee="ann")).tasks] == [5]
        first = await person.board(limit=2)
        assert ([line.task for line in first.tasks], first.next_after) == ([1, 3], 3)
        rest = await person.board(limit=2, after=first.next_after)
        assert ([line.task for line in rest.tasks], rest.next_after) == ([5], None)

    act(story)


def test_wk_t9_an_agent_assigns_only_itself_and_nobody_after_a_claim(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        for who in (ann, ann.bare):
            task = (await crew.person.ready()).task
            with pytest.raises(Exception, match=r"bob|itself|handoff"):
                await who.update(task, status="assigned", assignee="bob")
            assert (await ann.show(task)).assignee is None
        mine = await ann.bare.update(1, status="assigned", assignee="ann")
        assert (mine.assignee is not None, mine.lease) == (True, None)
        lease = await ann.claim(1)
        for who in (bob, bob.bare, crew.person):
            with pytest.raises(Exception, match=r".") as error:
                await who.update(1, assignee="bob")
            assert getattr(error.value, "kind", None) is not None
        with pytest.raises(Exception, match="hand"):
            await ann.update(1, lease, assignee="bob")
        assert (await ann.show(1)).lease == lease

    act(story)


def test_wk_t10_a_missing_key_is_filled_in_where_the_labels_match(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        given = await crew.boss.update(1, status="assigned", label="ann")
        assert given.assignee is not None
        assert (given.assignee.label, given.assignee.agent_id) == ("ann", None)
        with refused("bad-status"):
            await bob.claim(1)
        await ann.claim(1)
        filled = (await ann.show(1)).assignee
        assert filled is not None
        assert (filled.label, filled.agent_id, filled.session) == ("ann", "ann", ann.session)

    act(story)


def test_wk_t10_a_label_never_beats_a_key(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await ann.claim((await crew.person.ready()).task, label="The Builder")
        await ann.leave()
        before = crew.last_seq()
        for label in ("The Builder", "ann"):
            with pytest.raises(Exception, match="ann"):
                await bob.claim(1, label=label)
        assert crew.active() == []
        assert {kind for kind, _, _ in crew.log()[before:]} <= {"claim_denied"}
        ann = await crew.hire("ann")
        lease = await ann.claim(1, label="Another Name")
        assert (lease.epoch, lease.label) == (1, "Another Name")

    act(story)


def test_wk_t10_only_the_registered_label_fills_a_key_in_never_one_that_a_request_says(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        eve = await crew.hire("eve", label="Eve")
        lead = await crew.hire("ann", label="Team Lead")
        await crew.person.ready()
        await crew.boss.update(1, status="assigned", label="Team Lead")
        with refused("bad-status"):
            await eve.claim(1, label="Team Lead")
        with refused("bad-status"):
            await eve.update(1, status="assigned", label="Team Lead")
        lease = await lead.claim(1, label="what I am called today")
        assert (lease.agent_id, lease.label) == ("ann", "what I am called today")

    act(story)
