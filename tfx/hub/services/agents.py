"""Agents: register, attach, heartbeat, deregister, list, retire, prune.

Knows no SQL and no transport. Liveness is the last call and the process, never a claim (H-61).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.core.process import Liveness, ProcessIdentity
from tfx.errors import InvalidRequest, NotFound, StateConflict
from tfx.hub.models import (
    OPERATOR,
    AgentId,
    AgentState,
    DeadReason,
    LeaseId,
    Topic,
    agent_id,
    is_reserved,
    topic_name,
)
from tfx.hub.services.shapes import json_object
from tfx.hub.store import agents, messages, views
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.wire.agents import (
    AgentsRequest,
    AgentsResult,
    AgentView,
    AttachRequest,
    AttachResult,
    DeregisterRequest,
    DeregisterResult,
    HeartbeatRequest,
    HeartbeatResult,
    PruneAgentsRequest,
    PruneAgentsResult,
    RegisterRequest,
    RegisterResult,
    RetireRequest,
    RetireResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.hub.models import Caller
    from tfx.hub.store.agents import AgentRow, Registration
    from tfx.hub.store.beats import Beat
    from tfx.hub.store.store import Reader, Store
    from tfx.hub.store.tx import Op, Tx
    from tfx.hub.wire.agents import ProcessFacts

OFFLINE_AFTER_MS: Final = 300_000
"""A stale agent is offline this long after its lease ran out (H-61)."""
BURY_AT_ONCE: Final = 10_000
_SLUG_LENGTH: Final = 40
_METADATA_BYTES: Final = 65_536


class Agents:
    """Who is there."""

    def __init__(self, store: Store, liveness: Callable[[ProcessIdentity], Liveness]) -> None:
        self._store = store
        self._liveness = liveness

    async def register(self, caller: Caller, request: RegisterRequest) -> RegisterResult:
        """Announce an agent; a known one keeps its inbox and takes the new topics (H-61).

        What waits for one of its topics, or for its name, is claimable at once.
        """
        del caller
        name = _own_name(request.agent_id)
        topics = [topic_name(each, "topics") for each in request.topics]
        metadata = json_object(request.metadata, "metadata", _METADATA_BYTES)
        op = op_of("register", request)

        def command(tx: Tx) -> LeaseId:
            before = tx.done_before(name, op)
            known = agents.find(tx, name)
            if before is not None and known is not None and known.session is not None:
                return known.session
            wanted = agents.Registration(
                id=name,
                client=request.cli,
                workspace=request.workspace,
                capabilities=request.capabilities,
                topics=topics,
                metadata=metadata,
                session=LeaseId(new_id(tx.now_ms)),
                ttl_ms=request.heartbeat_ttl_ms,
                process=_identity(request.process),
                pid=request.pid,
            )
            return _open(tx, known, wanted, op)

        lease = await self._store.write(command)
        beat = self._beat(name, request.heartbeat_ttl_ms)
        return RegisterResult(
            agent_id=name,
            lease_id=lease,
            lease_expires_ms=beat.lease_expires_ms,
            server_time_ms=beat.seen_at_ms,
        )

    async def attach(self, caller: Caller, request: AttachRequest) -> AttachResult:
        """Return the identity of an agent process, or open one (K-27).

        Names of two workspaces never collide: a workspace whose plain name is taken gets a
        digest of its path into the name (H-29).
        """
        del caller
        process = _identity(request.process)
        if process is None:
            raise InvalidRequest("process is needed", details={"field": "process"})
        own = None if request.agent_id is None else _own_name(request.agent_id)
        topics = [topic_name(each, "topics") for each in request.topics]

        def command(tx: Tx) -> tuple[AgentId, LeaseId, int, bool] | None:
            known = agents.find_by_process(tx, process)
            if known is not None and known.session is not None and own in {None, known.id}:
                return known.id, known.session, known.ttl_ms, False
            if request.find_only:
                return None
            name = own or self._free_name(tx, request, process)
            wanted = agents.Registration(
                id=name,
                client=request.cli,
                workspace=request.workspace,
                capabilities=request.capabilities,
                topics=topics,
                metadata=b"{}",
                session=LeaseId(new_id(tx.now_ms)),
                ttl_ms=request.heartbeat_ttl_ms,
                process=process,
                pid=process.pid,
            )
            lease = _open(tx, agents.find(tx, name), wanted, None)
            return name, lease, wanted.ttl_ms, True

        found = await self._store.write(command)
        now = self._store.clock.now_ms()
        if found is None:
            return AttachResult(
                agent_id=None,
                lease_id=None,
                lease_expires_ms=None,
                created=False,
                server_time_ms=now,
            )
        name, lease, ttl_ms, created = found
        beat = self._beat(name, ttl_ms)
        return AttachResult(
            agent_id=name,
            lease_id=lease,
            lease_expires_ms=beat.lease_expires_ms,
            created=created,
            server_time_ms=beat.seen_at_ms,
        )

    async def heartbeat(self, caller: Caller, request: HeartbeatRequest) -> HeartbeatResult:
        """Extend a lease; an older lease gets StateConflict `lease-lost`, an ended one `ended`."""
        del caller
        name = _own_name(request.agent_id)
        known = await self._store.read(lambda reader: agents.find(reader, name))
        session = _live_session(known, name, request.lease_id)
        ttl_ms = request.heartbeat_ttl_ms or (known.ttl_ms if known is not None else 0)
        beat = self._beat(name, ttl_ms)
        return HeartbeatResult(
            agent_id=name,
            lease_id=session,
            lease_expires_ms=beat.lease_expires_ms,
            server_time_ms=beat.seen_at_ms,
        )

    async def deregister(self, caller: Caller, request: DeregisterRequest) -> DeregisterResult:
        """End a session; inbox and topics stay. Ending it twice is no error (EV-B8)."""
        del caller
        name = _own_name(request.agent_id)
        op = op_of("deregister", request)

        def command(tx: Tx) -> bool:
            if tx.done_before(name, op) is not None:
                return True
            known = agents.find(tx, name)
            if known is None:
                raise _no_agent(name)
            if known.session is None or request.lease_id not in {None, known.session}:
                return False
            agents.end_session(tx, known, "deregistered", op)
            return True

        ended = await self._store.write(command)
        if ended:
            self._store.beats.end(name, self._store.clock.now_ms())
        return DeregisterResult(agent_id=name, ended=ended)

    async def agents(self, caller: Caller, request: AgentsRequest) -> AgentsResult:
        """List agents by name."""
        del caller
        after = request.after or ""

        def query(reader: Reader) -> AgentsResult:
            rows = agents.page(reader, after, request.limit + 1)
            shown = [
                self.view(reader, row)
                for row in rows[: request.limit]
                if request.include_retired or row.retired_at_ms is None
            ]
            more = len(rows) > request.limit
            return AgentsResult(
                agents=tuple(shown), next_after=rows[request.limit - 1].id if more else None
            )

        return await self._store.read(query)

    async def agents_retire(self, caller: Caller, request: RetireRequest) -> RetireResult:
        """Retire an agent: what waits for it becomes dead letters `recipient-retired`."""
        name = _own_name(request.agent_id)
        op = op_of("agents_retire", request)

        def command(tx: Tx) -> RetireResult:
            known = agents.find(tx, name)
            if known is None:
                raise _no_agent(name)
            if known.retired_at_ms is not None:
                return RetireResult(agent_id=name, retired=False, dead_lettered=0)
            return RetireResult(
                agent_id=name,
                retired=True,
                dead_lettered=_retire(tx, known, caller.actor, "retired", op),
            )

        return await self._store.write(command)

    async def agents_prune(self, caller: Caller, request: PruneAgentsRequest) -> PruneAgentsResult:
        """Retire every agent that is offline and was not seen for `unseen_ms`."""

        def command(tx: Tx) -> PruneAgentsResult:
            gone = [
                row
                for row in agents.page(tx, "", 100_000)
                if row.retired_at_ms is None
                and self.state(row, tx.now_ms) is AgentState.OFFLINE
                and tx.now_ms - self._seen(row) >= request.unseen_ms
            ]
            dead = 0
            if not request.dry_run:
                for row in gone:
                    dead += _retire(tx, row, caller.actor, "pruned", None)
            return PruneAgentsResult(
                agents=tuple(row.id for row in gone), dead_lettered=dead, dry_run=request.dry_run
            )

        return await self._store.write(command)

    def state(self, row: AgentRow, now_ms: int) -> AgentState:
        """Return the liveness of an agent (H-61): retired, offline by proof, else by its lease."""
        if row.retired_at_ms is not None:
            return AgentState.RETIRED
        if row.session is None:
            return AgentState.OFFLINE
        if row.process is not None and self._liveness(row.process) is Liveness.DEAD:
            return AgentState.OFFLINE
        beat = self._store.beats.get(row.id)
        expires = row.registered_at_ms + row.ttl_ms if beat is None else beat.lease_expires_ms
        if now_ms < expires:
            return AgentState.ONLINE
        return AgentState.STALE if now_ms < expires + OFFLINE_AFTER_MS else AgentState.OFFLINE

    def view(self, reader: Reader, row: AgentRow) -> AgentView:
        """Return an agent as others may see it."""
        beat = self._store.beats.get(row.id)
        unread = self._store.tally.unread(row.id)
        return AgentView(
            agent_id=row.id,
            cli=row.client,
            state=self.state(row, reader.now_ms),
            capabilities=tuple(row.capabilities),
            topics=tuple(Topic(each) for each in agents.topics_of(reader, row.id)),
            workspace=row.workspace,
            pid=row.pid,
            metadata=msgspec.Raw(row.metadata),
            registered_at_ms=row.registered_at_ms,
            last_seen_ms=self._seen(row),
            lease_expires_ms=0 if beat is None else beat.lease_expires_ms,
            unread=unread.total,
            urgent=unread.urgent,
            owes=len(views.owed(reader, row.id, 100)),
            awaits=len(views.awaited(reader, row.id, 100)),
        )

    def _seen(self, row: AgentRow) -> int:
        beat = self._store.beats.get(row.id)
        return row.registered_at_ms if beat is None else beat.seen_at_ms

    def _beat(self, name: AgentId, ttl_ms: int) -> Beat:
        return self._store.beats.take(name, self._store.clock.now_ms(), ttl_ms)

    def _free_name(self, tx: Tx, request: AttachRequest, process: ProcessIdentity) -> AgentId:
        client = _slug(request.cli, 16)
        plain = f"{client}.{_slug(PurePosixPath(request.workspace).name, _SLUG_LENGTH)}"
        marked = f"{plain}-{hashlib.sha256(request.workspace.encode()).hexdigest()[:6]}"
        for base in (plain, marked):
            for number in range(1, 1_000):
                name = AgentId(base if number == 1 else f"{base}.{number}")
                known = agents.find(tx, name)
                if known is None or self._is_free(known, request.workspace, process, tx.now_ms):
                    return name
                if known.workspace != request.workspace:
                    break
        raise StateConflict(f"no free name is left for {plain}", code="names-exhausted")

    def _is_free(
        self, known: AgentRow, workspace: str, process: ProcessIdentity, now_ms: int
    ) -> bool:
        if known.workspace != workspace:
            return False
        if known.session is None or known.process == process:
            return True
        if known.process is not None:
            return self._liveness(known.process) is Liveness.DEAD
        return self.state(known, now_ms) is not AgentState.ONLINE


def _own_name(text: str) -> AgentId:
    name = agent_id(text, "agent_id")
    if is_reserved(name):
        raise InvalidRequest(
            f"the name {name} is reserved", code="bad-id", details={"field": "agent_id"}
        )
    return name


def _open(tx: Tx, known: AgentRow | None, wanted: Registration, op: Op | None) -> LeaseId:
    agents.open_session(tx, known, wanted, op)
    for topic in wanted.topics:
        for waiting in messages.open_deliveries(tx, f"topic:{topic}", BURY_AT_ONCE):
            if waiting.expires_at_ms > tx.now_ms:
                messages.redirect(tx, waiting, wanted.id)
    return wanted.session


def _retire(tx: Tx, known: AgentRow, actor: AgentId, why: str, op: Op | None) -> int:
    agents.retire(tx, known, actor, why, op)
    waiting = messages.open_deliveries(tx, known.id, BURY_AT_ONCE)
    for each in waiting:
        messages.bury(tx, each, DeadReason.RECIPIENT_RETIRED, None, actor)
    return len(waiting)


def _identity(facts: ProcessFacts | None) -> ProcessIdentity | None:
    if facts is None:
        return None
    return ProcessIdentity(
        facts.host, facts.boot_id, facts.pid, facts.start_token, facts.pid_namespace
    )


def _live_session(known: AgentRow | None, name: AgentId, lease_id: str | None) -> LeaseId:
    if known is None or name == OPERATOR:
        raise _no_agent(name)
    if known.session is None:
        raise StateConflict(f"the session of {name} has ended", code="ended", hint="register again")
    if lease_id not in {None, known.session}:
        raise StateConflict(f"the lease of {name} is held by another session", code="lease-lost")
    return known.session


def _no_agent(name: AgentId) -> NotFound:
    return NotFound(f"no agent is called {name}", code="unknown-agent", hint="tfx hub agents")


def _slug(text: str, longest: int) -> str:
    words = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", text)).strip("-._")
    return words[:longest].strip("-._") or "root"
