"""Databases of schema version 2: frozen files of its hub, and large ones made by the store's code.

The hub of today writes a later version; its events and their fold still make version 2's rows.
"""

from __future__ import annotations

import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from tests.upgrade.scenes import DATA, NOW_MS, everything, select
from tfx.core import database
from tfx.hub.models import HUB, StreamNo
from tfx.hub.schema import from_v2, registry
from tfx.hub.store import rebuild
from tfx.hub.store.counters import Counters
from tfx.hub.store.events import Acked, Claimed, Dead, HubStarted, Posted, Session
from tfx.hub.store.kinds import Kind
from tfx.hub.store.reader import Reader
from tfx.hub.store.tx import Op, Tx
from tfx.upgrade.model import Receipt

VERSION: Final = 2
OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
FROZEN: Final = ("adopted", "crashed", "hub")
_FILES: Final = DATA / "v2"
_BATCH: Final = 2_000
_AGENTS: Final = 40
_DAY_MS: Final = 86_400_000


def unpack_v2(name: str, path: Path) -> Path:
    """Write a frozen database as its hub left it; that of a killed one has its WAL beside it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for packed in (_FILES / f"{name}.db.xz", _FILES / f"{name}.db-wal.xz"):
        if packed.exists():
            end = packed.name.removeprefix(f"{name}.db").removesuffix(".xz")
            target = path.with_name(path.name + end)
            target.write_bytes(lzma.decompress(packed.read_bytes()))
            target.chmod(0o600)
    return path


def empty_v2(path: Path) -> Path:
    """Make a database of version 2 as its hub made one, without rows."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    connection = database.open_writer(path, create=True)
    registry.create(connection, VERSION)
    connection.close()
    path.chmod(0o600)
    return path


def filled_v2(path: Path, number: int, payload_bytes: int = 300) -> Path:
    """Make a database of version 2 with so many messages, by the store's own events and fold.

    Of ten messages five are acked, one is claimed, one dead, one queued, one has three receivers,
    and one asks and is answered by one more message.
    """
    empty_v2(path)
    connection = database.open_writer(path, synchronous="OFF")
    filling = _Filling(connection, payload_bytes)
    filling.agents()
    for first in range(0, number, _BATCH):
        filling.batch(range(first, min(first + _BATCH, number)))
    filling.finish()
    connection.close()
    return path


def is_folded(path: Path) -> bool:
    """Return True when the projections are what the log folds to, byte for byte (EV-P2)."""
    connection = database.open_reader(path)
    folding = rebuild.Refold()
    try:
        reader = Reader(connection, NOW_MS)
        while folding.take_page(reader):
            pass
        return folding.compare(reader) == []
    finally:
        folding.close()
        connection.close()


def objects(path: Path) -> list[database.Row]:
    return select(path, OBJECTS)


def fresh(path: Path) -> Path:
    connection = database.open_writer(path, create=True)
    registry.create(connection)
    connection.close()
    return path


