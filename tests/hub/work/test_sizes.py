"""What an answer about work carries, and how large it may become (H-31)."""

from __future__ import annotations

import msgspec
import pytest

from tests.hub.work.crew import Crew, PlayCrew
from tfx.hub.wire import leases, work

DETAIL = "d" * 20_000


def size(answer: object) -> int:
    return len(msgspec.json.encode(answer))


def test_h_31_only_show_carries_the_whole_detail_and_a_claim_its_beginning(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        made = await crew.person.ready(detail=DETAIL)
        again = await crew.person.update(1, detail=DETAIL, note="long")
        peeked = (await ann.take_next(claim=False)).task
        taken = (await ann.take_next()).task
        fields = {"task": 1, "session": ann.session}
        claimed = (await ann.ask("work_claim", leases.LeaseResult, **fields)).task
        lease = claimed.lease
        assert lease is not None
        attached = await ann.attach("file", "a.py", lease, task=1)
        handed = await ann.handoff(1, "bob", lease)
        released = (await bob.release(1, handed.lease)).task
        assigned = await ann.update(1, status="assigned")
        forced = (await crew.boss.force(1, assigned.lease)).task
        short = (made, again, attached, handed.task, released, forced)
        assert [(each.detail, each.detail_chars) for each in short] == [(None, 20_000)] * 6
        begun = (peeked, taken, claimed, assigned)
        assert [(each.detail, each.detail_chars) for each in begun] == [("d" * 2_000, 20_000)] * 4
        assert {size(each) < 6_000 for each in (*short, *begun)} == {True}
        seen = await ann.show(1)
        assert (seen.detail, seen.detail_chars) == (DETAIL, 20_000)

    act(story)


@pytest.mark.parametrize("detail", ["", "all about it", "é" * 2_000])
def test_h_31_a_usual_detail_is_whole_in_what_a_claim_answers(act: PlayCrew, detail: str) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready(detail=detail)
        taken = (await ann.take_next()).task
        assert (taken.detail, taken.detail_chars) == (detail, len(detail))

    act(story)


def test_h_31_a_change_carries_few_artifacts_and_how_many_there_are(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        for number in range(30):
            last = await ann.attach("link", f"https://h/{number}/{'x' * 400}", lease, task=1)
        assert (len(last.artifacts), last.artifacts_total) == (5, 30)
        assert last.artifacts[-1].identity.startswith("https://h/29/")
        seen = await ann.show(1)
        assert (len(seen.artifacts), seen.artifacts_total) == (20, 30)
        assert size(last) < 6_000

    act(story)


@pytest.mark.parametrize("max_bytes", [1_024, 4_096, 8_192])
def test_h_31_a_status_fits_and_says_when_there_is_more(act: PlayCrew, max_bytes: int) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        for _ in range(40):
            await crew.owned(ann)
        await crew.boss.lock(1, note="n" * 2_000)
        everything = await ann.status(room=crew.person.room, max_bytes=262_144)
        assert (len(everything.leases), len(everything.locks), everything.more) == (40, 1, False)
        for asked in ({"room": crew.person.room}, {"agent_id": "ann"}):
            seen = await ann.status(**asked, max_bytes=max_bytes)
            assert size(seen) <= max_bytes
            assert seen.leases == everything.leases[: len(seen.leases)]
            assert (0 < len(seen.leases) < 40, seen.more) == (True, True)
        few = await ann.status(room=crew.person.room, limit=3, max_bytes=262_144)
        assert (len(few.leases), few.more) == (3, True)

    act(story)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_h_31_the_history_of_a_task_says_when_there_is_more(act: PlayCrew, limit: int) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        await ann.release(1, lease)
        await ann.claim(1)
        seen = await ann.status(task=1, room=crew.person.room, limit=limit)
        assert [each.epoch for each in seen.leases] == [1, 0][:limit]
        assert seen.more == (limit == 1)

    act(story)


def test_h_31_locks_do_not_crowd_out_the_tasks_of_a_list(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        for number in range(1, 41):
            await crew.person.ready(f"task {number}")
            await crew.boss.lock(number, note="n" * 1_000)
        await crew.boss.lock(note="the room")
        page = await crew.person.board(max_bytes=16_384)
        assert size(page) <= 16_384
        assert (page.locks[0].task, page.locks[1].task, page.locks_total) == (None, 1, 41)
        seen: list[work.TaskLine] = [*page.tasks]
        while page.next_after is not None:
            page = await crew.person.board(max_bytes=16_384, after=page.next_after)
            seen += page.tasks
        assert [each.task for each in seen] == [*range(1, 41)]

    act(story)
