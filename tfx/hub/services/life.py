"""Who is alive, judged by the last call and the process, never by a claim (H-61).

Shared by the services about agents; knows no wire request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tfx.core.identity import Liveness, ProcessIdentity
from tfx.errors import InvalidRequest, UnknownAgent
from tfx.hub import ancestry
from tfx.hub.models import HUB, AgentId, AgentState, Topic, agent_id, is_reserved
from tfx.hub.services import endings
from tfx.hub.store import agents, messages, views
from tfx.hub.wire.agents import AgentView

if TYPE_CHECKING:
    from tfx.hub.models import LeaseId
    from tfx.hub.services.judge import Judge
    from tfx.hub.store.agents import AgentRow, Registration
    from tfx.hub.store.beats import Beat
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Op, Tx
    from tfx.hub.wire.agents import ProcessFacts

OFFLINE_AFTER_MS: Final = 300_000
"""A stale agent is offline this long after its lease ran out (H-61)."""
AT_ONCE: Final = 10_000
"""More waiting mail than an inbox may hold."""


class Life:
    """Liveness of agents."""

    def __init__(self, store: Store, judge: Judge) -> None:
        self._store = store
        self._judge = judge

    def liveness(self, process: ProcessIdentity) -> Liveness:
        """Say whether a process lives; dead only on proof."""
        return self._judge.examine(process).liveness

    def is_one_agent(self, one: ProcessIdentity, other: ProcessIdentity) -> bool:
        """Say whether two processes are one, or both live and are parts of one agent (K-27)."""
        if one == other:
            return True
        live = all(self.liveness(each) is Liveness.ALIVE for each in (one, other))
        return live and ancestry.is_one_agent(one, other)

    def state(self, row: AgentRow, now_ms: int) -> AgentState:
        """Return the liveness of an agent (H-61): retired, offline by proof, else by its lease."""
        if row.retired_at_ms is not None:
            return AgentState.RETIRED
        if row.session is None:
            return AgentState.OFFLINE
        if row.process is not None and self.liveness(row.process) is Liveness.DEAD:
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
        generation, seats = self._judge.seats(reader, row.id)
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
            last_seen_ms=self.seen(row),
            lease_expires_ms=0 if beat is None else beat.lease_expires_ms,
            unread=unread.total,
            urgent=unread.urgent,
            owes=len(views.owed(reader, row.id, 100)),
            awaits=len(views.awaited(reader, row.id, 100)),
            generation=generation,
            seats=seats,
        )

    def end_if_dead(self, tx: Tx, name: AgentId) -> int:
        """End the session of an agent whose process is proven dead; return how many leases went."""
        known = agents.find(tx, name)
        if known is None or known.session is None or known.process is None:
            return 0
        if self.liveness(known.process) is not Liveness.DEAD:
            return 0
        gone = endings.end_session(tx, known.session, HUB)
        agents.end_session(tx, known, "process died", None)
        return gone

    def seen(self, row: AgentRow) -> int:
        """Return when an agent was last heard."""
        beat = self._store.beats.get(row.id)
        return row.registered_at_ms if beat is None else beat.seen_at_ms

    def beat(self, name: AgentId, ttl_ms: int) -> Beat:
        """Record a call; the lease runs from now on."""
        return self._store.beats.take(name, self._store.clock.now_ms(), ttl_ms)


def own_name(text: str) -> AgentId:
    """Return a name that an agent may have; raises InvalidRequest `bad-id`."""
    name = agent_id(text, "agent_id")
    if is_reserved(name):
        raise InvalidRequest(
            f"the name {name} is reserved", code="bad-id", details={"field": "agent_id"}
        )
    return name


def open_session(tx: Tx, known: AgentRow | None, wanted: Registration, op: Op | None) -> LeaseId:
    """Register an agent and hand it what waited for its topics.

    A session that was open before has ended by that, and with it what it held (WK-L24).
    """
    if known is not None and known.session != wanted.session:
        endings.end_session(tx, known.session, known.id)
    agents.open_session(tx, known, wanted, op)
    for topic in wanted.topics:
        for waiting in messages.open_deliveries(tx, f"topic:{topic}", AT_ONCE):
            if waiting.expires_at_ms > tx.now_ms:
                messages.redirect(tx, waiting, wanted.id)
    return wanted.session


def identity_of(facts: ProcessFacts | None) -> ProcessIdentity | None:
    """Return the process that a request names."""
    if facts is None:
        return None
    return ProcessIdentity(
        facts.host, facts.boot_id, facts.pid, facts.start_token, facts.pid_namespace
    )


def no_agent(name: AgentId) -> UnknownAgent:
    """Return the error for a name that nobody has."""
    return UnknownAgent(f"no agent is called {name}", hint="tfx hub agents")
