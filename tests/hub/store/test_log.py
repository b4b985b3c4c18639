from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, open_core, with_bed
from tfx.core import database
from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import AgentId, StreamNo
from tfx.hub.schema import registry
from tfx.hub.store.events import Acked, event_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.tx import Tx
from tfx.hub.wire import agents
from tfx.hub.wire.admin import RebuildRequest
from tfx.hub.wire.views import DeadPurgeRequest, EventsRequest


def prefix_hash(bed: Bed, through: int) -> str:
    rows = bed.rows("SELECT * FROM log WHERE seq <= ? ORDER BY seq", through)
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def last(bed: Bed) -> int:
    return int(bed.rows("SELECT coalesce(max(seq), 0) FROM log")[0][0] or 0)


def test_ev_l1_no_operation_edits_what_stands_in_the_log(play: Play) -> None:
    async def story(bed: Bed) -> None:
        async def replay_all() -> None:
            for letter in await bed.dead():
                await bed.replay(letter.message_id)

        async def purge() -> None:
            request = DeadPurgeRequest(agent_id=AgentId("bob"))
            await bed.core.dead.dead_purge(OPERATOR_CALLER, request)

        async def retire() -> None:
            request = agents.RetireRequest(agent_id=AgentId("bob"))
            await bed.core.retiring.agents_retire(OPERATOR_CALLER, request)

        steps = [
            lambda: bed.register("bob", "news"),
            lambda: bed.register("ann"),
            lambda: bed.publish("ann", "bob", ttl_ms=1_000),
            lambda: bed.publish("ann", "topic:news"),
            lambda: bed.ask("ann", "bob"),
            lambda: bed.poll("bob", most=1),
            lambda: bed.tick(61_000),
            replay_all,
            lambda: bed.poll("bob", auto_ack=True),
            purge,
            retire,
        ]
        for step in steps:
            through = last(bed)
            before = prefix_hash(bed, through)
            await step()
            assert prefix_hash(bed, through) == before
        assert last(bed) > 15

    play(story)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET body = '{}' WHERE seq = 1",
        "UPDATE log SET at_ms = 0",
        "DELETE FROM log WHERE seq = 1",
        "INSERT OR REPLACE INTO log SELECT * FROM log WHERE seq = 1",
        "DELETE FROM messages",
        "DELETE FROM deliveries",
        "DELETE FROM stamp",
        (
            "UPDATE deliveries SET state = 'queued', closed_seq = NULL, due_at_ms = 1 "
            "WHERE state = 'acked'"
        ),
        "UPDATE deliveries SET attempts = 0 WHERE attempts > 0",
        "UPDATE messages SET answer = 'other' WHERE answer IS NOT NULL",
        (
            "INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body) "
            "SELECT 1000, event_id, stream, 999, at_ms, 'delivery_acked', actor, body "
            "FROM log WHERE seq = 2"
        ),
        (
            "INSERT INTO messages SELECT 500, '' , type, sender, recipient, topic, priority, "
            "posted_at_ms, expires_at_ms, NULL, NULL, NULL, NULL, NULL, 500 FROM messages LIMIT 1"
        ),
    ],
)
def test_ev_l1_triggers_and_checks_forbid_what_must_never_happen(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob")
        await bed.poll("bob", auto_ack=True)
        await bed.answer("bob", "ann", ticket.correlation_id)

    with_bed(path, story)
    connection = database.open_writer(path)
    with pytest.raises(database.ConstraintError), database.Transaction(connection):
        connection.execute(statement)
    connection.close()


def test_ev_l2_seq_is_the_only_order_whatever_the_clock_does(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = []
        for step_ms in (0, -3_600_000, 31_536_000_000, -31_000_000_000):
            bed.clock.wall_ms += step_ms
            await bed.core.upkeep.follow_clock()
            sent.append((await bed.publish("ann", "bob")).message_id)
        assert [m.message_id for m in (await bed.poll("bob")).messages] == sent
        page = await bed.core.events.events(NOBODY, EventsRequest())
        assert [e.seq for e in page.events] == sorted(e.seq for e in page.events)

    play(story)


def test_ev_l3_a_tailer_sees_every_event_of_eight_writers_once_and_in_order(play: Play) -> None:
    async def story(bed: Bed) -> None:
        for number in range(8):
            await bed.register(f"agent-{number}")
        seen: list[int] = []
        done = asyncio.Event()

        async def tail() -> None:
            cursor = None
            while True:
                request = EventsRequest(after=cursor, limit=37)
                page = await bed.core.events.events(NOBODY, request)
                seen.extend(e.seq for e in page.events)
                cursor = page.next_cursor
                if done.is_set() and not page.events:
                    return

        async def write(number: int) -> None:
            for _ in range(50):
                await bed.publish(f"agent-{number}", f"agent-{(number + 1) % 8}")

        tailer = asyncio.create_task(tail())
        await asyncio.gather(*(write(number) for number in range(8)))
        done.set()
        await tailer
        wanted = [int(row[0] or 0) for row in bed.rows("SELECT seq FROM log ORDER BY seq")]
        assert seen == wanted
        assert len(seen) == 1 + 8 + 400

    play(story)


def test_ev_l4_a_refused_command_burns_no_seq(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        before = last(bed)

        def failing(tx: Tx) -> None:
            tx.append("agent/bob", StreamNo(2), Kind.SESSION_ENDED, "bob", Acked(receiver="bob"))
            raise StateConflict("no")

        results = await asyncio.gather(
            bed.core.store.write(failing),
            bed.publish("ann", "bob"),
            bed.core.store.write(failing),
            bed.publish("ann", "bob"),
            return_exceptions=True,
        )
        assert [isinstance(r, StateConflict) for r in results] == [True, False, True, False]
        assert last(bed) == before + 2

    play(story)


def test_ev_l5_ev_l8_one_intent_a_hundred_times_is_one_event_and_one_result(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        results = await asyncio.gather(
            *(bed.publish("ann", "bob", op_id="same") for _ in range(100))
        )
        assert len(set(results)) == 1
        assert bed.kinds().count("message_posted") == 1
        assert len((await bed.poll("bob")).messages) == 1

    play(story)


def test_ev_l6_the_hash_of_an_intent_knows_where_its_parts_end() -> None:
    assert event_id("m/x", "posted", 0) != event_id("m", "x/posted", 0)
    assert event_id("m", "posted", 12) != event_id("m", "posted1", 2)
    assert event_id("m", "posted", 1) == event_id("m", "posted", 1)
    assert len(event_id("m", "posted", 1)) == 16


def test_ev_l7_the_same_key_with_other_content_is_an_error_with_the_stored_seq(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", op_id="key")
        (row,) = bed.rows("SELECT seq FROM log WHERE op_id = 'key'")
        for attempt in (
            bed.publish("ann", "bob", '{"a":2}', op_id="key"),
            bed.publish("ann", "bob", priority=6, op_id="key"),
            bed.ask("ann", "bob", op_id="key"),
        ):
            with pytest.raises(StateConflict) as refused:
                await attempt
            assert refused.value.reason == "idempotency-conflict"
            assert refused.value.details["seq"] == row[0]
        # Spaces and the order of keys are no other content; another agent's key is another key.
        await bed.publish("cat", "bob", op_id="key")
        assert bed.kinds().count("message_posted") == 2

    play(story)


def test_ev_l7_a_retry_may_be_spelled_otherwise(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        one = await bed.publish("ann", "bob", '{"a":1,"b":2}', op_id="key")
        two = await bed.publish("ann", "bob", '{ "b": 2, "a": 1 }', op_id="key")
        assert one == two

    play(story)


def test_ev_l8_two_sends_without_a_key_are_two_messages(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        one = await bed.publish("ann", "bob")
        two = await bed.publish("ann", "bob")
        assert one.message_id != two.message_id

    play(story)


def test_ev_l7_k_24_a_result_survives_a_restart_and_a_rebuild(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def first(bed: Bed) -> str:
        await bed.register("bob")
        return (await bed.publish("ann", "bob", op_id="key")).message_id

    async def second(bed: Bed) -> str:
        await bed.core.upkeep.rebuild(OPERATOR_CALLER, RebuildRequest())
        return (await bed.publish("ann", "bob", op_id="key")).message_id

    assert with_bed(path, first) == with_bed(path, second, instance="two")


def test_ev_t11_ev_q8_a_retry_after_a_lost_answer_gets_the_stored_id(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        lost = asyncio.create_task(bed.publish("ann", "bob", op_id="key"))
        await asyncio.sleep(0)
        lost.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lost
        again = await bed.publish("ann", "bob", op_id="key")
        assert [m.message_id for m in (await bed.poll("bob")).messages] == [again.message_id]

    with_bed(path, story)


def test_ev_l9_of_two_that_saw_the_same_seq_one_wins(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sent = await bed.publish("ann", "bob")
        (row,) = bed.rows("SELECT stream FROM messages")
        stream = StreamNo(int(row[0] or 0))

        def take(tx: Tx) -> int:
            body = Acked(receiver="bob")
            name = f"message/{sent.message_id}"
            event = tx.append(name, stream, Kind.DELIVERY_ACKED, "bob", body, observed=stream)
            return event.seq

        results = await asyncio.gather(
            bed.core.store.write(take), bed.core.store.write(take), return_exceptions=True
        )
        lost = [each for each in results if isinstance(each, StateConflict)]
        assert [each.reason for each in lost] == ["stale"]

    play(story)


def test_ev_l10_bodies_and_payloads_are_canonical_json(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", '{ "b" : [1, 2.5, null], "a": "\\u00e9\\n" }')
        (row,) = bed.rows("SELECT body, payload FROM log WHERE kind = 'message_posted'")
        assert row[1] == '{"a":"é\\n","b":[1,2.5,null]}'.encode()
        body = str(row[0])
        assert body == msgspec.json.encode(msgspec.json.decode(body), order="sorted").decode()

    play(story)


@pytest.mark.parametrize("payload", ["[1]", '"text"', "1", "null", "{", '{"a":}', '{"a":NaN}'])
def test_h_80_a_payload_that_is_no_object_is_refused(play: Play, payload: str) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        with pytest.raises(InvalidRequest):
            await bed.publish("ann", "bob", payload)
        assert "message_posted" not in bed.kinds()

    play(story)


def test_ev_p3_no_row_names_a_seq_that_the_log_does_not_have(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob", "news")
        await bed.ask("ann", "bob")
        await bed.publish("ann", "topic:news")
        await bed.poll("bob", auto_ack=True)
        highest = last(bed)
        for table in registry.PROJECTIONS:
            for (seq,) in bed.rows(f"SELECT last_seq FROM {table}"):
                assert isinstance(seq, int)
                assert 0 < seq <= highest

    play(story)


def test_h_26_ev_d6_a_cursor_the_log_does_not_know_is_refused(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        page = await bed.core.events.events(NOBODY, EventsRequest())
        seq, _, identity = page.next_cursor.partition("-")
        ahead = f"{int(seq) + 1}-{identity}"
        other = f"{seq}-{'0' * 32}"
        for cursor in (ahead, other):
            with pytest.raises(StateConflict) as refused:
                await bed.core.events.events(
                    NOBODY, msgspec.convert({"after": cursor}, EventsRequest)
                )
            assert refused.value.reason == "cursor-ahead"
        with pytest.raises(InvalidRequest):
            await bed.core.events.events(NOBODY, msgspec.convert({"after": "x"}, EventsRequest))
        tail = await bed.core.events.events(NOBODY, EventsRequest(tail=True))
        assert (tail.events, tail.next_cursor) == ((), page.next_cursor)

    play(story)


def test_h_26_a_waiting_tail_is_woken_by_the_next_event(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        tail = await bed.core.events.events(NOBODY, EventsRequest(tail=True))
        request = EventsRequest(after=tail.next_cursor, wait_ms=45_000)
        waiting = asyncio.create_task(bed.core.events.events(NOBODY, request))
        await asyncio.sleep(0.05)
        await bed.publish("ann", "bob")
        page = await asyncio.wait_for(waiting, 30)
        assert [e.kind for e in page.events] == ["message_posted"]

    play(story)


def test_ev_s2_one_store_runs_commands_in_the_order_they_came(tmp_path: Path) -> None:
    clock = FakeClock()

    async def story() -> list[int]:
        core = open_core(tmp_path / "hub.db", clock)
        order: list[int] = []

        def command(number: int) -> Callable[[Tx], None]:
            return lambda _tx: order.append(number)

        await asyncio.gather(*(core.store.write(command(number)) for number in range(300)))
        await core.store.close()
        return order

    assert asyncio.run(story()) == list(range(300))
