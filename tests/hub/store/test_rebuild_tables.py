"""A rebuild makes the tables anew, beside readers and past what it does not know (EV-P4 … P6)."""

from __future__ import annotations

import asyncio

from tests.hub.conftest import Play
from tests.hub.driver import OPERATOR_CALLER, Bed
from tfx.core import database
from tfx.hub.schema import registry
from tfx.hub.schema.identity import identify
from tfx.hub.wire import admin


def test_ev_p4_a_rebuild_makes_the_tables_of_the_current_schema(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob")

        def spoil(connection: database.Connection) -> None:
            connection.execute("DROP INDEX deliveries_due")
            connection.execute("DROP TABLE human_requests")
            connection.execute("UPDATE messages SET topic = 'wrong'")

        await bed.core.store.write(lambda tx: spoil(tx.connection))
        await bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        connection = database.open_reader(bed.path)
        assert identify(connection).schema_hash == registry.HASHES[registry.CURRENT]
        connection.close()
        assert [m.topic for m in (await bed.poll("bob")).messages] == ["news"]

    play(story)


def test_rebuild_check_names_what_differs_and_writes_nothing(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob")

        def spoil(connection: database.Connection) -> None:
            connection.execute("UPDATE messages SET topic = 'wrong'")
            connection.execute("INSERT INTO subscriptions VALUES ('made-up', 'bob', 1)")
            connection.execute("DROP TRIGGER deliveries_go_with_their_stream")
            connection.execute("DELETE FROM deliveries")

        await bed.core.store.write(lambda tx: spoil(tx.connection))
        before = bed.rows("SELECT * FROM messages")
        result = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert not result.equal
        assert {(d.table, d.what) for d in result.differences} == {
            ("messages", "differs in topic"),
            ("subscriptions", "is not in the log"),
            ("deliveries", "is missing"),
        }
        assert bed.rows("SELECT * FROM messages") == before

    play(story)


def test_ev_p5_an_event_of_a_later_version_is_kept_and_skipped_with_a_count(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")

        def future(connection: database.Connection) -> None:
            connection.execute(
                "INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, body) "
                "VALUES (900, zeroblob(16), 900, 0, 1, 'effort_opened', 'bob', '{}')"
            )

        await bed.core.store.write(lambda tx: future(tx.connection))
        done = await bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        assert done.skipped == 1
        assert "effort_opened" in bed.kinds()

    play(story)


def test_ev_p6_a_reader_sees_the_old_rows_or_the_new_ones(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for _ in range(500):
            await bed.publish("ann", "bob")
        counts: set[int] = set()
        task = asyncio.create_task(bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest()))
        while not task.done():
            row = await bed.core.store.read(lambda r: r.one("SELECT count(*) FROM messages"))
            assert row is not None
            counts.add(int(row[0] or 0))
        assert counts == {500}

    play(story)
