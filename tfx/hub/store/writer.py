"""The one writer thread: group commit, checkpoints, the WAL (EV-S2 … EV-S7, EV-D1 … EV-D6).

Knows no command; it runs what it is handed and answers after the commit.
"""

from __future__ import annotations

import queue
import threading
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Final

from tfx.core import database
from tfx.errors import OperationFailed, TfxError
from tfx.hub.store.constraints import refusal_of
from tfx.hub.store.jobs import Committed, Job, WalState
from tfx.hub.store.retention import vacuum_slice
from tfx.hub.store.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.hub.models import Durability
    from tfx.hub.store.hub_clock import HubClock

GROUP_CAP: Final = 256
SYNC_WITHIN_S: Final = 0.9
"""A commit is synced this long after it at the latest, plus the sync itself (EV-D2)."""
IDLE_S: Final = 5.0
"""So long without a commit the WAL is truncated and free pages are given back."""
WAL_ALARM_PAGES: Final = 8_192
"""At this size the WAL is checkpointed out of turn (EV-S7: 32 of 64 MB)."""


class Writer:
    """Owns the write connection and the thread that uses it."""

    def __init__(
        self,
        connection: database.Connection,
        clock: HubClock,
        durability: Durability,
        *,
        deliver: Callable[[Committed], None],
        died: Callable[[BaseException], None],
        flush: Callable[[database.Connection], None],
        on_tick: Callable[[], None],
        before_commit: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._full = durability == "full"
        self._deliver = deliver
        self._died = died
        self._flush = flush
        self._on_tick = on_tick
        self._before_commit = before_commit
        self._queue: queue.SimpleQueue[Job[object] | None] = queue.SimpleQueue()
        self._next_seq = 1
        self._wal_pages = 0
        self._sync_at: float | None = None
        self._idle_at: float | None = None
        self._dead: BaseException | None = None
        self._door = threading.Lock()
        self.commits = 0
        self.wal = WalState()
        self.last_error: TfxError | None = None
        self._thread = threading.Thread(target=self._live, name="hub-writer", daemon=True)

    def start(self) -> None:
        """Read the last seq and start the thread."""
        self._connection.set_wal_hook(self._on_wal)
        self._reload_seq()
        self._thread.start()

    def submit(self, job: Job[object]) -> None:
        """Hand a command over; raises what ended the thread, or OperationFailed `writer-dead`."""
        with self._door:  # nothing comes into the queue behind the thread's last look
            if self._dead is not None:
                raise self._ended()
            self._queue.put(job)

    def stop(self) -> None:
        """Run what is queued, truncate the WAL, close the connection; returns when done (EV-D5)."""
        self._queue.put(None)
        self._thread.join()

    @property
    def wal_pages(self) -> int:
        """How many pages the WAL had after the last commit."""
        return self._wal_pages

    @property
    def pending(self) -> int:
        """How many commands wait."""
        return self._queue.qsize()

    # ------------------------------------------------------------ the thread

    def _live(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001  (whatever ends the writer ends the daemon)
            with self._door:
                self._dead = error
            self._died(error)
        finally:
            self._close()

    def _loop(self) -> None:
        while True:
            jobs = self._take()
            if jobs:
                self._commit_or_tell([job for job in jobs if job is not None])
            now = monotonic()
            if self._sync_at is not None and (
                now >= self._sync_at or self._wal_pages >= WAL_ALARM_PAGES
            ):
                self._sync()
            if self._idle_at is not None and now >= self._idle_at and not jobs:
                self._rest()
            if None in jobs:
                return

    def _take(self) -> list[Job[object] | None]:
        try:
            jobs = [self._queue.get(timeout=self._patience())]
        except queue.Empty:
            return []
        while len(jobs) < GROUP_CAP and jobs[-1] is not None:
            try:
                jobs.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return jobs

    def _patience(self) -> float | None:
        times = [at for at in (self._sync_at, self._idle_at) if at is not None]
        return max(0.0, min(times) - monotonic()) if times else None

    def _commit_or_tell(self, jobs: list[Job[object]]) -> None:
        try:
            self._before_commit()
            self._commit(jobs)
        except BaseException as reason:
            said = "the hub's writer ended; whether this was stored is not known"
            unknown = OperationFailed(said, code="writer-dead")
            error = reason if isinstance(reason, TfxError) else unknown
            self._deliver(Committed(refusals=[(job.future, error) for job in jobs]))
            raise

    def _commit(self, jobs: list[Job[object]]) -> None:
        if not jobs:
            return
        done = Committed()
        began = perf_counter()
        seq = self._next_seq
        try:
            with database.Transaction(self._connection):
                alone = len(jobs) == 1
                for job in jobs:
                    self._run(job, done, alone=alone)
        except database.Error as error:
            done = Committed()
            self._reload_seq()
            typed = database.error_of(error)
            done.refusals = [(job.future, typed) for job in jobs]
        except _Refused as refused:
            self._next_seq = seq
            done = Committed(refusals=[(jobs[0].future, refused.error)])
        else:
            self.commits += 1
            done.commit_ms = (perf_counter() - began) * 1000
            if self._next_seq != seq:
                now = monotonic()
                self._sync_at = self._sync_at or now + SYNC_WITHIN_S
                self._idle_at = now + IDLE_S
        self._deliver(done)

    def _run(self, job: Job[object], done: Committed, *, alone: bool) -> None:
        connection = self._connection
        tx = Tx(connection, self._next_seq, self._clock.command_ms())
        if not alone:
            connection.execute("SAVEPOINT command")
        try:
            answer = job.command(tx)
        except database.ConstraintError as error:
            self._refuse(job, done, refusal_of(error), alone=alone)
        except database.Error:
            raise
        except Exception as error:  # noqa: BLE001  (a refusal never rolls back its neighbours)
            self._refuse(job, done, error, alone=alone)
        else:
            if not alone:
                connection.execute("RELEASE command")
            self._next_seq = tx.next_seq
            done.answers.append((job.future, answer))
            done.effects += tx.effects
            done.events += tx.events
            done.signals.update(tx.signals)

    def _refuse(self, job: Job[object], done: Committed, error: Exception, *, alone: bool) -> None:
        if alone:
            raise _Refused(error)
        self._connection.execute("ROLLBACK TO command")
        self._connection.execute("RELEASE command")
        done.refusals.append((job.future, error))

    def _reload_seq(self) -> None:
        self._next_seq = last_seq(self._connection) + 1

    # ------------------------------------------------------------ durability

    def _on_wal(self, connection: database.Connection, name: str, pages: int) -> int:
        del connection, name
        self._wal_pages = pages
        return 0

    def _sync(self) -> None:
        self._sync_at = None
        self._on_tick()
        try:
            with database.Transaction(self._connection):
                self._flush(self._connection)
            frames, moved = database.checkpoint(self._connection, truncate=False)
            self.wal.checkpoints += 1
            self.wal.frames, self.wal.pinned = frames, moved < frames
            if moved < frames and not self._full:
                self._sync_wal()
            self.last_error = None
        except database.Error as error:
            # Nothing acknowledged is lost by it: the next commit tries again, and fails by itself.
            self.wal.pinned = True
            self._sync_at = monotonic() + SYNC_WITHIN_S
            self.last_error = database.error_of(error)

    def _sync_wal(self) -> None:
        # A pinned PASSIVE checkpoint may sync nothing; a commit under FULL syncs the WAL (EV-D3).
        self._connection.pragma("synchronous", "FULL")
        try:
            with database.Transaction(self._connection):
                self._connection.execute("UPDATE counted SET syncs = syncs + 1")
            self.wal.syncs += 1
        finally:
            self._connection.pragma("synchronous", "NORMAL")

    def _rest(self) -> None:
        self._idle_at = None
        try:
            if vacuum_slice(self._connection):
                self._idle_at = monotonic() + 0.05
            else:
                frames, _ = database.checkpoint(self._connection, truncate=True)
                self.wal.frames = frames
        except database.Error as error:
            self.last_error = database.error_of(error)

    def _close(self) -> None:
        try:
            if self._dead is None:
                with database.Transaction(self._connection):
                    self._flush(self._connection)
                database.checkpoint(self._connection, truncate=True)
        except database.Error as error:
            self.last_error = database.error_of(error)
        finally:
            self._connection.close()
            while not self._queue.empty():
                job = self._queue.get()
                if job is not None:
                    self._deliver(Committed(refusals=[(job.future, self._ended())]))

    def _ended(self) -> TfxError:
        # Who comes after the end is told its cause, as those were who saw it.
        if isinstance(self._dead, TfxError):
            return self._dead
        return OperationFailed("the hub's writer has ended", code="writer-dead")


class _Refused(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def last_seq(connection: database.Connection) -> int:
    """Return the highest seq ever given; forgetting does not lower it (EV-L3)."""
    for (seq,) in connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'"):
        return int(seq)
    return 0
