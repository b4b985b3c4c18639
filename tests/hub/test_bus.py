"""Sending: who receives, what dies and why, what a trace shows (H-51 … H-56, H-60)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tfx.errors import (
    AgentUnavailable,
    InvalidRequest,
    NotFound,
)
from tfx.hub.models import AgentId, Limits, OpId
from tfx.hub.wire import agents, views


def test_h_51_an_unacked_message_comes_again_with_the_next_attempt(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        first = await bed.poll("bob")
        assert [(m.message_id, m.attempt) for m in first.messages] == [(sent.message_id, 1)]
        assert not (await bed.poll("bob")).messages
        await bed.tick(60_001)
        again = await bed.poll("bob")
        assert [(m.message_id, m.attempt) for m in again.messages] == [(sent.message_id, 2)]

    play(story)


def test_h_51_k_25_an_ack_after_the_visibility_time_out_counts(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        await bed.poll("bob")
        await bed.tick(60_001)
        acked = await bed.ack("bob", sent.message_id)
        assert acked.acked_ids == (sent.message_id,)
        assert not (await bed.poll("bob")).messages
        await bed.tick(600_000)
        assert not await bed.dead()

    play(story)


def test_h_51_acks_of_a_poll_are_applied_before_its_claim(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        await bed.poll("bob")
        await bed.tick(60_001)
        result = await bed.poll("bob", acks=(sent.message_id,))
        assert result.acked_ids == (sent.message_id,)
        assert result.messages == ()

    play(story)


def test_h_51_ev_t8_after_five_attempts_a_message_is_dead_and_the_next_one_flows(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        poison = await bed.publish("ann", "bob", ttl_ms=86_400_000)
        for attempt in range(1, 6):
            polled = await bed.poll("bob", most=1)
            assert polled.messages[0].attempt == attempt
            await bed.tick(60_001)
        following = await bed.publish("ann", "bob")
        assert [m.message_id for m in (await bed.poll("bob")).messages] == [following.message_id]
        letters = await bed.dead("bob")
        assert [(d.message_id, d.reason.value, d.attempts) for d in letters] == [
            (poison.message_id, "max-attempts", 5)
        ]
        assert letters[0].last_error

    play(story)


def test_h_51_k_25_an_ack_after_the_last_time_out_takes_the_dead_letter_back(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob", ttl_ms=86_400_000)
        for _ in range(5):
            await bed.poll("bob")
            await bed.tick(60_001)
        assert len(await bed.dead()) == 1
        assert (await bed.ack("bob", sent.message_id)).acked_ids == (sent.message_id,)
        assert not await bed.dead()

    play(story)


def test_h_51_auto_ack_acks_with_the_claim(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob")
        assert len((await bed.poll("bob", auto_ack=True)).messages) == 1
        await bed.tick(60_001)
        assert not (await bed.poll("bob")).messages

    play(story)


def test_h_86_an_ack_of_a_foreign_or_unknown_id_is_not_acked(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("eve")
        sent = await bed.publish("ann", "bob")
        result = await bed.ack("eve", sent.message_id, "nonsense")
        assert result.acked_ids == ()
        assert [(n.message_id, n.reason.value) for n in result.not_acked] == [
            (sent.message_id, "foreign"),
            ("nonsense", "unknown"),
        ]
        assert len((await bed.poll("bob")).messages) == 1

    play(story)


def test_h_52_order_is_priority_then_log_whatever_the_clock_says(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        low = await bed.publish("ann", "bob", priority=3)
        bed.clock.pass_ms(5_000)
        first = await bed.publish("ann", "bob")
        bed.clock.wall_ms -= 3_600_000
        second = await bed.publish("ann", "bob")
        urgent = await bed.publish("ann", "bob", priority=9)
        got = [m.message_id for m in (await bed.poll("bob")).messages]
        assert got == [urgent.message_id, first.message_id, second.message_id, low.message_id]

    play(story)


def test_ev_q6_a_retried_head_keeps_its_place_and_blocks_nobody(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        head = await bed.publish("ann", "bob")
        second = await bed.publish("ann", "bob")
        third = await bed.publish("ann", "bob")
        await bed.poll("bob", most=1)
        polled = await bed.poll("bob", most=1)
        assert polled.messages[0].message_id == second.message_id
        await bed.tick(60_001)
        got = [m.message_id for m in (await bed.poll("bob")).messages]
        assert got == [head.message_id, second.message_id, third.message_id]

    play(story)


def test_h_53_a_message_past_its_ttl_is_a_dead_letter_that_the_sender_sees(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob", ttl_ms=1_000)
        bed.clock.pass_ms(1_001)
        assert not (await bed.poll("bob")).messages  # before any sweep
        await bed.tick()
        (letter,) = await bed.dead("bob")
        assert (letter.message_id, letter.reason.value) == (sent.message_id, "ttl-expired")
        read = await bed.core.views.read_message(
            NOBODY, views.ReadMessageRequest(message_id=sent.message_id)
        )
        assert [(d.state, d.reason) for d in read.deliveries] == [("dead", "ttl-expired")]

    play(story)


def test_h_53_retiring_an_agent_turns_its_waiting_mail_into_dead_letters(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", "news")
        await bed.publish("ann", "bob")
        await bed.publish("ann", "bob")
        await bed.poll("bob", most=1)
        request = agents.RetireRequest(agent_id=AgentId("bob"))
        done = await bed.core.retiring.agents_retire(OPERATOR_CALLER, request)
        assert done.dead_lettered == 2
        assert {d.reason.value for d in await bed.dead()} == {"recipient-retired"}
        with pytest.raises(NotFound) as refused:
            await bed.publish("ann", "bob")
        assert refused.value.reason == "unknown-recipient"
        assert (await bed.publish("ann", "topic:news")).fanout_count == 0
        assert bed.core.unread(AgentId("bob")).total == 0

    play(story)


def test_h_54_a_replay_is_a_new_message_of_the_same_trace_once_per_key(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob", '{"keep":"me"}', ttl_ms=1_000)
        await bed.tick(1_001)
        one = await bed.replay(sent.message_id, op_id="again")
        two = await bed.replay(sent.message_id, op_id="again")
        assert one == two
        (got,) = (await bed.poll("bob")).messages
        assert got.message_id == one.message_id
        assert bytes(got.payload) == b'{"keep":"me"}'
        assert str(got.trace_id) == sent.message_id
        (letter,) = await bed.dead()
        assert letter.replayed_as == one.message_id

    play(story)


def test_h_54_purged_dead_letters_are_gone_from_the_list(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob", ttl_ms=1_000)
        await bed.tick(1_001)
        purge = views.DeadPurgeRequest(message_id=sent.message_id)
        assert (await bed.core.dead.dead_purge(OPERATOR_CALLER, purge)).purged == 1
        assert (await bed.core.dead.dead_purge(OPERATOR_CALLER, purge)).purged == 0
        assert not await bed.dead()
        assert (await bed.ack("bob", sent.message_id)).not_acked[0].reason.value == "dead"

    play(story)


def test_h_30_a_purge_with_its_key_returns_its_first_result(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for _ in range(3):
            await bed.publish("ann", "topic:void")
        purge = views.DeadPurgeRequest(agent_id=AgentId("topic:void"), op_id=OpId("p"))
        assert (await bed.core.dead.dead_purge(OPERATOR_CALLER, purge)).purged == 3
        await bed.publish("ann", "topic:void")
        assert (await bed.core.dead.dead_purge(OPERATOR_CALLER, purge)).purged == 3
        assert len(await bed.dead()) == 1

    play(story)


def test_h_55_an_unknown_recipient_is_refused_with_the_nearest_known_names(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for number in range(30):
            await bed.register(f"other-{number}")
        await bed.register("reviewer")
        with pytest.raises(NotFound) as refused:
            await bed.publish("ann", "reveiwer")
        known = refused.value.details["known"]
        assert refused.value.reason == "unknown-recipient"
        assert isinstance(known, list)
        assert known[0] == "reviewer"
        assert len(known) == 20
        assert "message_posted" not in bed.kinds()

    play(story)


def test_h_55_a_deferred_message_waits_for_its_receiver_to_register(play: Play) -> None:
    async def story(bed: Bed) -> None:
        sent = await bed.publish("operator", "later", deferred=True)
        await bed.register("later")
        assert [m.message_id for m in (await bed.poll("later")).messages] == [sent.message_id]

    play(story)


def test_h_55_a_deferred_message_nobody_comes_for_dies_of_its_ttl(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.publish("operator", "later", deferred=True, ttl_ms=2_000)
        await bed.tick(2_001)
        assert [d.reason.value for d in await bed.dead()] == ["ttl-expired"]

    play(story)


def test_h_56_a_topic_reaches_its_subscribers_at_commit_but_not_its_sender(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("ann", "bob", "cat"):
            await bed.register(name, "news")
        await bed.register("dan")
        sent = await bed.publish("ann", "topic:news")
        assert sent.fanout_count == 2
        await bed.register("late", "news")
        got = {name: len((await bed.poll(name)).messages) for name in ("ann", "bob", "cat", "late")}
        assert got == {"ann": 0, "bob": 1, "cat": 1, "late": 0}

    play(story)


def test_h_56_h_81_a_topic_nobody_listens_to_is_a_dead_letter_at_once(play: Play) -> None:
    async def story(bed: Bed) -> None:
        sent = await bed.publish("ann", "topic:void")
        assert sent.fanout_count == 0
        (letter,) = await bed.dead()
        assert (letter.receiver, letter.reason.value) == ("topic:void", "no-subscriber")

    play(story)


def test_h_56_a_deferred_topic_message_goes_to_the_first_subscriber(play: Play) -> None:
    async def story(bed: Bed) -> None:
        sent = await bed.publish("ann", "topic:void", deferred=True)
        assert sent.fanout_count == 0
        await bed.register("bob", "void")
        await bed.register("cat", "void")
        assert [m.message_id for m in (await bed.poll("bob")).messages] == [sent.message_id]
        assert not (await bed.poll("cat")).messages

    play(story)


def test_ev_q9_full_lanes_and_inboxes_are_refused_with_their_code(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for _ in range(3):
            await bed.publish("ann", "bob")
        with pytest.raises(AgentUnavailable) as lane:
            await bed.publish("ann", "bob")
        assert lane.value.reason == "lane-full"
        await bed.publish("cat", "bob")
        with pytest.raises(AgentUnavailable) as inbox:
            await bed.publish("dan", "bob")
        assert inbox.value.reason == "inbox-full"
        await bed.poll("bob", auto_ack=True)
        await bed.publish("ann", "bob")

    with_bed(tmp_path / "hub.db", story, limits=Limits(lane_open=3, inbox_open=4))


def test_h_29_names_are_letters_of_any_script_in_nfc(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("검토자-1")
        await bed.publish("작성자", "검토자-1")
        assert len((await bed.poll("검토자-1")).messages) == 1
        for bad in ("a b c", "ab", "a/b/c", "cafe\u0301", "new\nline", "x" * 65):
            with pytest.raises(InvalidRequest) as refused:
                await bed.publish(bad, "검토자-1")
            assert refused.value.reason == "bad-id"
            assert refused.value.details["field"] == "from"
        for reserved in ("operator", "hub:hub", "topic:x"):
            with pytest.raises(InvalidRequest):
                await bed.register(reserved)

    play(story)


def test_h_60_a_trace_lists_a_chain_of_five_agents_in_log_order(play: Play) -> None:
    async def story(bed: Bed) -> None:
        names = ["ann", "bob", "cat", "dan", "eve"]
        for name in names:
            await bed.register(name)
        root = await bed.ask("ann", "bob")
        await bed.poll("bob", auto_ack=True)
        second = await bed.publish("bob", "cat", trace_id=root.trace_id)
        third = await bed.ask("cat", "dan", trace_id=root.trace_id)
        fourth = await bed.publish("dan", "eve", trace_id=root.trace_id)
        await bed.answer("dan", "cat", third.correlation_id)
        await bed.answer("bob", "ann", root.correlation_id)
        await bed.publish("ann", "eve")  # another trace
        found = await bed.core.views.trace(NOBODY, views.TraceRequest(trace_id=root.trace_id))
        posted = [i for i in found.items if i.kind in {"message_posted", "reply_posted"}]
        assert [i.message_id for i in posted[:4]] == [
            root.request_message_id,
            second.message_id,
            third.request_message_id,
            fourth.message_id,
        ]
        assert [i.cause for i in posted[4:]] == [third.request_message_id, root.request_message_id]
        assert [i.seq for i in found.items] == sorted(i.seq for i in found.items)
        assert "delivery_acked" in {i.kind for i in found.items}

    play(story)
