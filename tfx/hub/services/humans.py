"""Asking the person at the machine: open and list.

Knows no SQL and no transport. Answering, withdrawing and secrets come with the second half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tfx.errors import NotFound, StateConflict
from tfx.hub.models import (
    ChannelPreference,
    CorrelationId,
    DefaultAction,
    HumanKind,
    HumanRequestId,
    HumanState,
    StreamNo,
    TraceId,
    agent_id,
)
from tfx.hub.services.shapes import json_object
from tfx.hub.store import humans
from tfx.hub.store.events import HumanOpened
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.wire.humans import (
    HumanInputRequest,
    HumanInputResult,
    HumanListRequest,
    HumanListResult,
    HumanView,
)

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.store.events import Event
    from tfx.hub.store.humans import HumanRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

SCHEMA_BYTES: Final = 65_536


class Humans:
    """What people are asked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def request_human_input(
        self, caller: Caller, request: HumanInputRequest
    ) -> HumanInputResult:
        """Open a request; the deadline is the hub's clock plus `deadline_ms` (H-64)."""
        del caller
        requester = agent_id(request.requester_agent, "requester_agent")
        schema = json_object(request.requested_schema, "requested_schema", SCHEMA_BYTES)
        op = op_of("request_human_input", request)

        def command(tx: Tx) -> HumanInputResult:
            before = tx.done_before(requester, op)
            if before is not None:
                return _opened(before)
            identity = HumanRequestId(new_id(tx.now_ms))
            wanted = humans.HumanRow(
                stream=StreamNo(0),
                id=identity,
                requester=requester,
                kind=request.kind.value,
                state=HumanState.PENDING.value,
                default_action=request.default_action.value,
                channel=request.channel_preference.value,
                digest=humans.digest_of(request.kind.value, request.prompt, schema),
                correlation_id=request.correlation_id or identity,
                trace_id=request.trace_id or identity,
                opened_at_ms=tx.now_ms,
                deadline_ms=tx.now_ms + request.deadline_ms,
                closed_at_ms=None,
                answered_by=None,
                prompt=request.prompt,
                schema=schema,
            )
            return _opened(humans.open_request(tx, wanted, op))

        self._store.beats.touch(requester, self._store.clock.now_ms())
        return await self._store.write(command)

    async def human_requests(self, caller: Caller, request: HumanListRequest) -> HumanListResult:
        """List pending requests, or with `include_closed` all that are kept, oldest first."""
        del caller

        def query(reader: Reader) -> HumanListResult:
            after = 0
            if request.after is not None:
                known = humans.find(reader, request.after)
                if known is None:
                    raise NotFound(f"no request has the id {request.after}", code="unknown-request")
                after = known.stream
            rows = humans.page(reader, after, request.limit + 1, closed=request.include_closed)
            wanted = request.requester_agent
            shown = tuple(
                _view(row) for row in rows[: request.limit] if wanted in {None, row.requester}
            )
            more = len(rows) > request.limit
            return HumanListResult(
                requests=shown, next_after=rows[request.limit - 1].id if more else None
            )

        return await self._store.read(query)


def _opened(event: Event) -> HumanInputResult:
    body = event.body
    if not isinstance(body, HumanOpened):
        raise StateConflict("the key was used for another operation", code="idempotency-conflict")
    return HumanInputResult(
        request_id=HumanRequestId(body.id), state=HumanState.PENDING, deadline_ms=body.deadline_ms
    )


def _view(row: HumanRow) -> HumanView:
    return HumanView(
        request_id=row.id,
        requester_agent=row.requester,
        kind=HumanKind(row.kind),
        prompt=row.prompt,
        requested_schema=msgspec.Raw(row.schema),
        state=HumanState(row.state),
        opened_at_ms=row.opened_at_ms,
        deadline_ms=row.deadline_ms,
        default_action=DefaultAction(row.default_action),
        channel_preference=ChannelPreference(row.channel),
        digest=row.digest.hex(),
        correlation_id=CorrelationId(row.correlation_id),
        trace_id=TraceId(row.trace_id),
        closed_at_ms=row.closed_at_ms,
        answered_by=row.answered_by,
    )
