"""Open the hub's database, run commands in the writer, reads beside it, and close in order.

Knows no command; services bring them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from tfx.core import database, files
from tfx.errors import OperationFailed, TfxError
from tfx.hub.models import Durability
from tfx.hub.schema import registry
from tfx.hub.schema.identity import identify
from tfx.hub.store import retention, snapshot
from tfx.hub.store.beats import Beats
from tfx.hub.store.counters import Counters
from tfx.hub.store.denials import Denials
from tfx.hub.store.hub_clock import HubClock
from tfx.hub.store.jobs import Committed, Job
from tfx.hub.store.pulses import Pulses
from tfx.hub.store.reader import Reader
from tfx.hub.store.tally import Tally
from tfx.hub.store.wakeups import APPENDED, Wakeups
from tfx.hub.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfx.core.clock import Clock
    from tfx.hub.store.tx import Tx

T = TypeVar("T")

READERS: Final = 2
_logger = logging.getLogger("tfx.hub.store")
_COMPANIONS: Final = ("-wal", "-shm", "-journal")
READ_AGE_CAP_S: Final = 5.0
"""A read that is older is cut off, so that it cannot pin the WAL (EV-S7); it has a second try."""


class Store:
    """The hub's database; made by `Store.open`, used from one event loop."""

    def __init__(self, path: Path, durability: Durability, clock: Clock, vfs: str | None) -> None:
        self.path = path
        self.durability = durability
        self.clock = HubClock(clock)
        self.wakeups = Wakeups()
        self.tally = Tally()
        self.beats = Beats()
        self.pulses = Pulses()
        self.counters = Counters()
        self.denials = Denials()
        self.on_commit: Callable[[float], None] | None = None
        self.died: asyncio.Event = asyncio.Event()
        self.death: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._vfs = vfs
        self._local = threading.local()
        self._readers: list[database.Connection] = []
        self._reads: dict[int, tuple[float, database.Connection]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="hub-reader")
        self._closed = False
        self._inode = 0
        self._writer: Writer | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        durability: Durability = Durability.NORMAL,
        clock: Clock,
        vfs: str | None = None,
        for_rebuild: bool = False,
    ) -> Store:
        """Open a database, or make one where none is; never migrate or refold (K-23).

        The caller holds the lock of the database (H-10). Raises StateConflict for another schema
        or fold version (`for_rebuild` lets an older fold pass: a rebuild is what it needs), and
        what `core.database` raises; a file made here is gone then.
        """
        store = cls(path, durability, clock, vfs)
        fresh = not path.exists()
        try:
            if fresh:
                files.write_new(path, b"", files.PRIVATE_FILE)
            store._start(create=fresh or store._is_empty(for_rebuild=for_rebuild))
        except BaseException:
            if fresh:
                for each in (path, *(path.with_name(path.name + end) for end in _COMPANIONS)):
                    with contextlib.suppress(OSError):
                        each.unlink()
            raise
        return store

    def _is_empty(self, *, for_rebuild: bool) -> bool:
        """Return True for a file whose creation was cut off; refuse what is not ours to run on."""
        with database.errors_typed(str(self.path)):
            connection = database.open_inspector(self.path)
            try:
                identity = identify(connection)
            finally:
                connection.close()
        if identity.is_empty:
            return True
        if not (for_rebuild and registry.judge(identity).verdict is registry.Verdict.OTHER_FOLD):
            registry.refuse_unless_current(identity, str(self.path))
        return False

    def _start(self, *, create: bool) -> None:
        synchronous = "FULL" if self.durability is Durability.FULL else "NORMAL"
        connection = database.open_writer(self.path, synchronous=synchronous, vfs=self._vfs)
        try:
            with database.errors_typed(str(self.path)):
                if create:
                    registry.create(connection)
                self._inode = self.path.stat().st_ino
                self.counters.load(connection)
                self.beats.load(connection)
                self.pulses.load(connection)
                self.tally = Tally.load(connection)
                writer = Writer(
                    connection,
                    self.clock,
                    self.durability,
                    deliver=self._deliver,
                    died=self._died,
                    flush=self._flush,
                    on_tick=self._cut_old_reads,
                    before_commit=self._refuse_lost_file,
                )
                writer.start()
        except BaseException:
            connection.close()
            raise
        self._writer = writer

    async def write(self, command: Callable[[Tx], T]) -> T:
        """Run a command in the writer's transaction; return its answer after the commit (EV-D1).

        What the command raises is raised here and nothing of it is stored.
        """
        return await self._submit(command)

    def queue(self, command: Callable[[Tx], object]) -> None:
        """Run a command behind those that are queued; nobody waits, a failure is logged."""
        self._submit(command).add_done_callback(_log_failure)

    def _submit(self, command: Callable[[Tx], T]) -> asyncio.Future[T]:
        if self._writer is None or self._closed:
            raise OperationFailed("the hub's store is closed", code="closed")
        loop = asyncio.get_running_loop()
        self._loop = loop
        future: asyncio.Future[T] = loop.create_future()
        self._writer.submit(Job(command, future))  # type: ignore[arg-type]
        return future

    async def read(self, query: Callable[[Reader], T]) -> T:
        """Run a query on a connection of its own that sees one state and cannot write."""
        if self._closed:
            raise OperationFailed("the hub's store is closed", code="closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, query)

    async def snapshot(self, path: Path) -> tuple[int, int]:
        """Copy one state of the database into an empty file of ours; return bytes and last seq.

        Reads on a connection of its own, so writes go on. Raises InvalidRequest `not-empty` for a
        file that is not an empty one of this user, and what `core.database` raises.
        """
        return await asyncio.to_thread(snapshot.copy_into, self.path, self._vfs, path)

    def forgetting(self, streams: tuple[int, ...]) -> Callable[[Tx], int]:
        """Return the command that forgets streams; it saves the totals first (H-73)."""

        def command(tx: Tx) -> int:
            self.counters.save(tx.connection)
            return retention.forget(tx, streams, self.counters.seq)

        return command

    async def close(self) -> None:
        """Run what is queued, close the readers, truncate the WAL, close the writer (EV-D5)."""
        if self._closed:
            return
        self._closed = True
        self.wakeups.drain()
        await asyncio.to_thread(self._shut)
        await asyncio.sleep(0)

    def close_now(self) -> None:
        """Do what `close` does where no event loop runs."""
        self._closed = True
        self._shut()

    @property
    def writer(self) -> Writer:
        """The writer, for what status tells of it."""
        if self._writer is None:
            raise OperationFailed("the hub's store is closed", code="closed")
        return self._writer

    def file_sizes(self) -> tuple[int, int]:
        """Return the bytes of the database and of its WAL; `stat` by path only (EV-S8)."""
        sizes = []
        for path in (self.path, self.path.with_name(self.path.name + "-wal")):
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:
                sizes.append(0)
        return sizes[0], sizes[1]

    def _shut(self) -> None:
        self._pool.shutdown(wait=True)
        for connection in self._readers:
            connection.close()
        if self._writer is not None:
            self._writer.stop()

    def _read(self, query: Callable[[Reader], T]) -> T:
        try:
            return self._read_once(query)
        except TfxError as error:
            if not isinstance(error.__cause__, database.InterruptError):
                raise
        return self._read_once(query)  # slow, or this whole process stood still meanwhile

    def _read_once(self, query: Callable[[Reader], T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = database.open_reader(self.path, vfs=self._vfs)
            with self._lock:
                self._readers.append(connection)
        key = threading.get_ident()
        with database.errors_typed(str(self.path)), database.Snapshot(connection):
            self._reads[key] = (monotonic(), connection)
            try:
                return query(Reader(connection, self.clock.now_ms()))
            finally:
                self._reads.pop(key, None)

    def _cut_old_reads(self) -> None:
        too_old = monotonic() - READ_AGE_CAP_S
        for began, connection in list(self._reads.values()):
            if began < too_old:
                connection.interrupt()

    def _refuse_lost_file(self) -> None:
        """Raise OperationFailed `database-gone`: what is written to a removed file is lost."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == self._inode:
                return
        raise OperationFailed(
            f"{self.path} was removed or replaced under the running hub",
            code="database-gone",
            hint="tfx hub start",
        )

    def _flush(self, connection: database.Connection) -> None:
        self.counters.save(connection)
        self.beats.save(connection)
        self.pulses.save(connection)

    def _deliver(self, done: Committed) -> None:
        # Called in the writer's thread; the event loop sees the whole group at once.
        self.counters.add(done.events)
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._committed, done)

    def _committed(self, done: Committed) -> None:
        for effect in done.effects:
            if isinstance(effect, Tally):
                self.tally = effect
            else:
                self.tally.apply(effect)
        if done.events and self.on_commit is not None:
            self.on_commit(done.commit_ms)
        for future, answer in done.answers:
            if not future.done():
                future.set_result(answer)
        for future, error in done.refusals:
            if not future.done():
                future.set_exception(error)
        self.wakeups.fire(done.signals)
        if done.events:
            self.wakeups.fire((APPENDED,))

    def _died(self, error: BaseException) -> None:
        self.death = error
        place = traceback.extract_tb(error.__traceback__)[-1:]
        where = f"{place[0].name}:{place[0].lineno}" if place else "?"
        known = f" ({error.reason})" if isinstance(error, TfxError) else ""
        _logger.critical("the writer ended: %s%s at %s", type(error).__name__, known, where)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.died.set)


def _log_failure(future: asyncio.Future[T]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _logger.warning("a queued command failed: %s", type(error).__name__)
