from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tfx.errors import (
    AccessDenied,
    AgentUnavailable,
    InvalidRequest,
    NotFound,
    StateConflict,
)
from tfx.hub.models import AgentId, AskState, HandoffState, Limits, OpId, StatusScope
from tfx.hub.wire import agents, messages, views
from tfx.hub.wire.admin import RebuildRequest


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


def test_h_57_h_84_a_long_poll_is_answered_by_the_commit(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        waiting = asyncio.create_task(bed.poll("bob", wait_ms=45_000))
        await asyncio.sleep(0.05)
        assert bed.core.store.wakeups.open_waits == 1
        sent = await bed.publish("ann", "bob")
        polled = await asyncio.wait_for(waiting, 10)
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
        polled = await asyncio.wait_for(waiting, 10)
        assert sent.message_id in {m.message_id for m in polled.messages}
        bed.core.drain()
        assert (await asyncio.wait_for(asking, 10)).response is None

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


def test_h_58_an_ask_returns_the_answer_of_the_agent_that_was_asked(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        asking = asyncio.create_task(bed.ask("ann", "bob", "why?", wait_ms=45_000))
        polled = await bed.poll("bob", wait_ms=10_000)
        (question,) = polled.messages
        assert msgspec.json.decode(question.payload)["question"] == "why?"
        assert question.correlation_id is not None
        await bed.answer("bob", "ann", question.correlation_id, '{"because":42}')
        result = await asyncio.wait_for(asking, 10)
        assert result.state is AskState.ANSWERED
        assert result.response is not None
        assert bytes(result.response.payload) == b'{"because":42}'
        assert result.response.trace_id == result.trace_id

    play(story)


def test_h_58_a_ticket_is_redeemed_by_the_same_ask_with_its_key(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob", op_id="q1")
        assert (ticket.state, ticket.response) == (AskState.QUEUED, None)
        await bed.poll("bob")
        assert (await bed.ask("ann", "bob", op_id="q1")).state is AskState.DELIVERED
        await bed.answer("bob", "ann", ticket.correlation_id)
        redeemed = await bed.ask("ann", "bob", op_id="q1")
        assert redeemed.request_message_id == ticket.request_message_id
        assert redeemed.response is not None
        assert await bed.ask("ann", "bob", op_id="q1") == redeemed
        # Returned with a key means acked: the inbox does not show it once more.
        assert not (await bed.poll("ann")).messages

    play(story)


def test_h_58_a_ticket_is_redeemed_by_polling(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob")
        await bed.answer("bob", "ann", ticket.correlation_id)
        (answer,) = (await bed.poll("ann")).messages
        assert answer.correlation_id == ticket.correlation_id
        assert answer.type.value == "response"

    play(story)


def test_h_58_h_85_a_forged_correlation_id_answers_nothing(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("ann", "bob", "eve"):
            await bed.register(name)
        ticket = await bed.ask("ann", "bob")
        with pytest.raises(AccessDenied) as forged:
            await bed.answer("eve", "ann", ticket.correlation_id)
        assert forged.value.reason == "actor-mismatch"
        with pytest.raises(NotFound) as unknown:
            await bed.answer("bob", "ann", "0" * 32)
        assert unknown.value.reason == "unknown-request"

    play(story)


def test_ev_r1_a_request_has_one_answer_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def first(bed: Bed) -> tuple[str, str]:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob")
        answer = await bed.answer("bob", "ann", ticket.correlation_id)
        await bed.poll("ann", auto_ack=True)
        for payload in ('{"because":1}', '{"other":2}'):
            with pytest.raises(StateConflict) as refused:
                await bed.answer("bob", "ann", ticket.correlation_id, payload)
            assert refused.value.reason == "already-answered"
            assert refused.value.details["message_id"] == answer.message_id
        return ticket.correlation_id, answer.message_id

    correlation, answer_id = with_bed(path, first)

    async def second(bed: Bed) -> None:
        for _ in range(2):
            with pytest.raises(StateConflict) as refused:
                await bed.answer("bob", "ann", correlation)
            assert refused.value.details["message_id"] == answer_id
            await bed.core.upkeep.rebuild(OPERATOR_CALLER, RebuildRequest())
        assert bed.kinds().count("reply_posted") == 1

    with_bed(path, second, instance="instance-2")


def test_ev_r4_of_answers_that_race_exactly_one_wins(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob")
        results = await asyncio.gather(
            *(bed.answer("bob", "ann", ticket.correlation_id, f'{{"n":{n}}}') for n in range(20)),
            return_exceptions=True,
        )
        won = [each for each in results if isinstance(each, messages.PublishResult)]
        lost = [each for each in results if isinstance(each, StateConflict)]
        assert (len(won), len(lost)) == (1, 19)
        assert {each.details["message_id"] for each in lost} == {won[0].message_id}
        assert bed.kinds().count("reply_posted") == 1

    play(story)


def test_h_58_an_answer_that_comes_with_the_time_out_is_not_lost(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for number in range(20):
            asking = asyncio.create_task(bed.ask("ann", "bob", f"{number}", wait_ms=3))
            (question,) = (await bed.poll("bob", wait_ms=10_000, auto_ack=True)).messages
            assert question.correlation_id is not None
            await bed.answer("bob", "ann", question.correlation_id)
            result = await asking
            inbox = (await bed.poll("ann", auto_ack=True)).messages
            assert [m.correlation_id for m in inbox] == [result.correlation_id]

    play(story)


def test_ev_r2_a_reply_needs_a_request_and_goes_back_to_its_sender(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("ann", "bob", "eve"):
            await bed.register(name)
        ticket = await bed.ask("ann", "bob")
        with pytest.raises(AccessDenied):
            await bed.answer("bob", "eve", ticket.correlation_id)
        answer = await bed.answer("bob", "ann", ticket.correlation_id)
        with pytest.raises(NotFound):
            await bed.answer("ann", "bob", answer.message_id)  # a reply to a reply
        event = await bed.publish("ann", "bob")
        with pytest.raises(NotFound):
            await bed.answer("bob", "ann", event.message_id)
        with pytest.raises(InvalidRequest) as own:
            await bed.ask("ann", "ann")
        assert own.value.reason == "self-ask"

    play(story)


def test_ev_r3_the_state_of_a_request_stays_derivable(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        states = []
        ticket = await bed.ask("ann", "bob", op_id="q")
        states.append(ticket.state)
        await bed.poll("bob", auto_ack=True)
        states.append((await bed.ask("ann", "bob", op_id="q")).state)
        await bed.answer("bob", "ann", ticket.correlation_id)
        states.append((await bed.ask("ann", "bob", op_id="q")).state)
        other = await bed.ask("ann", "bob", "unheard", op_id="q2", ttl_ms=1_000)
        await bed.tick(1_001)
        states.append((await bed.ask("ann", "bob", "unheard", op_id="q2", ttl_ms=1_000)).state)
        assert [s.value for s in states] == ["queued", "delivered", "answered", "dead"]
        assert other.state is AskState.QUEUED

    play(story)


def test_h_58_an_ask_that_dies_while_waited_for_says_so(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        asking = asyncio.create_task(bed.ask("ann", "bob", wait_ms=45_000, ttl_ms=1_000))
        await asyncio.sleep(0.05)
        await bed.tick(1_001)
        assert (await asyncio.wait_for(asking, 10)).state is AskState.DEAD

    play(story)


@pytest.mark.parametrize(
    ("payload", "state"),
    [
        ('{"accepted":true}', HandoffState.ACCEPTED),
        ('{"accepted":false}', HandoffState.DECLINED),
        (None, HandoffState.DEAD),
    ],
)
def test_h_59_the_sender_of_a_handoff_sees_its_outcome(
    play: Play, payload: str | None, state: HandoffState
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        request = messages.HandoffRequest(
            sender=AgentId("ann"),
            to=AgentId("bob"),
            topic="work",
            task="finish it",
            acceptance_criteria=("green", "small"),
            context_refs=("file:a.py",),
            op_id=OpId("h1"),
        )
        sent = await bed.core.asks.handoff(NOBODY, request)
        assert (sent.state, sent.assigned_to) == (HandoffState.QUEUED, "bob")
        if payload is None:
            await bed.tick(600_001)
        else:
            (task,) = (await bed.poll("bob")).messages
            assert msgspec.json.decode(task.payload)["acceptance_criteria"] == ["green", "small"]
            assert (await bed.core.asks.handoff(NOBODY, request)).state is HandoffState.DELIVERED
            await bed.answer("bob", "ann", sent.correlation_id, payload)
        assert (await bed.core.asks.handoff(NOBODY, request)).state is state

    play(story)


def test_h_62_owed_and_awaited_answers_are_shown_until_given(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for name in ("ann", "bob"):
            await bed.register(name)
        ticket = await bed.ask("ann", "bob")
        polled = await bed.poll("bob", auto_ack=True)
        assert [o.message_id for o in polled.owes] == [ticket.request_message_id]
        assert [o.agent for o in (await bed.poll("ann")).awaits] == ["bob"]
        status = await bed.core.views.status(
            NOBODY, views.StatusRequest(scope=StatusScope.AGENT, agent_id=AgentId("bob"))
        )
        assert status.agent is not None
        assert status.agent.owes == 1
        assert bed.core.store.tally.owed == 1
        await bed.answer("bob", "ann", ticket.correlation_id)
        assert not (await bed.poll("bob")).owes
        assert bed.core.store.tally.owed == 0

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
        result = await asyncio.wait_for(waiting, 10)
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
