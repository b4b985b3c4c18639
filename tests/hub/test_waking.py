"""What a waiting call gets from memory is what the log says (H-57, H-58)."""

from __future__ import annotations

import asyncio

import msgspec

from tests.hub.conftest import Play
from tests.hub.driver import Bed
from tests.hub.waiting import pass_time, until_in_loop
from tfx.hub.models import AskState
from tfx.hub.store.wakeups import Inbox, Settled


def test_h_58_the_answer_that_wakes_an_ask_is_the_one_the_log_holds(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for number, chosen in enumerate((None, "corr-ä-1")):
            key = f"key-{number}"
            asking = asyncio.create_task(
                bed.ask(
                    "ann", "bob", wait_ms=45_000, op_id=key, correlation_id=chosen, trace_id="t-1"
                )
            )
            (question,) = (await bed.poll("bob", wait_ms=45_000)).messages
            assert question.correlation_id is not None
            await bed.answer("bob", "ann", question.correlation_id, '{"because":"ä"}')
            woken = await asyncio.wait_for(asking, 30)
            read = await bed.ask(
                "ann", "bob", wait_ms=45_000, op_id=key, correlation_id=chosen, trace_id="t-1"
            )
            assert woken.state is AskState.ANSWERED
            assert msgspec.json.encode(woken) == msgspec.json.encode(read)

    play(story)


def test_h_58_an_ask_that_is_answered_in_its_own_commit_does_not_wait(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        asking = asyncio.create_task(bed.ask("ann", "bob", wait_ms=45_000, correlation_id="known"))
        answering = asyncio.create_task(bed.answer("bob", "ann", "known"))
        await answering
        assert (await asyncio.wait_for(asking, 30)).state is AskState.ANSWERED

    play(story)


def test_h_58_a_ticket_says_at_the_time_out_that_its_message_was_taken(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        asking = asyncio.create_task(bed.ask("ann", "bob", wait_ms=44_000))
        await bed.poll("bob", wait_ms=45_000)
        await until_in_loop(lambda: bed.core.store.wakeups.waiting(Settled))
        pass_time(44)
        assert (await asyncio.wait_for(asking, 30)).state is AskState.DELIVERED
        assert (await bed.ask("ann", "bob", wait_ms=1)).state is AskState.QUEUED

    play(story)


def test_h_57_an_empty_poll_waits_without_a_command_in_the_writer(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        before = bed.core.store.writer.commits
        polling = asyncio.create_task(bed.poll("bob", wait_ms=45_000))
        await asyncio.sleep(0.05)
        assert bed.core.store.writer.commits == before
        sent = await bed.publish("ann", "bob")
        (found,) = (await asyncio.wait_for(polling, 30)).messages
        assert found.message_id == sent.message_id
        assert bed.core.store.writer.commits == before + 2  # the message, the claim

    play(story)


def test_h_62_an_empty_poll_still_tells_what_is_owed(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.ask("ann", "bob")
        await bed.poll("bob")
        empty = await bed.poll("bob", wait_ms=5)
        assert not empty.messages
        assert [each.agent for each in empty.owes] == ["ann"]

    play(story)


def test_h_20_a_call_that_only_looks_is_no_open_wait(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        wakeups = bed.core.store.wakeups
        async with bed.writer_held():
            looking = asyncio.create_task(bed.poll("bob", wait_ms=0))
            await asyncio.sleep(0)  # it runs up to its write, which is held
            assert wakeups.waiting(Inbox)
            assert wakeups.open_waits == 0
        await asyncio.wait_for(looking, 30)

    play(story)
