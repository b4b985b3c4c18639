"""Agents: register, heartbeat, deregister, list.

Knows no SQL and no transport.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfx.core.identity import Liveness
from tfx.errors import StateConflict
from tfx.hub import ancestry
from tfx.hub.models import OPERATOR, AgentId, LeaseId, topic_name
from tfx.hub.services import endings
from tfx.hub.services.life import identity_of, no_agent, open_session, own_name
from tfx.hub.services.shapes import json_object
from tfx.hub.store import agents
from tfx.hub.store.events import RequestNoted, Session
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.wire.agents import (
    AgentsRequest,
    AgentsResult,
    DeregisterRequest,
    DeregisterResult,
    HeartbeatRequest,
    HeartbeatResult,
    RegisterRequest,
    RegisterResult,
)

if TYPE_CHECKING:
    from tfx.core.identity import ProcessIdentity
    from tfx.hub.models import Caller
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

_METADATA_BYTES: Final = 65_536


class Agents:
    """Who is there."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store = store
        self._life = life

    async def register(self, caller: Caller, request: RegisterRequest) -> RegisterResult:
        """Announce an agent; a known one keeps its inbox and takes the new topics (H-61).

        What waits for one of its topics, or for its name, is claimable at once. Whoever shows that
        it lives in the open session goes on in it, with what it holds (WK-L24). Another process
        ends that session by registering, but never while the first one is proven to live: then it
        is refused, StateConflict `name-taken` (H-61, K-27). A person may, with the operator
        credential.
        """
        name = own_name(request.agent_id)
        topics = [topic_name(each, "topics") for each in request.topics]
        metadata = json_object(request.metadata, "metadata", _METADATA_BYTES)
        op = op_of("register", request)

        def command(tx: Tx) -> tuple[LeaseId, int | None]:
            """Return the lease, and when it ended if it is another's or nobody's any more."""
            before = tx.done_before(name, op)
            known = agents.find(tx, name)
            if before is not None and isinstance(before.body, Session):
                lease = LeaseId(before.body.session)
                if known is not None and known.session == lease:
                    return lease, None
                return lease, agents.end_of(tx, before.stream, before.seq, lease)
            wanted = agents.Registration(
                id=name,
                client=request.cli,
                workspace=request.workspace,
                capabilities=request.capabilities,
                topics=topics,
                metadata=metadata,
                session=LeaseId(new_id(tx.now_ms)),
                ttl_ms=request.heartbeat_ttl_ms,
                process=identity_of(request.process),
                pid=request.pid,
            )
            if known is not None and known.session is not None:
                wanted = self._after(tx, wanted, known, known.session, caller)
            return open_session(tx, known, wanted, op), None

        lease, ended_at_ms = await self._store.write(command)
        if ended_at_ms is not None:  # a late retry: that it has ended, and no beat for a successor
            return RegisterResult(
                agent_id=name,
                lease_id=lease,
                lease_expires_ms=ended_at_ms,
                server_time_ms=self._store.clock.now_ms(),
            )
        beat = self._life.beat(name, request.heartbeat_ttl_ms)
        return RegisterResult(
            agent_id=name,
            lease_id=lease,
            lease_expires_ms=beat.lease_expires_ms,
            server_time_ms=beat.seen_at_ms,
        )

    def _after(
        self,
        tx: Tx,
        wanted: agents.Registration,
        known: AgentRow,
        session: LeaseId,
        caller: Caller,
    ) -> agents.Registration:
        """Return the registration by a name with an open session: that goes on, or it ends.

        Raises StateConflict `name-taken`.
        """
        holder, process = known.process, wanted.process
        if process is None and caller.session is not None:  # a bridge speaks for its client
            process = agents.process_of_session(tx, caller.session)
        if caller.session == session:
            return _continued(wanted, known, session)
        if holder is not None and process is not None and self._life.is_one_agent(holder, process):
            if ancestry.is_above(holder, process):  # the session is the agent's, not its tool's
                wanted = replace(wanted, process=None, pid=None)
            return _continued(wanted, known, session)
        lives = holder is not None and self._life.liveness(holder) is Liveness.ALIVE
        if holder is not None and lives and not caller.operator:
            raise _taken(known.id, holder)
        return wanted

    async def heartbeat(self, caller: Caller, request: HeartbeatRequest) -> HeartbeatResult:
        """Extend a lease; an older lease gets StateConflict `lease-lost`, an ended one `ended`."""
        del caller
        name = own_name(request.agent_id)
        known = await self._store.read(lambda reader: agents.find(reader, name))
        session = _live_session(known, name, request.lease_id)
        ttl_ms = request.heartbeat_ttl_ms or (known.ttl_ms if known is not None else 0)
        beat = self._life.beat(name, ttl_ms)
        return HeartbeatResult(
            agent_id=name,
            lease_id=session,
            lease_expires_ms=beat.lease_expires_ms,
            server_time_ms=beat.seen_at_ms,
        )

    async def deregister(self, caller: Caller, request: DeregisterRequest) -> DeregisterResult:
        """End a session; inbox and topics stay. Ending it twice is no error (EV-B8)."""
        del caller
        name = own_name(request.agent_id)
        op = op_of("deregister", request)

        def command(tx: Tx) -> tuple[bool, bool]:
            """Return what to answer, and whether this call ended it."""
            before = tx.done_before(name, op)
            if before is not None:
                return not isinstance(before.body, RequestNoted), False
            known = agents.find(tx, name)
            if known is None:
                raise no_agent(name)
            if known.session is None or request.lease_id not in {None, known.session}:
                tx.note(f"agent/{name}", known.stream, "deregister")
                return False, False
            endings.end_session(tx, known.session, name)
            agents.end_session(tx, known, "deregistered", op)
            return True, True

        ended, by_us = await self._store.write(command)
        if by_us:
            self._store.beats.end(name, self._store.clock.now_ms())
        return DeregisterResult(agent_id=name, ended=ended)

    async def agents(self, caller: Caller, request: AgentsRequest) -> AgentsResult:
        """List agents by name."""
        del caller
        after = request.after or ""

        def query(reader: Reader) -> AgentsResult:
            rows = agents.page(reader, after, request.limit + 1)
            shown = [
                self._life.view(reader, row)
                for row in rows[: request.limit]
                if request.include_retired or row.retired_at_ms is None
            ]
            more = len(rows) > request.limit
            return AgentsResult(
                agents=tuple(shown), next_after=rows[request.limit - 1].id if more else None
            )

        return await self._store.read(query)


def _taken(name: AgentId, holder: ProcessIdentity) -> StateConflict:
    return StateConflict(
        f"{name} is a process that lives: pid {holder.pid} on {holder.host}",
        code="name-taken",
        hint="give each a TFX_AGENT_ID of its own",
        details={"agent_id": name, "pid": holder.pid, "host": holder.host},
    )


def _continued(
    wanted: agents.Registration, known: AgentRow, session: LeaseId
) -> agents.Registration:
    """Return the registration of a session that registers again: by its process or its bridge.

    What it does not say again stays. A session is of one room (WK-A2): in another it is a new life.
    """
    if wanted.workspace not in {None, known.workspace}:
        return wanted
    return replace(
        wanted,
        session=session,
        workspace=known.workspace,
        process=wanted.process or known.process,
        pid=wanted.pid or known.pid,
    )


def _live_session(known: AgentRow | None, name: AgentId, lease_id: str | None) -> LeaseId:
    if known is None or name == OPERATOR:
        raise no_agent(name)
    if known.session is None:
        raise StateConflict(f"the session of {name} has ended", code="ended", hint="register again")
    if lease_id not in {None, known.session}:
        raise StateConflict(f"the lease of {name} is held by another session", code="lease-lost")
    return known.session
