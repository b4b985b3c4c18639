"""Turn events of occupancy and invocations into changes of rows: pure (EV-P1).

Knows no connection, clock, process or random value. A generation is the seq of the event that
brought the holder, so that it only rises, even over a forgotten agent that comes back.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from tfx.hub.store.changes import Change, Changes
from tfx.hub.store.events import encode_body
from tfx.hub.store.kinds import Kind
from tfx.hub.store.occupancy_bodies import (
    AgentBusy,
    AgentIdle,
    InvocationFinished,
    InvocationLost,
    InvocationNotified,
    InvocationStarted,
    ReceiverHeld,
    ReceiverReleased,
    TerminalEnded,
    TerminalOpened,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfx.hub.store.events import Event


def _held(event: Event) -> Changes:
    body = cast("ReceiverHeld", event.body)
    row = (
        body.agent,
        event.stream,
        event.seq,
        body.hold,
        encode_body(body.holder),
        body.message,
        event.at_ms,
        body.until_ms,
        event.seq,
    )
    return [(Change.HOLD_SET, row)]


def _released(event: Event) -> Changes:
    body = cast("ReceiverReleased", event.body)
    return [(Change.HOLD_CLEAR, (event.seq, body.agent, body.hold))]


def _opened(event: Event) -> Changes:
    body = cast("TerminalOpened", event.body)
    holder = encode_body(body.holder)
    row = (body.agent, event.stream, event.seq, body.terminal, holder, event.at_ms, event.seq)
    return [(Change.TERMINAL_SET, row)]


def _closed(event: Event) -> Changes:
    body = cast("TerminalEnded", event.body)
    return [(Change.TERMINAL_CLEAR, (event.seq, body.agent, body.terminal))]


def _busy(event: Event) -> Changes:
    body = cast("AgentBusy", event.body)
    holder = encode_body(body.holder)
    row = (body.agent, event.stream, event.seq, body.invocation, holder, event.at_ms, event.seq)
    return [(Change.BUSY_SET, row)]


def _idle(event: Event) -> Changes:
    body = cast("AgentIdle", event.body)
    return [(Change.BUSY_CLEAR, (event.seq, body.agent, body.invocation))]


def _started(event: Event) -> Changes:
    body = cast("InvocationStarted", event.body)
    row = (
        event.stream,
        body.id,
        body.invocation_kind,
        body.agent,
        encode_body(body.holder),
        body.task,
        body.title,
        body.trace_id,
        event.at_ms,
        event.seq,
    )
    return [(Change.INVOCATION_ADD, row)]


def _finished(event: Event) -> Changes:
    body = cast("InvocationFinished", event.body)
    row = (
        event.at_ms,
        int(body.is_late),
        body.outcome,
        body.summary,
        body.error,
        event.seq,
        event.stream,
    )
    return [(Change.INVOCATION_FINISH, row)]


def _lost(event: Event) -> Changes:
    body = cast("InvocationLost", event.body)
    return [(Change.INVOCATION_LOSE, (event.at_ms, body.evidence, event.seq, event.stream))]


def _notified(event: Event) -> Changes:
    body = cast("InvocationNotified", event.body)
    return [(Change.INVOCATION_NOTIFY, (body.by, event.at_ms, event.seq, event.stream))]


OCCUPANCY_FOLDERS: Final[Mapping[str, Callable[[Event], Changes]]] = MappingProxyType(
    {
        Kind.RECEIVER_HELD.value: _held,
        Kind.RECEIVER_TAKEN_OVER.value: _held,
        Kind.RECEIVER_RELEASED.value: _released,
        Kind.TERMINAL_OPENED.value: _opened,
        Kind.TERMINAL_CLOSED.value: _closed,
        Kind.TERMINAL_LOST.value: _closed,
        Kind.AGENT_BUSY.value: _busy,
        Kind.AGENT_IDLE.value: _idle,
        Kind.INVOCATION_STARTED.value: _started,
        Kind.INVOCATION_FINISHED.value: _finished,
        Kind.INVOCATION_LOST.value: _lost,
        Kind.INVOCATION_NOTIFIED.value: _notified,
    }
)
