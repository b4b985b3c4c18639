"""One command inside the writer's transaction: append events, fold them, collect what follows.

Knows the log and the projections, not what a command means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.errors import JsonValue, StateConflict
from tfx.hub.models import StreamNo
from tfx.hub.store.events import Event, RequestNoted, decode_body, encode_body, event_id
from tfx.hub.store.fold import fold
from tfx.hub.store.kinds import Kind
from tfx.hub.store.projections import SQL

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tfx.core.database import Connection, Row, Value
    from tfx.hub.store.body import Body
    from tfx.hub.store.tally import Effect

_INSERT: Final = (
    "INSERT INTO log (seq, event_id, stream, previous, at_ms, kind, actor, op_id, op_digest, "
    "answers, body, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_LAST_OF_STREAM: Final = (
    "SELECT previous, seq FROM log WHERE stream = ? ORDER BY previous DESC LIMIT 1"
)
_BY_OP: Final = (
    "SELECT seq, op_digest, kind, stream, at_ms, body FROM log WHERE actor = ? AND op_id = ?"
)


@dataclass(frozen=True, slots=True)
class Op:
    """The idempotency key of a command and the digest of what it asks (EV-L7, EV-L8)."""

    op_id: str
    digest: bytes


class Tx:
    """What a command may do; it lives for one command and is used in the writer thread only."""

    __slots__ = (
        "_next_seq",
        "asked",
        "connection",
        "effects",
        "events",
        "now_ms",
        "owed_change",
        "pending_change",
        "signals",
    )

    def __init__(self, connection: Connection, next_seq: int, now_ms: int) -> None:
        self.connection = connection
        self.now_ms = now_ms
        self.asked: tuple[str, Op] | None = None
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.signals: list[Hashable] = []
        self._next_seq = next_seq

    @property
    def next_seq(self) -> int:
        """The seq that the next event gets."""
        return self._next_seq

    def one(self, sql: str, values: tuple[Value, ...] = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.connection.execute(sql, values).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, values: tuple[Value, ...] = ()) -> list[Row]:
        """Return every row of a query."""
        return self.connection.execute(sql, values).fetchall()

    def begin_stream(
        self,
        name: str,
        kind: Kind,
        actor: str,
        body: Body,
        *,
        payload: bytes | None = None,
        op: Op | None = None,
        answers: int | None = None,
    ) -> Event:
        """Append the first event of a new stream and fold it; the stream is named by its seq."""
        return self._append(name, self._next_seq, 0, kind, actor, body, payload, op, answers)

    def append(
        self,
        name: str,
        stream: StreamNo,
        kind: Kind,
        actor: str,
        body: Body,
        *,
        observed: int | None = None,
        payload: bytes | None = None,
        op: Op | None = None,
    ) -> Event:
        """Append the next event of a stream and fold it.

        With `observed` only if that is still the stream's last seq: else StateConflict `stale`
        (EV-L9).
        """
        last = self.last_of(stream)
        if observed is not None and observed != last:
            raise StateConflict(
                f"{name} has moved: its last event is {last}, not {observed}",
                code="stale",
                details={"observed": observed, "last": last},
            )
        return self._append(name, stream, last, kind, actor, body, payload, op, None)

    def last_of(self, stream: StreamNo) -> int:
        """Return the seq of the last event of a stream."""
        row = self.one(_LAST_OF_STREAM, (stream,))
        return 0 if row is None else int(row[1])  # type: ignore[arg-type]

    def done_before(self, actor: str, op: Op | None) -> Event | None:
        """Return the event that this key appended before, if its content was the same.

        Raises StateConflict `idempotency-conflict` with the stored seq for other content.
        """
        if op is None:
            return None
        row = self.one(_BY_OP, (actor, op.op_id))
        if row is None:
            self.asked = (actor, op)  # until an event carries the key
            return None
        seq, digest, kind, stream, at_ms, text = row
        if digest != op.digest:
            details: dict[str, JsonValue] = {"op_id": op.op_id, "seq": int(seq)}  # type: ignore[arg-type]
            raise StateConflict(
                f"the key {op.op_id!r} was used for another request",
                code="idempotency-conflict",
                hint="use a new op_id for a new request",
                details=details,
            )
        body = decode_body(str(kind), str(text))
        if body is None:
            return None
        return Event(int(seq), int(stream), int(at_ms), str(kind), actor, body)  # type: ignore[arg-type]

    def note(self, name: str, stream: StreamNo, verb: str, result: str | None = None) -> None:
        """Append an event for the key that no event carries yet; without such a key do nothing.

        So a request that changed nothing is kept as one that did, and its retry never acts later
        (EV-L7).
        """
        if self.asked is not None:
            actor, op = self.asked
            body = RequestNoted(verb=verb, result=result)
            self.append(name, stream, Kind.REQUEST_NOTED, actor, body, op=op)

    def _append(  # noqa: PLR0913, PLR0917  (the columns of the log, in their order)
        self,
        name: str,
        stream: int,
        previous: int,
        kind: Kind,
        actor: str,
        body: Body,
        payload: bytes | None,
        op: Op | None,
        answers: int | None,
    ) -> Event:
        seq = self._next_seq
        execute = self.connection.execute
        op_id, digest = (None, None) if op is None else (op.op_id, op.digest)
        execute(
            _INSERT,
            (
                seq,
                event_id(name, kind, previous),
                stream,
                previous,
                self.now_ms,
                kind,
                actor,
                op_id,
                digest,
                answers,
                encode_body(body),
                payload,
            ),
        )
        self._next_seq = seq + 1
        if op is not None:
            self.asked = None
        event = Event(seq, stream, self.now_ms, kind, actor, body)
        for change, row in fold(event) or ():
            execute(SQL[change], row)
        self.events.append(event)
        return event
