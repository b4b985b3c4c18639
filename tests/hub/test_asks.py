"""Asks and handoffs: one answer, whoever races for it (H-58, H-59, EV-R)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tests.hub.waiting import until_in_loop
from tfx.errors import (
    AccessDenied,
    InvalidRequest,
    NotFound,
    StateConflict,
)
from tfx.hub.models import AgentId, AskState, HandoffState, OpId, StatusScope
from tfx.hub.store.wakeups import Settled
from tfx.hub.wire import messages, views
from tfx.hub.wire.admin import RebuildRequest


def test_h_58_an_ask_returns_the_answer_of_the_agent_that_was_asked(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        asking = asyncio.create_task(bed.ask("ann", "bob", "why?", wait_ms=45_000))
        polled = await bed.poll("bob", wait_ms=45_000)
        (question,) = polled.messages
        assert msgspec.json.decode(question.payload)["question"] == "why?"
        assert question.correlation_id is not None
        await bed.answer("bob", "ann", question.correlation_id, '{"because":42}')
        result = await asyncio.wait_for(asking, 30)
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
            (question,) = (await bed.poll("bob", wait_ms=45_000, auto_ack=True)).messages
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
        await until_in_loop(lambda: bed.core.store.wakeups.waiting(Settled))
        await bed.tick(1_001)
        assert (await asyncio.wait_for(asking, 30)).state is AskState.DEAD

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
