"""What was open in a triflux database is alive afterwards (K-35, K-36)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.hub.driver import FakeClock, open_core
from tests.upgrade.scenes import (
    LAST_MS,
    NAMES,
    NOW_MS,
    Site,
    agent,
    change,
    empty_v1,
    message,
    select,
    unpack,
    upgraded,
)
from tfx.hub.models import AgentId, Caller, HumanAction, HumanState
from tfx.hub.wire import messages as wire
from tfx.hub.wire.humans import HumanAnswerRequest
from tfx.upgrade.model import Task


def test_k35_what_was_open_gets_its_remaining_time_and_what_was_over_stays_so(site: Site) -> None:
    path = upgraded(
        site,
        agent("bob"),
        message("alive", expires=LAST_MS + 1_000),
        message("over", expires=LAST_MS - 1),
        message("huge", expires=2**63 - 1),
    )
    assert select(path, "SELECT m.id, due_at_ms FROM deliveries d JOIN messages m "
                        "ON m.stream = message ORDER BY m.id") == [
        ("alive", NOW_MS + 1_000),
        ("huge", 2**63 - 1),
        ("over", LAST_MS - 1),
    ]  # fmt: skip
    kept = select(
        path,
        "SELECT json_extract(body, '$.message.expires_at_ms') FROM log "
        "WHERE json_extract(body, '$.key') = 'alive'",
    )
    assert kept == [(LAST_MS + 1_000,)]


def test_k35_a_row_from_the_future_does_not_make_the_rest_old(site: Site) -> None:
    path = upgraded(
        site, message("m", expires=LAST_MS + 9), agent("bob", seen=NOW_MS * 1_000), agent("ann")
    )
    assert select(path, "SELECT due_at_ms FROM deliveries") == [(NOW_MS + 9,)]


@pytest.mark.parametrize("name", NAMES)
def test_must_show_undelivered_mail_is_alive_afterwards(
    site: Site, tmp_path: Path, name: str
) -> None:
    unpack(name, site.database)
    original = unpack(name, tmp_path / "original.db")
    receipt = site.work(Task.UPGRADE)
    assert receipt.adopted is not None
    last, shift = receipt.adopted.last_activity_ms, receipt.adopted.shift_ms
    undelivered = select(
        original,
        "SELECT id, expires_at_ms + ? FROM messages WHERE status IN ('queued', 'delivered') "
        "AND expires_at_ms > ? AND NOT EXISTS (SELECT 1 FROM message_inbox i "
        "WHERE i.message_id = id AND i.acked_at_ms IS NOT NULL) ORDER BY id",
        shift,
        last,
    )
    assert len(undelivered) > 50
    alive = select(
        site.database,
        "SELECT DISTINCT m.id, d.due_at_ms FROM deliveries d JOIN messages m "
        "ON m.stream = d.message WHERE d.state = 'queued' ORDER BY m.id",
    )
    assert set(undelivered) <= set(alive)
    assert all(int(str(due)) > NOW_MS for _, due in undelivered)

    async def story() -> None:
        clock = FakeClock()
        clock.wall_ms = NOW_MS + 10
        core = open_core(site.database, clock)
        await core.upkeep.begin("life")
        await core.upkeep.tick()
        polled = await core.inbox.poll_messages(
            Caller(),
            wire.PollRequest(agent_id=AgentId("claude-lead"), max_messages=5, wait_ms=0),
        )
        assert polled.messages
        await core.close()

    asyncio.run(story())


def test_k36_payloads_survive_whatever_they_are(site: Site) -> None:
    odd = {
        "nul": "CAST(x'7b2261223a22620063227d' AS TEXT)",
        "bytes": "CAST(x'fffe80' AS TEXT)",
        "blob": "x'00ff'",
        "twice": '\'{"a":1,"a":2}\'',
        "int64": "'{\"n\":9223372036854775807}'",
        "emoji": '\'{"e":"🔧"}\'',
    }
    path = empty_v1(site.database)
    change(path, *(message(name, payload=value) for name, value in odd.items()))
    read = select(path, "SELECT id, CAST(payload_json AS BLOB) FROM messages")
    before = {str(name): payload for name, payload in read}
    receipt = site.work(Task.UPGRADE)
    assert receipt.adopted is not None
    assert receipt.adopted.left_out == ()
    read = select(path, "SELECT m.id, l.payload FROM messages m JOIN log l ON l.seq = m.stream")
    after = {str(name): payload for name, payload in read}
    assert after == before
    assert after["bytes"] == b"\xff\xfe\x80"


@pytest.mark.parametrize("schema", ["", "{}", '{"a":1,"a":2}', '{"type":5}', '{"$ref":"#/no"}'])
def test_k36_an_adopted_question_is_answered_and_odd_responses_are_polled(
    site: Site, schema: str
) -> None:
    upgraded(
        site,
        "INSERT INTO human_requests VALUES ('h', 'ann', 'text', 'ok?', "
        f"'{schema}', 'pending', {LAST_MS + 5_000}, 'decline', 'c', 't', NULL)",
        agent("ann"),
        message("odd", "ann", kind="human_response", payload='\'{"a":1,"a":2}\''),
    )

    async def story() -> None:
        clock = FakeClock()
        clock.wall_ms = NOW_MS + 10
        core = open_core(site.database, clock)
        await core.upkeep.begin("life")
        answer = HumanAnswerRequest(request_id="h", action=HumanAction.ACCEPT)
        closed = await core.humans.submit_human_input(Caller(operator=True), answer)
        assert closed.new_state is HumanState.ACCEPTED
        polled = await core.inbox.poll_messages(
            Caller(), wire.PollRequest(agent_id=AgentId("ann"), wait_ms=0)
        )
        assert {each.message_id for each in polled.messages} == {
            "odd",
            closed.forwarded_message_id,
        }
        await core.close()

    asyncio.run(story())
