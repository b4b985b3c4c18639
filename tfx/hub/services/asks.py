"""Asking and handing over: one request, one answer, a bounded wait.

Knows no SQL and no transport; what it decides it does in one transaction of the store.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from tfx.core import canonical_json
from tfx.errors import AgentUnavailable, InvalidRequest, StateConflict
from tfx.hub.models import (
    MAX_WAIT_MS,
    AgentId,
    AskState,
    CorrelationId,
    HandoffState,
    MessageId,
    MessageType,
    StreamNo,
    TraceId,
    agent_id,
    topic_name,
)
from tfx.hub.services import posting
from tfx.hub.services.shapes import ENVELOPE_BYTES, cut, json_object, members, message_of
from tfx.hub.store import messages, views
from tfx.hub.store.events import Posted
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.store.wakeups import Settled
from tfx.hub.wire.messages import AskRequest, AskResult, HandoffRequest, HandoffResult

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.models import Caller, Limits
    from tfx.hub.services.metrics import Metrics
    from tfx.hub.store.candidate import Candidate
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Op, Tx


class Asks:
    """Requests that have one answer."""

    def __init__(self, store: Store, limits: Limits, metrics: Metrics) -> None:
        self._store = store
        self._limits = limits
        self._metrics = metrics

    async def ask(self, caller: Caller, request: AskRequest) -> AskResult:
        """Ask an agent; wait up to `await_response_ms` for its answer (H-58).

        At the time-out or when the hub drains the result is a ticket. An answer that is returned
        to an ask with an `op_id` is acked with it: the same ask returns it again.
        """
        del caller
        sender = agent_id(request.sender, "from")
        payload = members(json_object(request.payload, "payload", self._limits.payload_bytes))
        payload["question"] = request.question
        payload["context_refs"] = list(request.context_refs)
        op = op_of("ask", request)
        event, is_new = await self._ask(MessageType.REQUEST, sender, request, payload, op)
        ticket = _ticket(event)
        if request.await_response_ms == 0 and op is None:
            return ticket
        self._refuse_too_many_waits()
        began = monotonic()
        result = await self._await_answer(
            ticket,
            StreamNo(event.stream),
            min(request.await_response_ms, MAX_WAIT_MS),
            may_be_settled=not is_new or request.correlation_id is not None,
        )
        self._metrics.asked(
            (monotonic() - began) * 1000,
            answered=result.response is not None,
            waited=request.await_response_ms > 0,
        )
        if result.response is None:
            return result
        if op is not None:
            self._ack_answer(sender, result.response.message_id)
        room = request.max_bytes - ENVELOPE_BYTES
        if len(msgspec.json.encode(result.response)) > room:
            return msgspec.structs.replace(result, response=cut(result.response, room))
        return result

    async def handoff(self, caller: Caller, request: HandoffRequest) -> HandoffResult:
        """Hand a task to an agent; its reply accepts, or declines with `"accepted": false`."""
        del caller
        sender = agent_id(request.sender, "from")
        payload: dict[str, JsonValue] = {
            "task": request.task,
            "acceptance_criteria": list(request.acceptance_criteria),
            "context_refs": list(request.context_refs),
        }
        op = op_of("handoff", request)
        event, is_new = await self._ask(MessageType.HANDOFF, sender, request, payload, op)
        ticket = _ticket(event)
        state = HandoffState.QUEUED
        if not is_new:
            state = await self._store.read(
                lambda reader: _handoff_state(reader, ticket.request_message_id)
            )
        return HandoffResult(
            handoff_message_id=ticket.request_message_id,
            correlation_id=ticket.correlation_id,
            trace_id=ticket.trace_id,
            state=state,
            assigned_to=AgentId(request.to),
        )

    async def _ask(
        self,
        kind: MessageType,
        sender: AgentId,
        request: AskRequest | HandoffRequest,
        payload: dict[str, JsonValue],
        op: Op | None,
    ) -> tuple[Event, bool]:
        """Return the request's event, and whether it is new: a retry with its key is not."""
        recipient = agent_id(request.to, "to")
        topic = topic_name(request.topic, "topic")
        if recipient == sender:
            raise InvalidRequest("an agent cannot ask itself", code="self-ask")
        posting.refuse_when_full(self._store.tally, self._limits, sender, recipient)
        data = canonical_json.dump(payload)

        def command(tx: Tx) -> tuple[Event, bool]:
            before = tx.done_before(sender, op)
            if before is not None:
                return before, False
            chosen = request.correlation_id
            if chosen is not None and messages.find_request(tx, chosen) is not None:
                raise StateConflict(
                    f"the correlation id {chosen!r} names another request",
                    code="correlation-in-use",
                )
            draft = messages.Draft(
                id=MessageId(new_id(tx.now_ms)),
                type=kind,
                sender=sender,
                recipient=recipient,
                topic=topic,
                priority=request.priority,
                ttl_ms=request.ttl_ms,
                payload=data,
                correlation_id=chosen,
                trace_id=request.trace_id,
            )
            return posting.post(tx, draft, op, deferred=request.deferred), True

        self._store.beats.touch(sender, self._store.clock.now_ms())
        return await self._store.write(command)

    async def _await_answer(
        self, ticket: AskResult, stream: StreamNo, wait_ms: int, *, may_be_settled: bool
    ) -> AskResult:
        """Wait from memory; the log is read for what did not come with the wake-up.

        `may_be_settled` is False for a request that nobody can have answered yet: its id was made
        by the commit whose end we are just told of.
        """
        until = monotonic() + wait_ms / 1000
        with self._store.wakeups.listen(Settled(stream), counted=wait_ms > 0) as waiter:
            woken = may_be_settled or await waiter.wait(wait_ms / 1000)
            while True:
                news = waiter.news
                if isinstance(news, Settled) and news.answer is not None:
                    return _answered(ticket, news.answer)
                result = await self._store.read(lambda reader: _answer(reader, ticket))
                if not woken or result.state in {AskState.ANSWERED, AskState.DEAD}:
                    return result
                woken = await waiter.wait(until - monotonic())

    def _ack_answer(self, sender: AgentId, message_id: MessageId) -> None:
        """Queue the ack of an answer that is being returned: it precedes every later poll.

        If it fails the answer comes again by poll, which at least once allows.
        """

        def command(tx: Tx) -> None:
            found = messages.find_for_ack(tx, sender, message_id)
            if found is not None and found.state in {"queued", "claimed"}:
                messages.ack(tx, found, sender, message_id)

        self._store.queue(command)

    def _refuse_too_many_waits(self) -> None:
        if self._store.wakeups.open_waits >= self._limits.open_waits:
            raise AgentUnavailable(
                f"{self._limits.open_waits} calls wait already", code="too-many-waits"
            )


