"""What several services share: the wire form of stored rows, and checks of what was sent.

Knows neither the order of events nor who waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tfx.core import canonical_json
from tfx.errors import InvalidRequest
from tfx.hub.models import (
    AgentId,
    CorrelationId,
    MessageType,
    Topic,
    TraceId,
)
from tfx.hub.wire.messages import Message, Owed

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.store.messages import Candidate
    from tfx.hub.store.views import OwedRow

OWED_SHOWN = 5
"""So many owed and awaited answers stand in a poll result, oldest first (H-62)."""


def json_object(raw: msgspec.Raw, field: str, limit: int) -> bytes:
    """Return the canonical bytes of a JSON object; raises InvalidRequest naming the field."""
    if len(raw) > limit:
        raise InvalidRequest(
            f"{field} has {len(raw)} bytes; {limit} are allowed",
            code="too-large",
            details={"field": field, "bytes": len(raw), "limit": limit},
        )
    data = canonical_json.canonical(bytes(raw))
    if not data.startswith(b"{"):
        raise InvalidRequest(f"{field} must be a JSON object", details={"field": field})
    return data


def members(data: bytes) -> dict[str, JsonValue]:
    """Return the members of an object that `json_object` accepted."""
    found: dict[str, JsonValue] = msgspec.json.decode(data)
    return found


def message_of(found: Candidate, attempt: int) -> Message:
    """Return a stored message as its receiver sees it."""
    return Message(
        message_id=found.id,
        type=MessageType(found.type),
        sender=AgentId(found.sender),
        to=found.recipient,
        topic=Topic(found.topic),
        priority=found.priority,
        payload=msgspec.Raw(found.payload),
        correlation_id=correlation_of(found.id, found.type, found.correlation_id),
        trace_id=TraceId(found.trace_id or found.id),
        created_at_ms=found.posted_at_ms,
        expires_at_ms=found.expires_at_ms,
        attempt=attempt,
        payload_bytes=len(found.payload),
    )


def correlation_of(message_id: str, kind: str, stored: str | None) -> CorrelationId | None:
    """Return the correlation: an ask's or handoff's own id unless its sender chose another."""
    if stored is None and kind in {MessageType.REQUEST, MessageType.HANDOFF}:
        return CorrelationId(message_id)
    return None if stored is None else CorrelationId(stored)


def owed_of(rows: list[OwedRow]) -> tuple[Owed, ...]:
    """Return owed or awaited answers in their wire form."""
    return tuple(
        Owed(
            message_id=row.id,
            correlation_id=CorrelationId(row.correlation_id or row.id),
            agent=AgentId(row.other),
            topic=Topic(row.topic),
            created_at_ms=row.posted_at_ms,
        )
        for row in rows
    )


def cut(message: Message, room: int) -> Message:
    """Return a message whose payload is cut so that its JSON has at most `room` bytes (H-31)."""
    text = bytes(message.payload).decode("utf-8", "replace")

    def showing(length: int) -> Message:
        piece = msgspec.json.encode({"cut": True, "text": text[:length]})
        return msgspec.structs.replace(message, payload=msgspec.Raw(piece), cut=True)

    fits, too_long = 0, max(1, room) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if len(msgspec.json.encode(showing(middle))) <= room:
            fits = middle
        else:
            too_long = middle
    return showing(fits)
