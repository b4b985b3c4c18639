"""Looking: status, one message, traces, the log from a cursor.

Knows no SQL and no transport; claims and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tfx.errors import InvalidRequest, NotFound
from tfx.hub.models import (
    AgentId,
    LeaseId,
    MessageId,
    MessageType,
    StatusScope,
    StreamNo,
    Topic,
    TraceId,
    agent_id,
)
from tfx.hub.services.life import no_agent
from tfx.hub.services.shapes import ENVELOPE_BYTES, OWED_SHOWN, fitting, owed_of
from tfx.hub.store import agents as agent_rows
from tfx.hub.store import views
from tfx.hub.wire.agents import AgentsRequest
from tfx.hub.wire.views import (
    DeliveryView,
    HubView,
    QueuesView,
    ReadMessageRequest,
    ReadMessageResult,
    SchemaView,
    StatusRequest,
    StatusResult,
    TraceItem,
    TraceRequest,
    TraceResult,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tfx.core.database import Row
    from tfx.hub.models import Caller, RunFacts
    from tfx.hub.services.metrics import Metrics
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.wire.agents import AgentsResult, AgentView
    from tfx.hub.wire.messages import Owed

WAL_WARNING_PAGES = 12_288
"""48 of the 64 MB that the WAL may have (EV-S7)."""
_CONTINUES = 0x80
"""The top bits of a byte inside a UTF-8 character."""


class Views:
    """What can be seen of the hub."""

    def __init__(
        self,
        store: Store,
        facts: RunFacts,
        metrics: Metrics,
        *,
        schema: SchemaView,
        view_agent: Callable[[Reader, AgentRow], AgentView],
        list_agents: Callable[[Caller, AgentsRequest], Awaitable[AgentsResult]],
    ) -> None:
        self._store = store
        self._facts = facts
        self._metrics = metrics
        self._schema = schema
        self._view_agent = view_agent
        self._list_agents = list_agents

    @property
    def state(self) -> str:
        """The hub's state in one word: ready, degraded or draining (H-23)."""
        if self._store.wakeups.draining:
            return "draining"
        return "degraded" if self.warnings() else "ready"

    def warnings(self) -> tuple[str, ...]:
        """Return what is wrong but not fatal."""
        counts = self._metrics.sweep_errors
        found = [
            f"the chore {name} fails ({counts[name]} times)"
            for name in sorted(self._metrics.failing)
        ]
        writer = self._store.writer
        if writer.last_error is not None:
            found.append(f"the last checkpoint failed: {writer.last_error.reason}")
        if writer.wal_pages > WAL_WARNING_PAGES:
            found.append("the WAL is large: a reader may pin it")
        return tuple(found)

    async def status(self, caller: Caller, request: StatusRequest) -> StatusResult:
        """Return one scope of the truth; the hub's own costs the same at any size (H-24)."""
        match request.scope:
            case StatusScope.HUB:
                hub, queues = self.hub(), self.queues() if request.include_metrics else None
                return self._status(hub=hub, queues=queues, sessions=len(self._store.tally.inboxes))
            case StatusScope.QUEUE:
                return self._status(queues=self.queues())
            case StatusScope.TRACE:
                if request.trace_id is None:
                    raise InvalidRequest(
                        "scope trace needs trace_id", details={"field": "trace_id"}
                    )
                wanted = TraceRequest(trace_id=request.trace_id, after=_seq(request.after))
                page = await self.trace(caller, wanted)
                items, whole = fitting(page.items, request.max_bytes - ENVELOPE_BYTES)
                if not whole:
                    page = msgspec.structs.replace(page, items=items, next_after=items[-1].seq)
                return self._status(trace=page)
            case StatusScope.AGENT:
                return await self._agent_status(caller, request)

    async def _agent_status(self, caller: Caller, request: StatusRequest) -> StatusResult:
        if request.agent_id is None:
            wanted = AgentsRequest(after=_name(request.after), limit=50)
            page = await self._list_agents(caller, wanted)
            agents, whole = fitting(page.agents, request.max_bytes - ENVELOPE_BYTES)
            following = page.next_after if whole else agents[-1].agent_id
            return self._status(agents=agents, next_after=following)
        name = agent_id(request.agent_id, "agent_id")

        def query(reader: Reader) -> StatusResult:
            row = agent_rows.find(reader, name)
            if row is None:
                raise no_agent(name)
            return self._status(
                agent=self._view_agent(reader, row),
                owes=owed_of(views.owed(reader, name, OWED_SHOWN * 4)),
                awaits=owed_of(views.awaited(reader, name, OWED_SHOWN * 4)),
            )

        return await self._store.read(query)

    def hub(self) -> HubView:
        """Return the hub itself."""
        facts = self._facts
        return HubView(
            state=self.state,
            uptime_ms=self._store.clock.now_ms() - facts.started_at_ms,
            instance=facts.instance,
            version=facts.version,
            pid=facts.pid,
            host=facts.host,
            port=facts.port,
            url=facts.url,
            durability=self._store.durability.value,
            database=facts.database,
            log=facts.log,
            schema=self._schema,
            warnings=self.warnings(),
        )

    def queues(self) -> QueuesView:
        """Return what stands where, from memory (H-24, H-75)."""
        tally, metrics = self._store.tally, self._metrics
        database, wal = self._store.file_sizes()
        return QueuesView(
            queued=tally.queued,
            claimed=tally.claimed,
            dead_letters=tally.dead,
            pending_human_requests=tally.pending_humans,
            owed_answers=tally.owed,
            open_waits=self._store.wakeups.open_waits,
            totals=self._store.counters.copy(),
            delivery=metrics.delivery.timing(),
            ask_wait=metrics.ask_wait.timing(),
            commit=metrics.commit.timing(),
            timeout_rate=metrics.timeout_rate,
            wal_bytes=wal,
            database_bytes=database,
        )

    async def read_message(self, caller: Caller, request: ReadMessageRequest) -> ReadMessageResult:
        """Return a piece of a payload as text and where its message stands (H-31)."""
        del caller

        def query(reader: Reader) -> ReadMessageResult:
            stored = views.message(reader, request.message_id)
            if stored is None:
                raise NotFound(
                    f"no message has the id {request.message_id}", code="unknown-message"
                )
            found = stored.message
            text, following = _piece(found.payload, request.offset, request.max_bytes - 1_024)
            return ReadMessageResult(
                message_id=found.id,
                type=MessageType(found.type),
                sender=AgentId(found.sender),
                to=found.recipient,
                topic=Topic(found.topic),
                trace_id=TraceId(found.trace_id or found.id),
                created_at_ms=found.posted_at_ms,
                expires_at_ms=found.expires_at_ms,
                text=text,
                offset=request.offset,
                next_offset=following,
                payload_bytes=len(found.payload),
                deliveries=_deliveries(reader, found.stream),
                answered_by=stored.answer,
            )

        return await self._store.read(query)

    async def trace(self, caller: Caller, request: TraceRequest) -> TraceResult:
        """Return everything of one trace in log order, with causes (H-60)."""
        del caller

        def query(reader: Reader) -> TraceResult:
            rows = reader.all(views.TRACE, (request.trace_id, request.after, request.limit + 1))
            items = tuple(_trace_item(row) for row in rows[: request.limit])
            more = len(rows) > request.limit
            return TraceResult(
                trace_id=TraceId(request.trace_id),
                items=items,
                next_after=items[-1].seq if more else None,
            )

        return await self._store.read(query)

    def _status(  # noqa: PLR0913  (one keyword for each part of the answer)
        self,
        *,
        hub: HubView | None = None,
        queues: QueuesView | None = None,
        sessions: int | None = None,
        agent: AgentView | None = None,
        agents: tuple[AgentView, ...] | None = None,
        owes: tuple[Owed, ...] | None = None,
        awaits: tuple[Owed, ...] | None = None,
        trace: TraceResult | None = None,
        next_after: str | None = None,
    ) -> StatusResult:
        return StatusResult(
            hub=hub,
            queues=queues,
            sessions=sessions,
            agent=agent,
            agents=agents,
            owes=owes,
            awaits=awaits,
            trace=trace,
            next_after=next_after,
            server_time_ms=self._store.clock.now_ms(),
        )


