from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, with_bed
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core import copies, database
from tfx.errors import StateConflict
from tfx.hub.models import AgentId, Cursor, DefaultAction, HumanKind, Retention
from tfx.hub.store import retention
from tfx.hub.wire import admin, agents, humans, views
from tfx.hub.wire.fields import empty_object

DAY = 86_400_000
KEEP = Retention()
NEVER = Retention(messages_ms=0, dead_letters_ms=0, human_requests_ms=0, agents_ms=0)


def play(path: Path, story: object, keep: Retention = KEEP) -> None:
    with_bed(path, story, keep=keep)  # type: ignore[arg-type]


async def prune(bed: Bed, *, dry_run: bool = False) -> admin.PruneResult:
    return await bed.core.upkeep.prune(OPERATOR_CALLER, admin.PruneRequest(dry_run=dry_run))


async def exchange(bed: Bed, count: int) -> None:
    for _ in range(count):
        await bed.publish("ann", "bob")
    while (await bed.poll("bob", most=100, auto_ack=True)).messages:
        pass


def test_h_72_closed_messages_go_after_14_days_and_dead_ones_after_30(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await exchange(bed, 3)
        await bed.publish("ann", "bob", ttl_ms=1_000)
        await bed.tick(1_001)
        assert (await prune(bed)).events == 0
        bed.clock.pass_ms(14 * DAY)
        would = await prune(bed, dry_run=True)
        assert (would.messages, would.dead_letters, would.dry_run) == (3, 0, True)
        did = await prune(bed)
        assert (did.messages, did.events) == (3, would.events)
        assert len(await bed.dead()) == 1
        bed.clock.pass_ms(16 * DAY)
        assert (await prune(bed)).dead_letters == 1
        assert await bed.dead() == ()
        assert bed.core.store.tally.dead == 0
        assert bed.rows("SELECT count(*) FROM messages") == [(0,)]
        assert bed.rows("SELECT count(*) FROM forgetting") == [(0,)]

    play(tmp_path / "hub.db", story)


def test_h_72_open_items_and_a_keep_time_of_0_are_never_forgotten(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await exchange(bed, 2)
        await bed.publish("ann", "bob", ttl_ms=DAY)
        bed.clock.pass_ms(1_000 * DAY)
        assert (await prune(bed)).events == 0

    play(tmp_path / "keep.db", story, NEVER)

    async def open_story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", ttl_ms=DAY)
        bed.clock.pass_ms(1_000 * DAY)  # no sweep has run: it is still open
        assert (await prune(bed)).messages == 0

    play(tmp_path / "open.db", open_story)


def test_ev_p8_a_request_and_its_answer_never_lose_the_answers_uniqueness(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob", ttl_ms=DAY)
        await bed.poll("bob")  # the request stays open: claimed, not acked
        await bed.answer("bob", "ann", ticket.correlation_id)
        await bed.poll("ann", auto_ack=True)
        bed.clock.pass_ms(15 * DAY)
        assert (await prune(bed)).messages == 0  # the answer waits for its request
        with pytest.raises(StateConflict):
            await bed.answer("bob", "ann", ticket.correlation_id)
        await bed.tick()  # the request expires
        bed.clock.pass_ms(31 * DAY)
        gone = await prune(bed)
        assert gone.messages + gone.dead_letters >= 1
        await prune(bed)
        assert bed.rows("SELECT count(*) FROM messages") == [(0,)]

    play(tmp_path / "hub.db", story)


def test_h_24_an_ask_that_was_read_and_is_forgotten_unanswered_is_owed_no_more(
    tmp_path: Path,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.ask("ann", "bob")
        await bed.poll("bob", auto_ack=True)
        assert bed.core.store.tally.owed == 1
        bed.clock.pass_ms(15 * DAY)
        assert (await prune(bed)).messages == 1
        assert bed.core.store.tally.owed == 0

    play(tmp_path / "hub.db", story)


def test_ev_p8_k_24_what_remains_refolds_to_what_remains(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob", "news")
        await bed.register("gone")
        await exchange(bed, 5)
        await bed.core.retiring.agents_retire(
            OPERATOR_CALLER, agents.RetireRequest(agent_id=AgentId("gone"))
        )
        old = await bed.publish("ann", "bob", op_id="old")
        await bed.poll("bob", auto_ack=True)
        bed.clock.pass_ms(20 * DAY)
        await bed.core.upkeep.follow_clock()
        await bed.ask("ann", "bob", op_id="new")
        assert (await prune(bed)).messages == 6
        bed.clock.pass_ms(11 * DAY)
        assert (await prune(bed)).agents == 1
        check = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert check.equal
        # The result of a key lives as long as its stream: the key is free again.
        again = await bed.publish("ann", "bob", op_id="old")
        assert again.message_id != old.message_id
        highest = bed.rows("SELECT max(seq) FROM log")[0][0]
        assert (await bed.publish("ann", "bob")).message_id
        assert bed.rows("SELECT max(seq) FROM log")[0][0] == int(highest or 0) + 1

    play(path, story)
    refolds_to_itself(path)


def test_h_73_a_cursor_behind_what_was_forgotten_is_expired_and_told_the_oldest(
    tmp_path: Path,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        tail = await bed.core.events.events(NOBODY, views.EventsRequest(tail=True))
        await exchange(bed, 2)
        bed.clock.pass_ms(15 * DAY)
        await prune(bed)
        with pytest.raises(StateConflict) as refused:
            await bed.core.events.events(NOBODY, views.EventsRequest(after=tail.next_cursor))
        assert refused.value.reason == "cursor-expired"
        oldest = Cursor(str(refused.value.details["oldest"]))
        first = bed.rows("SELECT min(seq) FROM log")[0][0]
        assert oldest.startswith(f"{first!r}-")
        # A client that starts again pages through what is left, however small its pages are …
        page = await bed.core.events.events(NOBODY, views.EventsRequest(limit=1))
        assert page.more
        rest = await bed.core.events.events(NOBODY, views.EventsRequest(after=page.next_cursor))
        assert not rest.more
        at_end = views.EventsRequest(after=rest.next_cursor)
        assert (await bed.core.events.events(NOBODY, at_end)).events == ()
        # … until more is forgotten behind its back.
        await exchange(bed, 1)
        bed.clock.pass_ms(15 * DAY)
        await prune(bed)
        with pytest.raises(StateConflict):
            await bed.core.events.events(NOBODY, at_end)

    play(tmp_path / "hub.db", story)


def test_h_73_totals_survive_forgetting_and_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await exchange(bed, 7)
        bed.clock.pass_ms(15 * DAY)
        await prune(bed)
        assert bed.core.store.counters.copy()["messages"] == 7

    play(path, story)

    async def later(bed: Bed) -> None:
        totals = bed.core.store.counters.copy()
        assert (totals["messages"], totals["acked"]) == (7, 7)

    with_bed(path, later, instance="two")


def test_h_75_totals_are_exact_after_a_crash(tmp_path: Path) -> None:
    path, copy = tmp_path / "hub.db", tmp_path / "copy.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await exchange(bed, 4)
        # What a killed hub leaves behind: the file without the last flush.
        source = database.open_reader(path)
        target = database.open_writer(copy, create=True)
        copies.backup(source, target)
        source.close()
        target.close()

    play(path, story)

    async def later(bed: Bed) -> None:
        totals = bed.core.store.counters.copy()
        assert (totals["messages"], totals["acked"]) == (4, 4)

    with_bed(copy, later, instance="two")


async def nothing(_bed: Bed) -> None:
    """Let a hub be, and end."""


def test_h_73_h_74_the_file_stays_flat_under_steady_traffic(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        sizes = []
        for _ in range(8):
            await exchange(bed, 300)
            bed.clock.pass_ms(15 * DAY)
            await prune(bed)
            sizes.append(bed.rows("SELECT page_count FROM pragma_page_count")[0][0])
        assert max(int(s or 0) for s in sizes[1:]) <= int(sizes[0] or 0) * 1.1
        assert bed.rows("SELECT count(*) FROM messages") == [(0,)]
        assert bed.rows("SELECT count(*) FROM log")[0][0] == 2  # the run and bob

    play(path, story)
    full = path.stat().st_size
    connection = database.open_writer(path)
    while retention.vacuum_slice(connection):
        pass
    database.checkpoint(connection, truncate=True)
    connection.close()
    play(tmp_path / "empty.db", nothing)
    empty = (tmp_path / "empty.db").stat().st_size
    assert path.stat().st_size - empty < (full - empty) / 2


def test_h_64_h_65_a_deadline_reaches_the_requester_and_the_request_is_forgotten_in_time(
    tmp_path: Path,
) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        opened = await bed.core.humans.request_human_input(
            NOBODY,
            humans.HumanInputRequest(
                requester_agent=AgentId("bob"),
                kind=HumanKind.APPROVAL,
                prompt="May I?",
                requested_schema=empty_object(),
                deadline_ms=5_000,
                default_action=DefaultAction.TIMEOUT_CONTINUE,
            ),
        )
        assert bed.core.store.tally.pending_humans == 1
        await bed.tick(4_999)
        assert not (await bed.poll("bob")).messages
        await bed.tick(1)
        (response,) = (await bed.poll("bob", auto_ack=True)).messages
        assert (response.type.value, response.topic, response.priority) == (
            "human_response",
            "human.response",
            7,
        )
        assert b'"action":"timeout_continue"' in bytes(response.payload)
        assert b'"timed_out":true' in bytes(response.payload)
        assert opened.request_id in bytes(response.payload).decode()
        assert bed.core.store.tally.pending_humans == 0
        listed = await bed.core.humans.human_requests(
            NOBODY, humans.HumanListRequest(include_closed=True)
        )
        assert [r.state.value for r in listed.requests] == ["timed_out"]
        bed.clock.pass_ms(89 * DAY)
        assert (await prune(bed)).human_requests == 0
        bed.clock.pass_ms(2 * DAY)
        assert (await prune(bed)).human_requests == 1

    play(tmp_path / "hub.db", story)