def rows_of_v2(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the tables that version 2 had, the stamp and the marks besides."""
    found = everything(path)
    return {table: found[table] for table in (*from_v2.KEPT, "sqlite_sequence") if table in found}


def kept_in(receipt: Receipt) -> Path:
    [file] = Path(receipt.backup_directory or "").glob("*.db")
    return file


class _Filling:
    def __init__(self, connection: database.Connection, payload_bytes: int) -> None:
        self._connection = connection
        self._size = payload_bytes
        self._chance = random.Random(11)
        self._text = "".join(self._chance.choice("abcdefghij 한") for _ in range(9_000))
        self._counters = Counters()
        self._seq = 1
        self._now_ms = NOW_MS - 3_600_000

    def agents(self) -> None:
        """Register agents; every third listens to the news."""

        def register(tx: Tx) -> None:
            started = HubStarted(epoch="epoch-of-the-tests", fold_version=1, program="0.1.0")
            tx.begin_stream("run/epoch-of-the-tests", Kind.HUB_STARTED, HUB, started)
            for number in range(_AGENTS):
                body = _session(number)
                tx.begin_stream(f"agent/{body.id}", Kind.AGENT_REGISTERED, body.id, body)

        self._do(register)

    def batch(self, numbers: range) -> None:
        """Post messages and do with each what its number says."""

        def work(tx: Tx) -> None:
            for number in numbers:
                _message(tx, number, self._payload(number))

        self._do(work)

    def finish(self) -> None:
        """Save the totals, as a hub does when it ends."""
        with database.Transaction(self._connection):
            self._counters.save(self._connection)
        database.checkpoint(self._connection, truncate=True)
        self._connection.pragma("journal_mode", "DELETE")

    def _do(self, work: Callable[[Tx], None]) -> None:
        self._now_ms += 7
        with database.Transaction(self._connection):
            tx = Tx(self._connection, self._seq, self._now_ms)
            work(tx)
        self._counters.add(tx.events)
        self._seq = tx.next_seq

    def _payload(self, number: int) -> bytes:
        start = self._chance.randrange(8_000)
        text = self._text[start : start + self._size]
        return f'{{"n":{number},"text":"{text}"}}'.encode()


def _session(number: int) -> Session:
    return Session(
        capabilities=["code"],
        client="codex",
        id=f"agent-{number}",
        metadata=msgspec.Raw(b"{}"),
        session=f"session-{number}",
        topics=["news"] if number % 3 == 0 else [],
        ttl_ms=_DAY_MS,
        workspace="/home/ann/project",
    )


def _message(tx: Tx, number: int, payload: bytes) -> None:
    """Post one message and do with it what its number says."""
    what = number % 10
    receiver = f"agent-{number % _AGENTS}"
    receivers = [f"agent-{(number + more) % _AGENTS}" for more in range(3 if what == 8 else 1)]
    body = Posted(
        correlation_id=f"c-{number}" if what == 9 else None,
        expires_at_ms=tx.now_ms + _DAY_MS,
        id=f"m-{number:08}",
        priority=1 + number % 9,
        receivers=receivers,
        recipient="topic:news" if what == 8 else receiver,
        sender=f"agent-{(number + 5) % _AGENTS}",
        topic="news",
        trace_id=f"t-{number // 5}",
        type="request" if what == 9 else "event",
    )
    op = Op(f"op-{number}", bytes(16)) if what < 3 else None
    name = f"message/{body.id}"
    posted = tx.begin_stream(name, Kind.MESSAGE_POSTED, body.sender, body, payload=payload, op=op)
    stream = StreamNo(posted.stream)

    def claim() -> None:
        claimed = Claimed(1, f"claim-{number}", receiver, tx.now_ms + 60_000)
        tx.append(name, stream, Kind.DELIVERY_CLAIMED, receiver, claimed)

    if what < 5:
        claim()
        tx.append(name, stream, Kind.DELIVERY_ACKED, receiver, Acked(receiver))
    elif what == 5:
        claim()
    elif what == 6:
        dead = Dead("max-attempts", receiver)
        tx.append(name, stream, Kind.DELIVERY_DEAD, HUB, dead)
    elif what == 9:
        _answer(tx, number, posted.stream, body)


def _answer(tx: Tx, number: int, request: int, asked: Posted) -> None:
    body = Posted(
        cause=asked.id,
        correlation_id=asked.correlation_id,
        expires_at_ms=tx.now_ms + _DAY_MS,
        id=f"r-{number:08}",
        outcome="answered",
        priority=5,
        receivers=[asked.sender],
        recipient=asked.sender,
        request=request,
        sender=asked.recipient,
        topic="answers",
        trace_id=asked.trace_id,
        type="response",
    )
    tx.begin_stream(
        f"message/{body.id}", Kind.REPLY_POSTED, body.sender, body, payload=b"{}", answers=request
    )
