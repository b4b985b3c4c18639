"""Asking the person at the machine: open, list, answer, withdraw.

Knows no SQL and no transport; deadlines are upkeep's, secrets the vault's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from tfx.core import canonical_json
from tfx.errors import AccessDenied, NotFound, StateConflict
from tfx.hub.models import (
    ChannelPreference,
    CorrelationId,
    DefaultAction,
    HumanAction,
    HumanKind,
    HumanRequestId,
    HumanState,
    MessageId,
    StreamNo,
    TraceId,
    agent_id,
)
from tfx.hub.services import answers
from tfx.hub.services.shapes import json_object, shown
from tfx.hub.store import humans
from tfx.hub.store.events import HumanClosed, HumanOpened
from tfx.hub.store.ids import new_id
from tfx.hub.store.kinds import Kind
from tfx.hub.store.ops import op_of
from tfx.hub.wire.fields import empty_object
from tfx.hub.wire.humans import (
    HumanAnswerRequest,
    HumanAnswerResult,
    HumanInputRequest,
    HumanInputResult,
    HumanListRequest,
    HumanListResult,
    HumanView,
    HumanWithdrawRequest,
)

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, Caller
    from tfx.hub.services.vault import Vault
    from tfx.hub.store.events import Event
    from tfx.hub.store.humans import HumanRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Op, Tx

Announce: TypeAlias = Callable[[HumanView], None]

SCHEMA_BYTES: Final = 65_536
CONTENT_BYTES: Final = 65_536
_SECRET_KINDS: Final = frozenset({HumanKind.CAPTCHA.value, HumanKind.CREDENTIAL.value})
_STATE_OF: Final[Mapping[HumanAction, HumanState]] = {
    HumanAction.ACCEPT: HumanState.ACCEPTED,
    HumanAction.DECLINE: HumanState.DECLINED,
    HumanAction.CANCEL: HumanState.CANCELLED,
}


class Humans:
    """What people are asked."""

    def __init__(self, store: Store, vault: Vault, announce: Announce) -> None:
        self._store = store
        self._vault = vault
        self._announce = announce

    async def request_human_input(
        self, caller: Caller, request: HumanInputRequest
    ) -> HumanInputResult:
        """Open a request; the deadline is the hub's clock plus `deadline_ms` (H-64)."""
        del caller
        requester = agent_id(request.requester_agent, "requester_agent")
        schema = json_object(request.requested_schema, "requested_schema", SCHEMA_BYTES)
        answers.check_schema(schema)
        opened: list[HumanRow] = []
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
            opened.append(wanted)
            return _opened(humans.open_request(tx, wanted, op))

        self._store.beats.touch(requester, self._store.clock.now_ms())
        result = await self._store.write(command)
        for each in opened:
            self._announce(_view(each))
        return result

    async def submit_human_input(
        self, caller: Caller, request: HumanAnswerRequest
    ) -> HumanAnswerResult:
        """Close a request with a person's answer; the first one counts (H-66).

        Raises NotFound `unknown-request`; StateConflict `already-answered` with the state, also
        past the deadline, or `question-differs`; InvalidRequest `bad-content`.
        """
        found = await self._pending(request.request_id)
        if request.digest is not None and request.digest != found.digest.hex():
            raise StateConflict(
                "the question is not the one that was shown",
                code="question-differs",
                hint="tfx hub human list",
            )
        is_secret = found.kind in _SECRET_KINDS
        content = _content(request, found)
        # the digest of a key would be a digest of the secret
        keyed = msgspec.structs.replace(request, content=empty_object()) if is_secret else request
        op = op_of("submit_human_input", keyed)
        actor = caller.actor
        stored = None if is_secret else content
        closing = humans.Closing(
            kind=Kind.HUMAN_REQUEST_ANSWERED,
            state=_STATE_OF[request.action],
            actor=actor,
            action=request.action.value,
            answered_by=actor,
            content=None if stored is None else canonical_json.parse(stored),
            stored=stored,
            is_secret=is_secret and content is not None,
            op=op,
        )
        secret = content if is_secret else None
        return await self._close(found.id, actor, closing, op, secret)

    async def withdraw_human_input(
        self, caller: Caller, request: HumanWithdrawRequest
    ) -> HumanAnswerResult:
        """Take a request back; its requester gets the closing response as for any other end.

        Raises NotFound `unknown-request`, AccessDenied `actor-mismatch`, StateConflict
        `already-answered`.
        """
        del caller
        actor = agent_id(request.requester_agent, "requester_agent")
        found = await self._pending(request.request_id)
        if found.requester != actor:
            raise AccessDenied(
                f"only {found.requester} may withdraw this request", code="actor-mismatch"
            )
        op = op_of("withdraw_human_input", request)
        closing = humans.Closing(
            kind=Kind.HUMAN_REQUEST_WITHDRAWN,
            state=HumanState.WITHDRAWN,
            actor=actor,
            action="withdraw",
            op=op,
        )
        return await self._close(found.id, actor, closing, op, None)

    async def _pending(self, request_id: str) -> HumanRow:
        found = await self._store.read(lambda reader: humans.find(reader, request_id))
        if found is None:
            raise NotFound(f"no request has the id {request_id}", code="unknown-request")
        return found

    async def _close(
        self,
        request_id: str,
        actor: AgentId,
        closing: humans.Closing,
        op: Op | None,
        secret: bytes | None,
    ) -> HumanAnswerResult:
        """Close a request that is still pending; past its deadline its default action counts."""
        kept: list[MessageId] = []

        def command(tx: Tx) -> HumanAnswerResult | str:
            before = tx.done_before(actor, op)
            if before is not None:
                return _closed(HumanRequestId(request_id), before)
            found = humans.find(tx, request_id)
            if found is None:
                raise NotFound(f"no request has the id {request_id}", code="unknown-request")
            if found.state != HumanState.PENDING:
                return found.state
            if found.deadline_ms <= tx.now_ms:
                humans.expire(tx, found)
                return HumanState.TIMED_OUT.value
            response = humans.close(tx, found, closing)
            if secret is not None:
                self._vault.put(response, secret)
                kept.append(response)
            return HumanAnswerResult(
                request_id=found.id, new_state=closing.state, forwarded_message_id=response
            )

        try:
            result = await self._store.write(command)
        except BaseException:
            self._vault.drop(kept)
            raise
        if isinstance(result, str):
            raise StateConflict(
                f"the request is closed already: {result}",
                code="already-answered",
                details={"request_id": request_id, "state": result},
            )
        return result

    async def human_requests(self, caller: Caller, request: HumanListRequest) -> HumanListResult:
        """List pending requests, or with `include_closed` all that are kept, oldest first."""
        del caller

        def query(reader: Reader) -> HumanListResult:
            if request.request_id is not None:
                one = humans.find(reader, request.request_id)
                only = [] if one is None else [_view(one)]
                return HumanListResult(requests=tuple(only), next_after=None)
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


