from __future__ import annotations

import asyncio
import queue
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import Bed, FakeClock, open_core, with_bed
from tests.hub.waiting import until_in_loop
from tfx.core import database
from tfx.errors import OperationFailed, TfxError
from tfx.hub.models import Durability
from tfx.hub.store import store as store_module
from tfx.hub.store import writer
from tfx.hub.store.reader import Reader
from tfx.hub.store.tx import Tx


def test_ev_s3_a_transaction_takes_the_write_lock_at_once(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    one = database.open_writer(path, create=True)
    one.execute("CREATE TABLE t (a INTEGER)")
    other = database.open_writer(path)
    other.set_busy_timeout(0)
    with database.Transaction(one), pytest.raises(database.Error), database.Transaction(other):
        pass
    one.close()
    other.close()


def test_ev_t1_a_transaction_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    connection = database.open_writer(tmp_path / "hub.db", create=True)
    with (
        pytest.raises(database.Error),
        database.Transaction(connection),
        database.Transaction(connection),
    ):
        pass
    assert not connection.in_transaction
    connection.close()


def test_ev_s4_a_refusal_never_rolls_back_its_neighbours(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        results = await asyncio.gather(
            *(bed.publish("ann", "bob" if n % 2 else "nobody-here") for n in range(40)),
            return_exceptions=True,
        )
        assert [isinstance(r, TfxError) for r in results] == [not n % 2 for n in range(40)]
        assert bed.kinds().count("message_posted") == 20

    play(story)


def test_ev_s4_what_is_queued_is_committed_together(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        before = bed.core.counted.commit.count
        async with bed.writer_held():
            sending = [asyncio.create_task(bed.publish("ann", "bob")) for _ in range(200)]
            await until_in_loop(lambda: bed.core.store.writer.pending == 200)
        await asyncio.gather(*sending)
        assert bed.core.counted.commit.count - before < 100

    play(story)


def test_h_51_who_comes_after_the_end_of_the_writer_is_told_its_cause(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story() -> None:
        core = open_core(path, FakeClock())
        await core.upkeep.begin("instance-1")
        path.unlink()
        for _ in range(2):
            with pytest.raises(OperationFailed) as refused:
                await core.store.write(lambda _tx: None)
            assert refused.value.reason == "database-gone"
            await asyncio.wait_for(core.store.died.wait(), 30)
        await core.store.close()

    asyncio.run(story())


class Slow(queue.SimpleQueue[object]):
    """A queue whose second command comes in when the first has had time to end the thread."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.second = threading.Event()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002  (as it is declared)
        self.count += 1
        if self.count == 2:
            self.second.set()
            time.sleep(0.3)
        super().put(item, block, timeout)


def test_h_19_a_command_that_comes_in_while_the_writer_ends_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    given = SimpleNamespace(SimpleQueue=lambda: slow, Empty=queue.Empty)
    monkeypatch.setattr(writer, "queue", given)

    async def story() -> None:
        core = open_core(tmp_path / "hub.db", FakeClock())

        def end(_tx: Tx) -> None:
            slow.second.wait(30)
            raise SystemExit

        core.store.queue(end)
        with pytest.raises(OperationFailed) as refused:
            await asyncio.wait_for(core.store.write(lambda _tx: None), 30)
        assert refused.value.reason == "writer-dead"
        await core.store.close()

    asyncio.run(story())


def test_ev_s2_readers_cannot_write(play: Play) -> None:
    async def story(bed: Bed) -> None:
        def write(reader: Reader) -> None:
            reader.connection.execute("DELETE FROM beats")

        with pytest.raises(TfxError):
            await bed.core.store.read(write)

    play(story)


def test_ev_s5_only_the_writer_checkpoints_and_nothing_is_automatic(play: Play) -> None:
    async def story(bed: Bed) -> None:
        settings = {
            "recursive_triggers": 1,
            "foreign_keys": 1,
            "wal_autocheckpoint": 0,
            "trusted_schema": 0,
        }

        def of_writer(tx: Tx) -> dict[str, object]:
            return {name: tx.connection.pragma(name) for name in settings}

        def of_reader(reader: Reader) -> dict[str, object]:
            return {name: reader.connection.pragma(name) for name in settings}

        assert await bed.core.store.write(of_writer) == settings
        assert await bed.core.store.read(of_reader) == settings

    play(story)


@pytest.mark.parametrize(("durability", "level"), [("normal", 1), ("full", 2)])
def test_synchronous_follows_the_durability(tmp_path: Path, durability: str, level: int) -> None:
    async def story(bed: Bed) -> None:
        found = await bed.core.store.write(lambda tx: tx.connection.pragma("synchronous"))
        assert found == level

    with_bed(tmp_path / "hub.db", story, durability=Durability(durability))


def test_ev_d3_behind_a_pinned_reader_the_wal_is_synced_by_a_full_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SYNC_WITHIN_S", 0.05)
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        wal = bed.core.store.writer.wal
        await bed.register("bob")
        pin = database.open_reader(path)
        pin.execute("BEGIN").fetchall()
        pin.execute("SELECT count(*) FROM log").fetchall()
        for _ in range(3):
            before = wal.syncs
            await bed.publish("ann", "bob")
            await until_in_loop(lambda: wal.syncs > before)  # noqa: B023  (awaited here)
            assert wal.pinned
        pin.execute("ROLLBACK").fetchall()
        pin.close()
        await bed.publish("ann", "bob")
        await until_in_loop(lambda: not wal.pinned)

    with_bed(path, story)


def test_ev_s7_ev_t4_a_read_that_gets_too_old_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "READ_AGE_CAP_S", 0.1)
    monkeypatch.setattr(writer, "SYNC_WITHIN_S", 0.05)

    async def story(bed: Bed) -> None:
        await bed.register("bob")

        def slow(reader: Reader) -> None:
            reader.all(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                "SELECT count(*) FROM n"
            )

        reading = asyncio.create_task(bed.core.store.read(slow))
        while not reading.done():
            await bed.publish("ann", "bob")
            await asyncio.sleep(0.02)
        with pytest.raises(TfxError):
            await reading

    with_bed(tmp_path / "hub.db", story)


def test_ev_s7_a_read_that_was_cut_because_the_process_stood_still_runs_again(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        tries: list[int] = []

        def stopped(reader: Reader) -> int:
            tries.append(1)
            if len(tries) == 1:  # as the writer does with a read that began before the standstill
                raise apsw.InterruptError
            row = reader.one("SELECT count(*) FROM agents")
            assert row is not None
            return int(row[0] or 0)

        assert await bed.core.store.read(stopped) == 1

    play(story)


def test_ev_s7_the_wal_stays_small_under_a_flood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAL_ALARM_PAGES", 500)
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        text = "x" * 4_000
        largest = 0
        for _ in range(40):
            await asyncio.gather(
                *(bed.publish("ann", "bob", f'{{"t":"{text}"}}') for _ in range(20))
            )
            largest = max(largest, bed.core.store.file_sizes()[1])
        assert largest < 8_000_000

    with_bed(path, story)


def test_ev_d5_stopping_runs_what_is_queued_and_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story() -> int:
        core = open_core(path, FakeClock())
        bed = Bed(path, core, FakeClock())
        await bed.register("bob")
        sending = [asyncio.create_task(bed.publish("ann", "bob")) for _ in range(50)]
        await asyncio.sleep(0)
        await core.store.close()
        done = await asyncio.gather(*sending, return_exceptions=True)
        with pytest.raises(OperationFailed):
            await bed.publish("ann", "bob")
        return sum(not isinstance(each, BaseException) for each in done)

    answered = asyncio.run(story())
    assert [each.name for each in tmp_path.iterdir()] == ["hub.db"]
    connection = database.open_inspector(path)
    (row,) = connection.execute("SELECT count(*) FROM messages").fetchall()
    connection.close()
    assert row == (50,)
    assert answered == 50


def test_h_19_a_dead_writer_thread_is_told_and_refuses(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(bed: Bed) -> None:
        def broken(_jobs: object) -> None:
            raise MemoryError("injected")

        monkeypatch.setattr(bed.core.store.writer, "_commit", broken)
        lost = asyncio.create_task(bed.register("bob"))
        await asyncio.wait_for(bed.core.failed.wait(), 30)
        with pytest.raises(OperationFailed):
            await asyncio.wait_for(bed.register("cat"), 30)
        lost.cancel()

    play(story)


def open_files() -> list[Path]:
    return [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]


def test_ev_t5_the_database_is_opened_by_sqlite_alone(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob")
        await bed.core.store.read(lambda reader: reader.one("SELECT 1"))
        bed.core.views.queues()
        held = [str(each.readlink()) for each in open_files()]
        # One descriptor of the file and of its WAL for the writer and for one reader.
        assert held.count(str(path)) == 2

    with_bed(path, story)


def test_a_checkpoint_that_failed_degrades_the_hub_until_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SYNC_WITHIN_S", 0.05)
    real = database.checkpoint

    def failing(connection: database.Connection, *, truncate: bool) -> tuple[int, int]:
        del connection, truncate
        raise apsw.IOError("injected")

    async def story(bed: Bed) -> None:
        monkeypatch.setattr(database, "checkpoint", failing)
        await bed.register("bob")
        await until_in_loop(lambda: bed.core.health() == "degraded")
        monkeypatch.setattr(database, "checkpoint", real)
        await until_in_loop(lambda: bed.core.health() == "ready")

    with_bed(tmp_path / "hub.db", story)
