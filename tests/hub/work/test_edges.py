"""Edges between tasks and the ready queue (WK-T11, WK-T12)."""

from __future__ import annotations

import asyncio
import functools

import pytest

from tests.hub.work.crew import ROOM, Crew, PlayCrew, Worker, refused
from tfx.errors import StateConflict, TfxError
from tfx.hub.models import OPERATOR
from tfx.hub.store import tasks
from tfx.hub.store.tx import Tx
from tfx.hub.store.work_bodies import TaskMoved


async def ready_ones(worker: Worker) -> list[int]:
    return [line.task for line in (await worker.board(ready=True)).tasks]


async def finish(crew: Crew, task: int) -> None:
    """Move an unleased accepted task to its end by hand."""
    await crew.boss.update(task, status="assigned", assignee="ann")
    await crew.boss.update(task, status="in_progress")
    await crew.boss.update(task, status="done")


def test_wk_t11_a_task_is_ready_when_nothing_that_blocks_it_is_open(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, person = await crew.hire("ann"), crew.person
        for _ in range(3):
            await person.ready()
        task = await person.ready(blocked_by=[1, 2, 3])
        assert (task.blocked_by, task.ready) == ((1, 2, 3), False)
        assert task.waits_for
        with refused("not-ready", "state-conflict"):
            await ann.claim(4)
        await finish(crew, 1)
        await person.update(2, status="cancelled")
        assert not (await person.show(4)).ready
        assert await ready_ones(person) == [3]
        await crew.boss.delete(3)
        # a deleted one is not shown, so that what is shown can be sent back
        assert (await person.update(4, title="the fourth")).blocked_by == (1, 2)
        assert (await person.show(4)).waits_for == ()
        assert await ready_ones(person) == [4]
        await person.update(1, status="accepted")  # it is open again, and so blocks again
        assert await ready_ones(person) == [1]
        await person.update(4, blocked_by=[])
        assert await ready_ones(person) == [1, 4]
        assert (await ann.claim(4)).task == 4

    act(story)


def test_wk_t11_only_accepted_tasks_without_lease_are_ready(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, person = await crew.hire("ann"), crew.person
        await person.add("not accepted")
        lease = await crew.owned(ann)
        await person.ready()
        assert await ready_ones(person) == [3]
        await ann.release(2, lease)
        assert await ready_ones(person) == [2, 3]
        await crew.boss.lock(3)
        assert await ready_ones(person) == [2]
        await crew.boss.lock()
        assert await ready_ones(person) == []
        await crew.boss.unlock()
        await crew.boss.unlock(3)
        assert await ready_ones(person) == [2, 3]

    act(story)


@pytest.mark.parametrize("edge", ["blocked_by", "parent"])
def test_wk_t11_edges_make_no_circle(act: PlayCrew, edge: str) -> None:
    def to(task: int) -> dict[str, object]:
        return {edge: [task] if edge == "blocked_by" else task}

    async def story(crew: Crew) -> None:
        person = crew.person
        await person.ready()
        await person.ready(**to(1))
        await person.ready(**to(2))
        before = crew.last_seq()
        for target in (1, 2, 3):
            with pytest.raises(TfxError) as error:
                await person.update(1, **to(target))
            assert error.value.kind.value in {"invalid-request", "state-conflict"}
        assert crew.last_seq() == before
        with refused("unknown-task", "not-found"):
            await person.ready(**to(99))
        with refused("unknown-task", "not-found"):
            await person.update(3, **to(99))
        await person.update(3, **to(1))

    act(story)


def test_wk_t11_an_exclusion_key_keeps_two_tasks_from_running_in_parallel(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, person = await crew.hire("ann"), await crew.hire("bob"), crew.person
        for _ in range(2):
            await person.ready(exclusive="database")
        await person.ready()
        lease = await ann.claim(1)
        assert await ready_ones(person) == [3]
        assert (await person.show(2)).waits_for
        with refused("not-ready"):
            await bob.claim(2)
        assert (await bob.take_next()).task.task == 3
        for status in ("in_progress", "done"):
            await ann.update(1, lease, status=status)
        assert await ready_ones(person) == [2]
        assert (await ann.claim(2)).epoch == 0

    act(story)


def test_wk_t11_two_claims_at_once_of_one_exclusion_key_have_one_winner(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        crowd = [await crew.hire(f"agent-{n}") for n in range(8)]
        for _ in crowd:
            await crew.person.ready(exclusive="port")
        claims = (each.claim(n + 1) for n, each in enumerate(crowd))
        answers = await asyncio.gather(*claims, return_exceptions=True)
        assert sum(not isinstance(each, Exception) for each in answers) == 1
        assert {each.reason for each in answers if isinstance(each, StateConflict)} == {"not-ready"}
        assert len(crew.active()) == 1

    act(story)


def test_wk_t12_next_claims_the_first_of_the_best_priority(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, person = await crew.hire("ann"), crew.person
        for priority in (5, 9, 5, 9, 1):
            await person.ready(priority=priority)
        await person.ready(priority=9, blocked_by=[1])
        looked = await ann.take_next(claim=False)
        assert (looked.task.task, looked.lease) == (2, None)
        assert crew.active() == []
        taken = []
        for _ in range(5):
            found = await ann.take_next(ttl_ms=60_000, worktree="/w", instance="i")
            assert found.lease is not None
            assert found.lease.expires_at_ms == crew.clock.now_ms() + 60_000
            assert (found.lease.worktree, found.lease.instance) == ("/w", "i")
            assert (found.task.lease, found.task.status) == (found.lease, "assigned")
            taken.append(found.task.task)
        assert taken == [2, 4, 1, 3, 5]
        with refused("nothing-ready", "state-conflict"):
            await ann.take_next()

    act(story)


def test_wk_t12_a_loser_gets_the_next_one_or_nothing_ready(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        crowd = [await crew.hire(f"agent-{n}") for n in range(12)]
        for _ in range(9):
            await crew.person.ready()
        answers = await asyncio.gather(
            *(each.take_next() for each in crowd), return_exceptions=True
        )
        won = [each.task.task for each in answers if not isinstance(each, BaseException)]
        lost = [each for each in answers if isinstance(each, TfxError)]
        assert sorted(won) == list(range(1, 10))
        assert [each.reason for each in lost] == ["nothing-ready"] * 3
        assert len(crew.active()) == 9

    act(story)


def test_wk_t12_next_leaves_out_what_another_is_assigned(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.assigned("bob")
        await crew.assigned("ann")
        with refused("nothing-ready"):
            await ann.take_next()

    act(story)


def test_wk_t12_wk_t10_next_offers_what_has_the_registered_name_of_the_agent_and_no_other(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        eve = await crew.hire("eve", label="Eve")
        ann = await crew.hire("ann", label="Team Lead")
        for label in ("Team Lead", "ann"):
            task = (await crew.person.ready()).task
            await crew.bed.core.store.write(functools.partial(_name, number=task, label=label))
            with refused("nothing-ready"):
                await eve.take_next()
            with refused("nothing-ready"):
                await eve.take_next(claim=False)
            assert (await ann.take_next(claim=False)).task.task == task
            assert (await ann.take_next()).task.task == task

    act(story)


def _name(tx: Tx, *, number: int, label: str) -> None:
    """Give an accepted task a name for its key, as an older log may hold it."""
    found = tasks.find(tx, ROOM, number)
    assert found is not None
    body = TaskMoved(before="accepted", status="accepted", label=label)
    tasks.move(tx, found, body, OPERATOR, None)


def test_wk_t12_claiming_a_held_task_names_its_holder(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        with refused("held", "state-conflict") as error:
            await bob.claim(1)
        held = {"holder": "ann", "lease_id": lease.lease_id, "epoch": 0}
        assert error.value.details.items() >= held.items()
        assert "ann" in error.value.message
        assert "handoff" in (error.value.hint or "")

    act(story)
