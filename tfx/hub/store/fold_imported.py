"""Turn an `imported` event into changes of rows, as `fold` does for every other one.

Knows no connection, clock or process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tfx.hub.store.changes import Cell, Change, Changes
from tfx.hub.store.events import encode_texts

if TYPE_CHECKING:
    from tfx.hub.store.events import Event
    from tfx.hub.store.imported import (
        Imported,
        ImportedAgent,
        ImportedDelivery,
        ImportedHuman,
        ImportedMessage,
    )


def fold_imported(event: Event) -> Changes:
    """Return the changes of an `imported` event."""
    body = cast("Imported", event.body)
    if body.agent is not None:
        return _imported_agent(event, body.agent)
    if body.message is not None:
        return _imported_message(event, body.message)
    if body.human is not None:
        return [(Change.HUMAN_OPEN, _imported_human(event, body.human))]
    if body.outcome is not None:
        end = body.outcome
        row = (end.state, end.closed_at_ms, event.seq, None, None, event.seq, event.stream)
        return [(Change.HUMAN_CLOSE, row)]
    return []


def _imported_agent(event: Event, body: ImportedAgent) -> Changes:
    row = (
        event.stream,
        body.id,
        body.client,
        encode_texts(body.capabilities),
        body.metadata,
        body.ttl_ms,
        body.seen_at_ms,
        body.seen_at_ms,
        event.seq,
    )
    changes: Changes = [(Change.AGENT_IMPORT, row)]
    changes += [(Change.TOPIC_ADD, (topic, body.id, event.seq)) for topic in body.topics]
    return changes


def _imported_message(event: Event, body: ImportedMessage) -> Changes:
    row = (
        event.stream,
        body.id,
        body.type,
        body.sender,
        body.recipient,
        body.topic,
        body.priority,
        body.created_at_ms,
        body.until_ms,
        body.correlation_id,
        body.trace_id,
        body.answer,
        body.settled,
        event.seq,
    )
    changes: Changes = [(Change.MESSAGE_IMPORT, row)]
    changes += [
        (Change.DELIVERY_IMPORT, _imported_delivery(event, body, each)) for each in body.deliveries
    ]
    return changes


def _imported_delivery(
    event: Event, body: ImportedMessage, each: ImportedDelivery
) -> tuple[Cell, ...]:
    is_open = each.state == "queued"
    return (
        event.stream,
        each.receiver,
        each.state,
        body.priority,
        each.attempts,
        body.until_ms,
        body.until_ms if is_open else None,
        each.closed_at_ms,
        None if is_open else event.seq,
        each.reason,
        each.last_error,
        event.seq,
    )


def _imported_human(event: Event, body: ImportedHuman) -> tuple[Cell, ...]:
    return (
        event.stream,
        body.id,
        body.requester,
        body.human_kind,
        body.default_action,
        "terminal",
        bytes.fromhex(body.digest),
        body.correlation_id,
        body.trace_id,
        body.opened_at_ms,
        body.until_ms,
        event.seq,
    )
