"""Human requests: deadlines, one outcome, checked answers, every closing told (H-64 … H-67)."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, with_bed
from tfx.errors import AccessDenied, InvalidRequest, NotFound, StateConflict
from tfx.hub.models import AgentId, DefaultAction, HumanAction, HumanKind, OpId
from tfx.hub.wire.humans import (
    HumanAnswerRequest,
    HumanAnswerResult,
    HumanInputRequest,
    HumanInputResult,
    HumanListRequest,
    HumanView,
    HumanWithdrawRequest,
)

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "size": {"type": "integer"}},
    "required": ["name"],
}


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


async def open_one(
    bed: Bed,
    *,
    kind: HumanKind = HumanKind.TEXT,
    schema: object = SCHEMA,
    deadline_ms: int = 60_000,
    default: DefaultAction = DefaultAction.DECLINE,
    op_id: str | None = None,
) -> HumanInputResult:
    return await bed.core.humans.request_human_input(
        NOBODY,
        HumanInputRequest(
            requester_agent=AgentId("asker"),
            kind=kind,
            prompt="What is your name?",
            requested_schema=raw(schema),
            deadline_ms=deadline_ms,
            default_action=default,
            op_id=None if op_id is None else OpId(op_id),
        ),
    )


async def answer(
    bed: Bed,
    request_id: str,
    content: object = None,
    *,
    action: HumanAction = HumanAction.ACCEPT,
    digest: str | None = None,
    op_id: str | None = None,
) -> HumanAnswerResult:
    return await bed.core.humans.submit_human_input(
        OPERATOR_CALLER,
        HumanAnswerRequest(
            request_id=request_id,
            action=action,
            content=raw({} if content is None else content),
            digest=digest,
            op_id=None if op_id is None else OpId(op_id),
        ),
    )


async def withdraw(bed: Bed, request_id: str, agent: str = "asker") -> HumanAnswerResult:
    return await bed.core.humans.withdraw_human_input(
        NOBODY, HumanWithdrawRequest(request_id=request_id, requester_agent=AgentId(agent))
    )


async def views(bed: Bed) -> tuple[HumanView, ...]:
    page = await bed.core.humans.human_requests(NOBODY, HumanListRequest(include_closed=True))
    return page.requests


async def told(bed: Bed) -> list[Any]:
    """The payloads that the requester got, in order; each is a response of the hub."""
    got = await bed.poll("asker", auto_ack=True)
    for message in got.messages:
        assert (message.type, message.topic, message.priority) == (
            "human_response",
            "human.response",
            7,
        )
    return [json.loads(bytes(message.payload)) for message in got.messages]


@pytest.mark.parametrize("default", DefaultAction)
def test_h_65_h_87_the_default_action_reaches_the_requester_on_the_exact_deadline(
    play: Play, default: DefaultAction
) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed, default=default, deadline_ms=10_000)
        await bed.tick(9_999)
        assert await told(bed) == []
        await bed.tick(1)
        [said] = await told(bed)
        assert said == {
            "request_id": opened.request_id,
            "action": default.value,
            "content": None,
            "submitted_by": None,
            "timed_out": True,
        }
        [view] = await views(bed)
        assert (view.state, view.closed_at_ms) == ("timed_out", opened.deadline_ms)

    play(story)


def test_h_64_the_hub_wakes_for_the_next_deadline_and_not_for_a_sweep(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await open_one(bed, deadline_ms=400_000)
        await open_one(bed, deadline_ms=1_000)
        bed.clock.pass_ms(700)
        assert await bed.core.upkeep._pause_s() == pytest.approx(0.3)

    play(story)


def test_h_64_what_is_overdue_after_a_restart_fires_at_once(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "hub.db"

    async def opens(bed: Bed) -> None:
        for _ in range(450):
            await open_one(bed, deadline_ms=10_000)

    async def finds(bed: Bed) -> None:
        await bed.core.upkeep.tick()
        assert len(await views(bed)) == 100
        assert bed.core.store.tally.pending_humans == 0
        assert len(await told(bed)) == 20

    with_bed(path, opens, clock=clock)
    clock.pass_ms(3_600_000)
    with_bed(path, finds, clock=clock, instance="instance-2")


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (HumanAction.ACCEPT, "accepted"),
        (HumanAction.DECLINE, "declined"),
        (HumanAction.CANCEL, "cancelled"),
        (None, "withdrawn"),
    ],
)
def test_h_65_every_closing_reaches_the_requester_in_its_own_transaction(
    play: Play, action: HumanAction | None, state: str
) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        if action is None:
            closed = await withdraw(bed, opened.request_id)
        else:
            closed = await answer(bed, opened.request_id, {"name": "Kim"}, action=action)
        assert closed.new_state == state
        [said] = await told(bed)
        assert said["request_id"] == opened.request_id
        assert said["action"] == ("withdraw" if action is None else action.value)
        assert said["content"] == ({"name": "Kim"} if action is HumanAction.ACCEPT else None)
        assert said["timed_out"] is False
        # nothing is told twice, however long the deadline has passed
        await bed.tick(3_600_000)
        assert await told(bed) == []

    play(story)


def test_h_65_the_response_waits_for_a_requester_that_is_away_for_days(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        await answer(bed, opened.request_id, {"name": "Kim"})
        await bed.tick(20 * 86_400_000)
        assert len(await told(bed)) == 1

    play(story)


def test_h_66_a_second_answer_is_told_the_first_state(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        await answer(bed, opened.request_id, action=HumanAction.DECLINE)
        for again in (
            answer(bed, opened.request_id, {"name": "Kim"}),
            withdraw(bed, opened.request_id),
        ):
            with pytest.raises(StateConflict) as caught:
                await again
            assert caught.value.reason == "already-answered"
            assert caught.value.details["state"] == "declined"
        assert len(await told(bed)) == 1
        with pytest.raises(NotFound):
            await answer(bed, "no-such-request")

    play(story)


def test_h_66_the_same_key_gives_the_first_result_again(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed, op_id="open")
        assert await open_one(bed, op_id="open") == opened
        first = await answer(bed, opened.request_id, {"name": "Kim"}, op_id="k")
        assert await answer(bed, opened.request_id, {"name": "Kim"}, op_id="k") == first
        with pytest.raises(StateConflict) as caught:
            await answer(bed, opened.request_id, {"name": "Lee"}, op_id="k")
        assert caught.value.reason == "idempotency-conflict"

    play(story)


def test_h_66_an_answer_is_bound_to_the_question_that_was_shown(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        with pytest.raises(StateConflict) as caught:
            await answer(bed, opened.request_id, {"name": "Kim"}, digest="0" * 64)
        assert caught.value.reason == "question-differs"
        [view] = await views(bed)
        await answer(bed, opened.request_id, {"name": "Kim"}, digest=view.digest)

    play(story)


def test_h_66_an_answer_past_the_deadline_loses_even_before_the_sweep(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed, deadline_ms=5_000)
        bed.clock.pass_ms(5_000)
        with pytest.raises(StateConflict) as caught:
            await answer(bed, opened.request_id, {"name": "Kim"})
        assert caught.value.details["state"] == "timed_out"
        [said] = await told(bed)
        assert said["timed_out"]

    play(story)


def test_h_66_answer_and_deadline_race_to_exactly_one_outcome(play: Play) -> None:
    dice = random.Random(4)

    async def story(bed: Bed) -> None:
        outcomes = {"accepted": 0, "timed_out": 0}
        for _ in range(1_000):
            opened = await open_one(bed, deadline_ms=1_000)
            bed.clock.pass_ms(999)
            racers = [
                asyncio.ensure_future(answer(bed, opened.request_id, {"name": "Kim"})),
                asyncio.ensure_future(answer(bed, opened.request_id, {"name": "Lee"})),
                asyncio.ensure_future(bed.core.upkeep.sweep_humans()),
            ]
            dice.shuffle(racers)
            for _ in range(dice.randrange(3)):
                await asyncio.sleep(0)
            bed.clock.pass_ms(dice.randrange(2))
            done = await asyncio.gather(*racers, return_exceptions=True)
            await bed.core.upkeep.sweep_humans()
            won = [each for each in done if isinstance(each, HumanAnswerResult)]
            lost = [each for each in done if isinstance(each, StateConflict)]
            assert len(won) + len(lost) == 2
            if not won:
                bed.clock.pass_ms(1)
                await bed.core.upkeep.sweep_humans()
            [said] = await told(bed)
            outcome = "timed_out" if said["timed_out"] else "accepted"
            assert len(won) == (outcome == "accepted")
            outcomes[outcome] += 1
        assert min(outcomes.values()) > 50
        assert bed.core.store.tally.pending_humans == 0

    play(story)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ({}, "required"),
        ({"name": "K"}, "minLength"),
        ({"name": 7}, "type"),
        ({"name": "Kim", "size": "canary-value"}, "type"),
    ],
)
def test_h_67_content_that_does_not_fit_the_schema_is_refused_unquoted(
    play: Play, content: object, rule: str
) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        with pytest.raises(InvalidRequest) as caught:
            await answer(bed, opened.request_id, content)
        assert caught.value.reason == "bad-content"
        assert caught.value.details["rule"] == rule
        assert "canary-value" not in str(caught.value.message) + str(caught.value.details)
        assert (await answer(bed, opened.request_id, {"name": "Kim"})).new_state == "accepted"

    play(story)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": 7},
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "other.json"}}},
        {"pattern": "("},
    ],
)
def test_h_67_a_schema_that_is_none_or_needs_the_network_is_refused_when_opened(
    play: Play, schema: object
) -> None:
    async def story(bed: Bed) -> None:
        with pytest.raises(InvalidRequest) as caught:
            await open_one(bed, schema=schema)
        assert caught.value.reason == "bad-schema"
        assert await views(bed) == ()

    play(story)


def test_h_65_only_the_requester_may_withdraw(play: Play) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed)
        with pytest.raises(AccessDenied) as caught:
            await withdraw(bed, opened.request_id, "somebody")
        assert caught.value.reason == "actor-mismatch"

    play(story)


def test_h_48_a_secret_is_delivered_until_its_ack_and_no_longer_than_ten_minutes(
    play: Play,
) -> None:
    async def story(bed: Bed) -> None:
        opened = await open_one(bed, kind=HumanKind.CREDENTIAL)
        await answer(bed, opened.request_id, {"name": "canary"}, op_id="k")
        for _ in range(2):
            got = await bed.poll("asker")
            said = json.loads(bytes(got.messages[0].payload))
            assert (said["content"], said["secret"]) == ({"name": "canary"}, "here")
            await bed.tick(61_000)
        await bed.poll("asker", acks=(got.messages[0].message_id,))
        assert not bed.core.inbox._vault._held
        late = await open_one(bed, kind=HumanKind.CAPTCHA)
        await answer(bed, late.request_id, {"name": "canary"})
        await bed.tick(600_001)
        assert not bed.core.inbox._vault._held
        [lost] = await told(bed)
        assert (lost["content"], lost["error"]) == (None, "secret-lost")
        rows = bed.rows("SELECT body, payload FROM log")
        assert b"canary" not in b"".join(str(row).encode() for row in rows)

    play(story)


def test_h_48_the_fold_of_the_log_is_the_projections_with_secrets_in_it(play: Play) -> None:
    async def story(bed: Bed) -> None:
        from tfx.hub.wire.admin import RebuildCheckRequest  # noqa: PLC0415

        for kind in HumanKind:
            opened = await open_one(bed, kind=kind)
            await answer(bed, opened.request_id, {"name": "Kim"})
        opened = await open_one(bed)
        await withdraw(bed, opened.request_id)
        found = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, RebuildCheckRequest())
        assert found.equal, found.differences

    play(story)
