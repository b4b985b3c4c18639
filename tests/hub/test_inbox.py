"""Receiving: waits, sizes, counts, what a poll narrows (H-31, H-38, H-57, H-71)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, Bed
from tfx.hub.models import AgentId
from tfx.hub.wire import messages, views


def test_h_57_h_84_a_long_poll_is_answered_by_the_commit(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        waiting = asyncio.create_task(bed.poll("bob", wait_ms=45_000))
        await asyncio.sleep(0.05)
        assert bed.core.store.wakeups.open_waits == 1
        sent = await bed.publish("ann", "bob")
        polled = await asyncio.wait_for(waiting, 30)
        assert [m.message_id for m in polled.messages] == [sent.message_id]
        assert bed.core.store.wakeups.open_waits == 0

    play(story)


def test_h_57_five_hundred_waits_cost_no_thread_and_no_transaction(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for number in range(500):
            await bed.register(f"agent-{number}")
        waits = [
            asyncio.create_task(bed.poll(f"agent-{number}", wait_ms=45_000))
            for number in range(500)
        ]
        while bed.core.store.wakeups.open_waits < 500 or bed.core.store.writer.pending:  # noqa: ASYNC110  (nothing tells when all wait)
            await asyncio.sleep(0.01)
        before = bed.core.counted.commit.count
        await bed.publish("ann", "agent-7")
        assert len((await waits[7]).messages) == 1
        assert bed.core.counted.commit.count == before + 2
        bed.core.drain()
        results = await asyncio.gather(*waits)
        assert sum(len(each.messages) for each in results) == 1

    play(story)


def test_ev_t10_a_lost_wake_up_is_made_up_for_from_the_database(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ask = await bed.ask("ann", "bob")
        await bed.poll("bob")
        monkeypatch.setattr(bed.core.store.wakeups, "fire", lambda _signals: None)
        waiting = asyncio.create_task(bed.poll("bob", wait_ms=45_000))
        asking = asyncio.create_task(bed.ask("ann", "bob", wait_ms=45_000, op_id="k"))
        await asyncio.sleep(0.05)
        sent = await bed.publish("ann", "bob")
        await bed.answer("bob", "ann", ask.correlation_id)
        await asyncio.sleep(0.05)
        assert not waiting.done()
        monkeypatch.undo()
        await bed.core.upkeep.wake_the_forgotten()
        polled = await asyncio.wait_for(waiting, 30)
        assert sent.message_id in {m.message_id for m in polled.messages}
        bed.core.drain()
        assert (await asyncio.wait_for(asking, 30)).response is None

    play(story)


def test_h_17_drain_answers_every_wait_at_once(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        waits = [asyncio.create_task(bed.poll("bob", wait_ms=45_000)) for _ in range(5)]
        asks = [asyncio.create_task(bed.ask("ann", "bob", wait_ms=45_000)) for _ in range(5)]
        await asyncio.sleep(0.1)
        bed.core.drain()
        await asyncio.gather(*waits)
        tickets = await asyncio.gather(*asks)
        assert all(each.response is None for each in tickets)
        assert (await bed.poll("bob", wait_ms=45_000)).server_time_ms

    play(story)


def test_h_31_a_poll_result_stays_within_its_bytes_and_claims_only_what_it_shows(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for number in range(20):
            await bed.publish("ann", "bob", f'{{"n":{number},"text":"{"x" * 1_500}"}}')
        seen: list[int] = []
        while True:
            polled = await bed.poll("bob", auto_ack=True)
            assert len(msgspec.json.encode(polled)) <= 16_384
            seen += [msgspec.json.decode(m.payload)["n"] for m in polled.messages]
            if not polled.more:
                break
        assert seen == list(range(20))

    play(story)


def test_h_31_a_message_that_is_too_large_comes_cut_and_is_read_in_pieces(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        text = "äöü€😀" * 8_000
        payload = msgspec.json.encode({"text": text})
        sent = await bed.publish("ann", "bob", payload.decode())
        polled = await bed.poll("bob")
        (message,) = polled.messages
        assert message.cut
        assert len(msgspec.json.encode(polled)) <= 16_384
        assert len(bytes(message.payload)) > 8_000
        pieces, offset = [], 0
        while True:
            read = await bed.core.views.read_message(
                NOBODY, views.ReadMessageRequest(message_id=sent.message_id, offset=offset)
            )
            assert len(msgspec.json.encode(read)) <= 16_384
            pieces.append(read.text)
            if read.next_offset is None:
                break
            offset = read.next_offset
        assert "".join(pieces).encode() == payload

    play(story)


def test_h_38_unread_counts_what_is_queued_and_what_of_it_is_urgent(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for priority in (1, 5, 7, 9):
            await bed.publish("ann", "bob", priority=priority)
        unread = bed.core.unread(AgentId("bob"))
        assert (unread.total, unread.urgent) == (4, 2)
        await bed.poll("bob", most=1)
        unread = bed.core.unread(AgentId("bob"))
        assert (unread.total, unread.urgent) == (3, 1)

    play(story)


def test_h_71_wait_returns_a_summary_and_claims_nothing(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        request = messages.WaitRequest(agent_id=AgentId("bob"), wait_ms=45_000)
        waiting = asyncio.create_task(bed.core.inbox.wait(NOBODY, request))
        await asyncio.sleep(0.05)
        await bed.publish("ann", "bob", priority=8)
        result = await asyncio.wait_for(waiting, 30)
        assert (result.total, result.urgent) == (1, 1)
        assert result.first[0].sender == "ann"
        assert (await bed.poll("bob")).messages[0].attempt == 1
        none = messages.WaitRequest(agent_id=AgentId("bob"), wait_ms=0)
        assert (await bed.core.inbox.wait(NOBODY, none)).total == 0

    play(story)


def test_include_topics_narrows_what_is_claimed(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", topic="a")
        await bed.publish("ann", "bob", topic="b")
        assert [m.topic for m in (await bed.poll("bob", topics=("b", "c"))).messages] == ["b"]
        assert [m.topic for m in (await bed.poll("bob")).messages] == ["a"]

    play(story)