def _content(request: HumanAnswerRequest, found: HumanRow) -> bytes | None:
    """Return the checked content of an acceptance; the other actions carry none."""
    if request.action is not HumanAction.ACCEPT:
        return None
    content = json_object(request.content, "content", CONTENT_BYTES)
    answers.check_content(found.schema, content)
    return content


def _closed(request_id: HumanRequestId, event: Event) -> HumanAnswerResult:
    body = event.body
    if not isinstance(body, HumanClosed):
        raise StateConflict("the key was used for another operation", code="idempotency-conflict")
    return HumanAnswerResult(
        request_id=request_id,
        new_state=HumanState(body.state),
        forwarded_message_id=MessageId(body.response),
    )


def _opened(event: Event) -> HumanInputResult:
    body = event.body
    if not isinstance(body, HumanOpened):
        raise StateConflict("the key was used for another operation", code="idempotency-conflict")
    return HumanInputResult(
        request_id=HumanRequestId(body.id),
        trace_id=TraceId(body.trace_id),
        state=HumanState.PENDING,
        deadline_ms=body.deadline_ms,
    )


def _view(row: HumanRow) -> HumanView:
    return HumanView(
        request_id=row.id,
        requester_agent=row.requester,
        kind=HumanKind(row.kind),
        prompt=row.prompt,
        requested_schema=shown(row.schema),
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
