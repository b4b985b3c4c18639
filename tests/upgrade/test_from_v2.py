"""The step from version 2: no row is touched, the file becomes a fresh one with the old rows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from tests.hub.driver import FakeClock, open_core
from tests.upgrade.scenes import NAMES, Site, change, select, sha256, unpack
from tests.upgrade.version2 import (
    FROZEN,
    filled_v2,
    fresh,
    is_folded,
    kept_in,
    objects,
    rows_of_v2,
    unpack_v2,
)
from tfx.core import database
from tfx.hub.models import AgentId, Caller
from tfx.hub.schema import from_v2, registry
from tfx.hub.wire.humans import HumanListRequest
from tfx.hub.wire.messages import PollRequest
from tfx.upgrade.model import Phase, RowCount, State, Task

SAME = "SELECT count(*) FROM (SELECT * FROM {0}.{2} EXCEPT SELECT * FROM {1}.{2})"


@pytest.mark.parametrize("name", FROZEN)
def test_must_show_every_frozen_database_keeps_its_rows_and_becomes_a_fresh_one(
    site: Site, tmp_path: Path, name: str
) -> None:
    before = rows_of_v2(unpack_v2(name, tmp_path / "before.db"))
    unpack_v2(name, site.database)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.from_version, receipt.to_version) == (State.UPGRADED, 2, 3)
    assert (receipt.from_schema_hash, receipt.to_schema_hash) == (
        registry.HASHES[2],
        registry.HASHES[3],
    )
    assert receipt.adopted is None, "nothing came from triflux in this run"
    assert rows_of_v2(site.database) == before
    assert before["log"]
    assert objects(site.database) == objects(fresh(tmp_path / "fresh.db"))
    assert is_folded(site.database)
    assert select(site.database, "SELECT * FROM stamp") == [(1, 3, registry.HASHES[3], 1)]
    assert select(site.database, "PRAGMA user_version") == [(3,)]
    kept = kept_in(receipt)
    assert rows_of_v2(kept) == before
    assert sha256(kept) == receipt.backup_sha256
    again = site.work(Task.UPGRADE)
    assert (again.state, again.backup_directory) == (State.CURRENT, None)


def test_must_show_a_hundred_thousand_messages_come_through_unchanged(site: Site) -> None:
    path = filled_v2(site.database, 100_000)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.from_version, receipt.to_version) == (2, 3)
    assert receipt.rows["messages"] == RowCount(110_000, 110_000)
    assert receipt.rows["tasks"] == RowCount(None, 0)
    kept = set(from_v2.KEPT)
    assert all(receipt.rows[table].before == receipt.rows[table].after for table in kept)
    connection = apsw.Connection(str(path))
    connection.execute("ATTACH ? AS old", (str(kept_in(receipt)),))
    for table in (*from_v2.KEPT, "sqlite_sequence"):
        for one, other in (("old", "main"), ("main", "old")):
            assert connection.execute(SAME.format(one, other, table)).fetchall() == [(0,)], table
    connection.close()
    assert is_folded(path)


@pytest.mark.parametrize("name", NAMES)
def test_must_show_a_triflux_database_becomes_version_3_in_one_run(
    site: Site, tmp_path: Path, name: str
) -> None:
    unpack(name, site.database)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.from_version, receipt.to_version) == (1, 3)
    assert len(site.backups()) == 1
    assert receipt.adopted is not None, "what the first step told is in the receipt"
    assert receipt.adopted.arrived["messages"] == 1_575
    assert receipt.adopted.shift_ms > 0
    assert objects(site.database) == objects(fresh(tmp_path / "fresh.db"))
    assert is_folded(site.database)
    entered = [each for each in site.phases if each in {Phase.TRANSFORM, Phase.VERIFY}]
    assert entered == [Phase.TRANSFORM, Phase.VERIFY] * 2 + [Phase.VERIFY]


@pytest.mark.parametrize("table", ["tasks", "work_leases", "numbers", "invocations"])
def test_ev_m5_new_tables_are_there_and_empty(site: Site, table: str) -> None:
    unpack_v2("hub", site.database)
    site.work(Task.UPGRADE)
    assert select(site.database, f"SELECT count(*) FROM {table}") == [(0,)]


def test_u99_rows_that_a_killed_hub_left_in_its_wal_arrive(site: Site) -> None:
    path = unpack_v2("crashed", site.database)
    in_the_wal = "SELECT count(*) FROM messages WHERE topic = 'wal'"
    uri = database.uri(path, "immutable=1")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    alone = apsw.Connection(uri, flags=flags)
    without = alone.execute(in_the_wal).fetchall()
    alone.close()
    site.work(Task.UPGRADE)
    assert select(path, in_the_wal) == [(8,)] != without
    assert select(path, "PRAGMA journal_mode") == [("wal",)]


def test_must_show_mail_and_questions_of_version_2_are_alive_in_the_hub(site: Site) -> None:
    unpack_v2("crashed", site.database)
    [(last,)] = select(site.database, "SELECT max(at_ms) FROM log")
    site.work(Task.UPGRADE)

    async def story() -> None:
        clock = FakeClock()
        clock.wall_ms = int(str(last)) + 1_000
        core = open_core(site.database, clock)
        await core.upkeep.begin("a-life-on-version-3")
        request = PollRequest(agent_id=AgentId("bob"), max_messages=50, wait_ms=0)
        polled = await core.inbox.poll_messages(Caller(), request)
        assert sum(each.topic == "wal" for each in polled.messages) == 8
        asked = await core.humans.human_requests(Caller(operator=True), HumanListRequest())
        assert [each.prompt for each in asked.requests] == ["still open?"]
        await core.close()

    asyncio.run(story())
    assert is_folded(site.database)


def test_u105_ev_m6_an_id_that_was_forgotten_is_never_used_again(site: Site) -> None:
    path = filled_v2(site.database, 30)
    change(
        path,
        "INSERT INTO forgetting SELECT max(stream) FROM messages",
        "DELETE FROM deliveries WHERE message IN (SELECT stream FROM forgetting)",
        "DELETE FROM messages WHERE stream IN (SELECT stream FROM forgetting)",
        "DELETE FROM log WHERE stream IN (SELECT stream FROM forgetting)",
        "DELETE FROM forgetting",
    )
    [(highest, mark)] = select(
        path, "SELECT max(log.seq), s.seq FROM log, sqlite_sequence s WHERE name = 'log'"
    )
    assert int(str(mark)) > int(str(highest))
    site.work(Task.UPGRADE)
    assert select(path, "SELECT seq FROM sqlite_sequence WHERE name = 'log'") == [(mark,)]
