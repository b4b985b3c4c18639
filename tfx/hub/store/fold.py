"""Turn an event into changes of rows: a pure function of the event (EV-P1).

Knows no connection, clock, process or random value; `projections` knows the SQL of a change.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from tfx.hub.store.changes import Cell, Change, Changes
from tfx.hub.store.events import (
    Acked,
    AgentRetired,
    Claimed,
    ClockJumped,
    Dead,
    Event,
    HubStarted,
    HumanClosed,
    HumanOpened,
    Posted,
    Purged,
    Queued,
    Replayed,
    Returned,
    Session,
    encode_texts,
)
from tfx.hub.store.fold_imported import fold_imported
from tfx.hub.store.fold_occupancy import OCCUPANCY_FOLDERS
from tfx.hub.store.fold_work import WORK_FOLDERS
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def fold(event: Event) -> Changes | None:
    """Return the changes of an event in order, or None for a kind this fold does not know."""
    folder = _FOLDERS.get(event.kind)
    return None if folder is None else folder(event)


def _hub_started(event: Event) -> Changes:
    body = cast("HubStarted", event.body)
    row = (event.stream, body.epoch, body.program, body.fold_version, event.at_ms, event.seq)
    return [(Change.RUN_OPEN, row)]


def _hub_stopped(event: Event) -> Changes:
    return [(Change.RUN_STOP, (event.at_ms, event.seq, event.stream))]


def _clock_jumped(event: Event) -> Changes:
    body = cast("ClockJumped", event.body)
    jump = body.jump_ms
    return [
        (Change.RUN_JUMP, (jump, event.seq, event.stream)),
        (Change.SHIFT_DELIVERIES, (jump, jump, event.seq)),
        (Change.SHIFT_HUMANS, (jump, event.seq)),
        (Change.SHIFT_LEASES, (jump, event.seq)),
        (Change.SHIFT_HOLDS, (jump, event.seq)),
    ]


def _session(event: Event) -> Changes:
    body = cast("Session", event.body)
    row = (
        event.stream,
        body.id,
        body.client,
        body.workspace,
        encode_texts(body.capabilities),
        bytes(body.metadata).decode(),
        body.session,
        body.ttl_ms,
        body.pid,
        body.start_token,
        body.boot_id,
        body.host,
        body.pid_namespace,
        event.at_ms,
        event.seq,
    )
    changes: Changes = [(Change.AGENT_PUT, row), (Change.TOPICS_CLEAR, (body.id,))]
    changes += [(Change.TOPIC_ADD, (topic, body.id, event.seq)) for topic in body.topics]
    return changes


def _session_ended(event: Event) -> Changes:
    return [(Change.AGENT_END, (event.at_ms, event.seq, event.stream))]


def _agent_retired(event: Event) -> Changes:
    body = cast("AgentRetired", event.body)
    row = (event.at_ms, event.at_ms, event.seq, event.stream)
    return [(Change.AGENT_RETIRE, row), (Change.TOPICS_CLEAR, (body.id,))]


def _posted(event: Event) -> Changes:
    body = cast("Posted", event.body)
    stream, seq = event.stream, event.seq
    changes: Changes = [
        (
            Change.MESSAGE_ADD,
            (
                stream,
                body.id,
                body.type,
                body.sender,
                body.recipient,
                body.topic,
                body.priority,
                event.at_ms,
                body.expires_at_ms,
                body.correlation_id,
                body.trace_id,
                body.cause,
                seq,
            ),
        )
    ]
    until = body.expires_at_ms
    for receiver in body.receivers:
        row = (stream, receiver, body.priority, until, until, seq)
        changes.append((Change.DELIVERY_ADD, row))
    if body.dead_receiver is not None:
        row_of_dead = (
            stream,
            body.dead_receiver,
            body.priority,
            until,
            event.at_ms,
            seq,
            body.dead_reason,
            seq,
        )
        changes.append((Change.DELIVERY_ADD_DEAD, row_of_dead))
    if body.request is not None:
        changes.append((Change.MESSAGE_SETTLE, (body.id, body.outcome, seq, body.request)))
    return changes


def _queued(event: Event) -> Changes:
    body = cast("Queued", event.body)
    row = (body.receiver, event.seq, event.stream, body.instead_of)
    return [(Change.DELIVERY_REDIRECT, row)]


def _claimed(event: Event) -> Changes:
    body = cast("Claimed", event.body)
    row = (
        body.attempt,
        body.claim,
        body.visible_until_ms,
        event.seq,
        event.stream,
        body.receiver,
    )
    return [(Change.DELIVERY_CLAIM, row)]


def _returned(event: Event) -> Changes:
    body = cast("Returned", event.body)
    return [(Change.DELIVERY_RETURN, (event.seq, event.stream, body.receiver))]


def _acked(event: Event) -> Changes:
    body = cast("Acked", event.body)
    return [_close(event, body.receiver, "acked", None, None)]


def _dead(event: Event) -> Changes:
    body = cast("Dead", event.body)
    changes: Changes = [_close(event, body.receiver, "dead", body.reason, body.last_error)]
    if body.settles:
        changes.append((Change.MESSAGE_GIVE_UP, (event.seq, event.stream)))
    return changes


def _purged(event: Event) -> Changes:
    body = cast("Purged", event.body)
    return [_close(event, body.receiver, "purged", None, None)]


def _close(
    event: Event, receiver: str, state: str, reason: str | None, error: str | None
) -> tuple[Change, tuple[Cell, ...]]:
    row = (state, event.at_ms, event.seq, reason, error, event.seq, event.stream, receiver)
    return Change.DELIVERY_CLOSE, row


def _replayed(event: Event) -> Changes:
    body = cast("Replayed", event.body)
    row = (body.replayed_as, event.seq, event.stream, body.receiver)
    return [(Change.DELIVERY_REPLAY, row)]


def _human_opened(event: Event) -> Changes:
    body = cast("HumanOpened", event.body)
    row = (
        event.stream,
        body.id,
        body.requester,
        body.human_kind,
        body.default_action,
        body.channel,
        bytes.fromhex(body.digest),
        body.correlation_id,
        body.trace_id,
        event.at_ms,
        body.deadline_ms,
        event.seq,
    )
    return [(Change.HUMAN_OPEN, row)]


def _human_closed(event: Event) -> Changes:
    body = cast("HumanClosed", event.body)
    row = (
        body.state,
        event.at_ms,
        event.seq,
        body.answered_by,
        body.response,
        event.seq,
        event.stream,
    )
    return [(Change.HUMAN_CLOSE, row)]


def _noted(_event: Event) -> Changes:
    """Keep it in the log only: it says that nothing changed (EV-L7)."""
    return []


_FOLDERS: Final[Mapping[str, Callable[[Event], Changes]]] = MappingProxyType(
    {
        Kind.HUB_STARTED.value: _hub_started,
        Kind.HUB_STOPPED.value: _hub_stopped,
        Kind.CLOCK_JUMPED.value: _clock_jumped,
        Kind.AGENT_REGISTERED.value: _session,
        Kind.SESSION_OPENED.value: _session,
        Kind.SESSION_ENDED.value: _session_ended,
        Kind.AGENT_RETIRED.value: _agent_retired,
        Kind.MESSAGE_POSTED.value: _posted,
        Kind.REPLY_POSTED.value: _posted,
        Kind.DELIVERY_QUEUED.value: _queued,
        Kind.DELIVERY_CLAIMED.value: _claimed,
        Kind.DELIVERY_RETURNED.value: _returned,
        Kind.DELIVERY_ACKED.value: _acked,
        Kind.DELIVERY_DEAD.value: _dead,
        Kind.DELIVERY_REPLAYED.value: _replayed,
        Kind.DELIVERY_PURGED.value: _purged,
        Kind.HUMAN_REQUEST_OPENED.value: _human_opened,
        Kind.HUMAN_REQUEST_ANSWERED.value: _human_closed,
        Kind.HUMAN_REQUEST_EXPIRED.value: _human_closed,
        Kind.HUMAN_REQUEST_WITHDRAWN.value: _human_closed,
        Kind.IMPORTED.value: fold_imported,
        Kind.REQUEST_NOTED.value: _noted,
        **WORK_FOLDERS,
        **OCCUPANCY_FOLDERS,
    }
)