def _seq(text: str | None) -> int:
    """Return the `next_after` of a trace that comes back as text."""
    if text is None:
        return 0
    if text.isascii() and text.isdecimal() and (seq := int(text[:20])) < 2**63:
        return seq
    raise InvalidRequest("after is no next_after of a trace", details={"field": "after"})


def _name(text: str | None) -> AgentId | None:
    return None if text is None else AgentId(text)


def _deliveries(reader: Reader, stream: StreamNo) -> tuple[DeliveryView, ...]:
    return tuple(
        DeliveryView(
            receiver=str(receiver),
            state=str(state),
            attempts=int(attempts),  # type: ignore[arg-type]
            reason=None if reason is None else str(reason),
            closed_at_ms=None if closed is None else int(closed),
        )
        for receiver, state, attempts, reason, closed in views.deliveries(reader, stream)
    )


def _piece(payload: bytes, offset: int, room: int) -> tuple[str, int | None]:
    """Return the text from a byte offset that fits, never cutting a character in two."""
    end = min(len(payload), offset + max(room, 64) // 2)
    while end < len(payload) and payload[end] & 0xC0 == _CONTINUES:
        end -= 1
    text = payload[offset:end].decode("utf-8", "replace")
    return text, None if end >= len(payload) else end


def _trace_item(row: Row) -> TraceItem:
    seq, at_ms, kind, actor, body, *names = row
    message_id, message_type, topic, cause, human_id, number, run = names
    facts: dict[str, object] = msgspec.json.decode(str(body))

    def text(name: str) -> str | None:
        value = facts.get(name)
        return value if isinstance(value, str) else None

    attempt = facts.get("attempt")
    epoch = facts.get("epoch")
    ended = text("outcome") or text("evidence")
    return TraceItem(
        seq=int(seq),  # type: ignore[arg-type]
        at_ms=int(at_ms),  # type: ignore[arg-type]
        kind=str(kind),
        actor=AgentId(str(actor)),
        message_id=None if message_id is None else MessageId(str(message_id)),
        request_id=None if human_id is None else str(human_id),
        receiver=text("receiver") or text("recipient"),
        topic=None if topic is None else Topic(str(topic)),
        type=None if message_type is None else MessageType(str(message_type)),
        cause=None if cause is None else MessageId(str(cause)),
        reason=text("reason") or text("dead_reason") or (ended if run is not None else None),
        attempt=attempt if isinstance(attempt, int) else None,
        task=None if number is None else int(number),
        status=text("status"),
        lease_id=text("lease"),
        epoch=epoch if isinstance(epoch, int) else None,
        agent=text("agent") or text("assignee"),
        code=text("code"),
        invocation_id=None if run is None else LeaseId(str(run)),
    )