def _ticket(event: Event) -> AskResult:
    body = event.body
    if not isinstance(body, Posted):
        raise StateConflict("the key was used for another operation", code="idempotency-conflict")
    return AskResult(
        request_message_id=MessageId(body.id),
        correlation_id=CorrelationId(body.correlation_id or body.id),
        trace_id=TraceId(body.trace_id or body.id),
        state=AskState.QUEUED,
    )


def _answer(reader: Reader, ticket: AskResult) -> AskResult:
    stored = views.message(reader, ticket.request_message_id)
    if stored is None:
        return _with_state(ticket, AskState.DEAD)
    if stored.answer is not None:
        answer = views.message(reader, stored.answer)
        if answer is not None:
            return _answered(ticket, answer.message)
        return _with_state(ticket, AskState.ANSWERED)
    if stored.settled == "dead":
        return _with_state(ticket, AskState.DEAD)
    states = {str(row[1]) for row in views.deliveries(reader, stored.message.stream)}
    taken = states & {"claimed", "acked"}
    return _with_state(ticket, AskState.DELIVERED if taken else AskState.QUEUED)


def _answered(ticket: AskResult, answer: Candidate) -> AskResult:
    return AskResult(
        request_message_id=ticket.request_message_id,
        correlation_id=ticket.correlation_id,
        trace_id=ticket.trace_id,
        state=AskState.ANSWERED,
        response=message_of(answer, 1),
    )


def _with_state(ticket: AskResult, state: AskState) -> AskResult:
    return AskResult(
        request_message_id=ticket.request_message_id,
        correlation_id=ticket.correlation_id,
        trace_id=ticket.trace_id,
        state=state,
    )


def _handoff_state(reader: Reader, message_id: MessageId) -> HandoffState:
    stored = views.message(reader, message_id)
    if stored is None:
        return HandoffState.DEAD
    if stored.settled in {"accepted", "declined", "dead"}:
        return HandoffState(stored.settled)
    states = {str(row[1]) for row in views.deliveries(reader, stored.message.stream)}
    return HandoffState.DELIVERED if states & {"claimed", "acked"} else HandoffState.QUEUED
