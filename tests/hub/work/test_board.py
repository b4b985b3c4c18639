"""The board: who writes it, its revision, its tools, retries (WK-B1, B2, B5, B6)."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tests.hub.work.crew import ELSEWHERE, HOUR_MS, ROOM, Crew, PlayCrew, Worker, refused
from tfx.errors import TfxError
from tfx.hub.models import Toolset
from tfx.hub.operations import OPERATIONS
from tfx.hub.operations_work import WORK_ROWS
from tfx.hub.transport.mcp.tools import tools_of
from tfx.hub.transport.posts import bind

Step = Callable[[Crew, Worker, Worker, str], Awaitable[object]]


async def add(crew: Crew, _ann: Worker, _bob: Worker, key: str) -> object:
    return await crew.person.add("new", op_id=key)


async def claim(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.claim(3, op_id=key)


async def take_next(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.take_next(op_id=key)


async def update(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.update(1, status="blocked", op_id=key)


async def attach(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.attach("file", "a.py", task=1, op_id=key)


async def release(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.release(1, op_id=key)


async def handoff(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    return await ann.handoff(1, "bob", op_id=key)


async def renew(_crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    lease = (await ann.show(4)).lease
    assert lease is not None
    return await ann.renew(lease, op_id=key)


async def review(_crew: Crew, _ann: Worker, bob: Worker, key: str) -> object:
    return await bob.review(2, op_id=key)


async def force(crew: Crew, ann: Worker, _bob: Worker, key: str) -> object:
    del ann
    return await crew.boss.force(1, epoch=0, lease_id=await _lease_of(crew, 1), op_id=key)


async def lock(crew: Crew, _ann: Worker, _bob: Worker, key: str) -> object:
    return await crew.boss.lock(3, op_id=key)


async def _lease_of(crew: Crew, task: int) -> str:
    ((found,),) = crew.bed.rows(
        "SELECT id FROM work_leases WHERE task = (SELECT stream FROM tasks WHERE number = ?)", task
    )
    return str(found)


STEPS: list[Step] = [
    add, claim, take_next, update, attach, release, handoff, renew, review, force, lock,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_wk_b1_with_its_key_a_mutation_is_done_once_and_answered_alike(
    act: PlayCrew, step: Step
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_progress")
        await crew.owned(ann, "in_review")
        await crew.person.ready()
        await crew.person.ready()
        await ann.claim(4, ttl_ms=HOUR_MS)
        first = await step(crew, ann, bob, "key-1")
        seq = crew.last_seq()
        crew.clock.pass_ms(1_000)
        assert await step(crew, ann, bob, "key-1") == first
        assert crew.last_seq() == seq
        with refused("idempotency-conflict", "state-conflict"):
            await crew.boss.ask(
                "work_lock", msgspec.Struct, reason="policy", note="other", op_id="key-1",
                agent_id=None if step in {add, force, lock} else _actor(step),
            )  # fmt: skip

    act(story)


def _actor(step: Step) -> str:
    return "bob" if step is review else "ann"


def test_wk_b1_a_retry_after_the_lease_was_lost_is_no_second_claim(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.person.ready()
        first = await ann.claim(1, op_id="key-1")
        await ann.release(1)
        await bob.claim(1)
        again = await ann.claim(1, op_id="key-1")  # the first result, and nothing more
        assert (again.lease_id, again.epoch) == (first.lease_id, 0)
        assert crew.active() == [(1, "bob", 1)]

    act(story)


def test_wk_b2_the_revision_moves_with_what_a_board_shows_and_with_nothing_else(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        elsewhere = Worker(crew.bed, None, None, room=ELSEWHERE)
        await crew.person.ready()

        async def moves(step: Awaitable[object]) -> bool:
            before = await crew.person.board()
            with contextlib.suppress(TfxError):
                await step
            after = await crew.person.board()
            assert after.revision >= before.revision
            if after.revision == before.revision:
                assert after == before
            return after.revision > before.revision

        assert await moves(ann.claim(1, ttl_ms=HOUR_MS))
        assert await moves(ann.update(1, status="in_progress"))
        assert await moves(ann.update(1, title="clearer"))
        assert await moves(crew.person.add())
        assert await moves(crew.boss.lock(1))
        assert await moves(crew.boss.unlock(1))
        assert await moves(ann.update(1, status="in_review"))
        assert await moves(bob.review(1))
        assert await moves(bob.end_review(1))
        assert await moves(bob.review(1))
        assert await moves(bob.leave())  # its review ends with it
        assert await moves(ann.update(1, status="in_progress"))
        bob = await crew.hire("bob")
        assert not await moves(bob.claim(1))  # denied
        assert not await moves(ann.beat(1))
        assert not await moves(crew.bed.publish("ann", "bob"))
        assert not await moves(elsewhere.add())
        assert not await moves(ann.claim(1))
        assert not await moves(crew.bed.tick(HOUR_MS - 60_000))  # the holder is warned
        assert await moves(crew.bed.tick(60_000))  # the lease expires
        await ann.claim(1)
        assert await moves(ann.leave())  # nobody holds it now

    act(story)


def test_wk_b2_the_revision_is_the_last_seq_that_mattered(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        await crew.person.ready()
        await ann.claim(1)
        board = await crew.person.board()
        assert board.revision == crew.last_seq()
        assert (await crew.person.show(1)).revision == crew.last_seq()
        assert board.revision == max(line.revision for line in board.tasks)
        await crew.bed.publish("ann", "ann", deferred=True)
        assert (await crew.person.board()).revision == board.revision < crew.last_seq()

    act(story)


def test_wk_b2_the_revision_does_not_fall_when_old_tasks_are_forgotten(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for _ in range(3):
            await crew.person.ready()
        for number in (1, 2, 3):
            await ann.claim(number)
            await ann.update(number, status="in_progress")
            await ann.update(number, status="done")
        before = (await crew.person.board()).revision
        crew.clock.pass_ms(200 * 24 * HOUR_MS)
        gone = await crew.bed.core.upkeep.forget()
        assert gone.tasks == 2  # the newest stays
        assert (await crew.person.board()).revision == before
        assert (await crew.person.add()).task == 4

    act(story)


def test_wk_b2_what_is_rolled_back_tells_nobody(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        board = await crew.person.board()
        sql = (
            "CREATE TEMP TRIGGER boom AFTER INSERT ON work_leases "
            "BEGIN SELECT RAISE(ABORT, 'injected'); END"
        )
        await crew.bed.core.store.write(lambda tx: tx.all(sql))
        with refused("constraint"):
            await ann.handoff(1, "bob", lease)
        await crew.bed.core.store.write(lambda tx: tx.all("DROP TRIGGER boom"))
        assert (await ann.mail(), await bob.mail()) == ([], [])
        assert await crew.person.board() == board

    act(story)


def test_wk_b6_the_advertised_tools_are_those_that_have_handlers(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        handlers = crew.bed.core.handlers
        assert set(handlers) | {"shutdown"} == set(OPERATIONS)
        bound = bind({**handlers, "shutdown": handlers["status"]})
        tools = tools_of(bound, crew.bed.core.unread, lambda _code: None)
        offered = [tool for tool in tools if tool.toolset is Toolset.WORK]
        assert {tool.name for tool in offered} == {
            row.name for row in WORK_ROWS if row.toolset is Toolset.WORK
        }
        listed = [
            {"name": each.name, "description": each.description, "inputSchema": each.schema}
            for each in offered
        ]
        assert len(msgspec.json.encode(listed)) < 6 * 1024
        missing = {name: each for name, each in handlers.items() if name != "work_claim"}
        with pytest.raises(Exception, match="work_claim"):
            bind({**missing, "shutdown": handlers["status"]})

    act(story)


def test_a_line_of_the_board_says_who_holds_and_who_reviews(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_review")
        await bob.review(1)
        await crew.assigned("cat")
        parent = await crew.person.add(branch="b", pr="p")
        await crew.person.ready(parent=parent.task, blocked_by=[1])
        held, by_hand, top, child = (await crew.person.board()).tasks
        assert (held.agent_id, held.holder, held.reviewer) == ("ann", "ann", "bob")
        assert (by_hand.agent_id, by_hand.holder, by_hand.reviewer) == ("cat", None, None)
        assert (top.branch, top.pr, top.parent) == ("b", "p", None)
        assert (child.parent, child.ready, len(child.waits_for)) == (3, False, 1)
        assert (await crew.person.show(1)).room == ROOM

    act(story)
