"""Dead letters: list, send again, give up.

Knows no SQL and no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import InvalidRequest, NotFound
from tfx.hub.models import (
    AgentId,
    DeadReason,
    MessageId,
    MessageType,
    StreamNo,
    Topic,
    TraceId,
)
from tfx.hub.services import posting
from tfx.hub.services.shapes import ENVELOPE_BYTES, fitting
from tfx.hub.store import messages, runs, views
from tfx.hub.store.events import Posted, Purged, Replayed
from tfx.hub.store.ids import new_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.ops import op_of
from tfx.hub.wire.views import (
    DeadLetter,
    DeadLettersRequest,
    DeadLettersResult,
    DeadPurgeRequest,
    DeadPurgeResult,
    DeadReplayRequest,
    DeadReplayResult,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.store.candidate import Candidate
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx
    from tfx.hub.store.views import DeadRow

PURGE_AT_ONCE: Final = 1_000
_SCANNED: Final = 5_000


class DeadLetters:
    """What did not reach its receiver."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def dead_letters(self, caller: Caller, request: DeadLettersRequest) -> DeadLettersResult:
        """List dead letters in the order in which they died."""
        del caller

        def query(reader: Reader) -> DeadLettersResult:
            found: list[DeadLetter] = []
            after = request.after
            for row in views.dead_page(reader, request.agent_id, after, _SCANNED):
                after = row.seq
                if _wanted(row, request.reason, request.topic):
                    found.append(_letter(row))
                    if len(found) > request.limit:
                        break
            shown, whole = fitting(found[: request.limit], request.max_bytes - ENVELOPE_BYTES)
            more = not whole or len(found) > request.limit
            return DeadLettersResult(dead_letters=shown, next_after=shown[-1].seq if more else None)

        return await self._store.read(query)

    async def dead_replay(self, caller: Caller, request: DeadReplayRequest) -> DeadReplayResult:
        """Send a dead letter again as a new message of the same trace (H-54).

        Raises NotFound `unknown-message`, or `unknown-recipient` when its receiver is gone;
        InvalidRequest when the message has several dead letters and none is chosen.
        """
        actor = caller.actor
        op = op_of("dead_replay", request)

        def command(tx: Tx) -> DeadReplayResult:
            before = tx.done_before(actor, op)
            if before is not None and isinstance(before.body, Posted):
                return _replayed(before.body, MessageId(request.message_id))
            row = _choose(tx, request.message_id, request.receiver)
            stored = views.message(tx, row.message_id)
            if stored is None:
                raise _no_message(request.message_id)
            old = stored.message
            draft = messages.Draft(
                id=MessageId(new_id(tx.now_ms)),
                type=MessageType(old.type),
                sender=AgentId(old.sender),
                recipient=row.receiver,
                topic=old.topic,
                priority=old.priority,
                ttl_ms=request.ttl_ms,
                payload=old.payload,
                correlation_id=_replay_correlation(old),
                trace_id=old.trace_id or old.id,
                cause=old.id,
            )
            event = posting.post(tx, draft, op, deferred=False, actor=actor)
            tx.append(
                f"message/{old.id}",
                StreamNo(old.stream),
                Kind.DELIVERY_REPLAYED,
                actor,
                Replayed(receiver=row.receiver, replayed_as=draft.id),
            )
            if not isinstance(event.body, Posted):
                raise _no_message(request.message_id)
            return _replayed(event.body, old.id)

        return await self._store.write(command)

    async def dead_purge(self, caller: Caller, request: DeadPurgeRequest) -> DeadPurgeResult:
        """Give up one dead letter, or up to 1 000 of a filter at once."""
        if (
            request.message_id is None
            and request.older_than_ms is None
            and not (request.agent_id or request.reason)
        ):
            raise InvalidRequest("name a message or a filter", details={"field": "message_id"})

        op = op_of("dead_purge", request)

        def command(tx: Tx) -> DeadPurgeResult:
            before = tx.done_before(caller.actor, op)
            if before is not None:
                did = before.body.together if isinstance(before.body, Purged) else 0
                return DeadPurgeResult(purged=did)
            if request.message_id is not None:
                rows = views.dead_of_message(tx, request.message_id)
                if not rows and views.message(tx, request.message_id) is None:
                    raise _no_message(request.message_id)
            else:
                rows = views.dead_page(tx, request.agent_id, 0, PURGE_AT_ONCE)
            least = request.older_than_ms or 0
            gone = [
                row
                for row in rows
                if tx.now_ms - row.failed_at_ms >= least and _wanted(row, request.reason, None)
            ]
            for at, row in enumerate(gone):
                key = op if at == 0 else None
                messages.purge(tx, _open(row), caller.actor, key, len(gone))
            runs.note(tx, "purge")
            return DeadPurgeResult(purged=len(gone))

        return await self._store.write(command)


def _choose(tx: Tx, message_id: str, receiver: str | None) -> DeadRow:
    rows = views.dead_of_message(tx, message_id)
    if receiver is not None:
        rows = [row for row in rows if row.receiver == receiver]
    if not rows:
        raise _no_message(message_id)
    if len(rows) > 1:
        raise InvalidRequest(
            "the message has several dead letters; choose one by receiver",
            details={"field": "receiver", "receivers": [row.receiver for row in rows]},
        )
    return rows[0]


def _wanted(row: DeadRow, reason: DeadReason | None, topic: str | None) -> bool:
    return (reason is None or row.reason == reason) and (topic is None or row.topic == topic)


def _replay_correlation(old: Candidate) -> str | None:
    # A replayed ask is a request of its own; an answer keeps naming what it answers.
    asks = {MessageType.REQUEST.value, MessageType.HANDOFF.value}
    return None if old.type in asks else old.correlation_id


def _replayed(body: Posted, old: MessageId) -> DeadReplayResult:
    return DeadReplayResult(
        message_id=MessageId(body.id),
        replays=old,
        fanout_count=len(body.receivers),
        expires_at_ms=body.expires_at_ms,
    )


def _letter(row: DeadRow) -> DeadLetter:
    return DeadLetter(
        seq=row.seq,
        message_id=row.message_id,
        sender=row.sender,
        receiver=row.receiver,
        topic=Topic(row.topic),
        type=MessageType(row.type),
        reason=DeadReason(row.reason),
        last_error=row.last_error,
        attempts=row.attempts,
        failed_at_ms=row.failed_at_ms,
        trace_id=TraceId(row.trace_id or row.message_id),
        replayed_as=row.replayed_as,
    )


def _open(row: DeadRow) -> messages.OpenDelivery:
    return messages.OpenDelivery(
        stream=row.stream,
        receiver=row.receiver,
        state="dead",
        priority=row.priority,
        attempts=row.attempts,
        expires_at_ms=0,
        message_id=row.message_id,
        sender=row.sender,
        type=row.type,
        settled=None,
    )


def _no_message(message_id: str) -> NotFound:
    return NotFound(f"no dead letter has the id {message_id}", code="unknown-message")
