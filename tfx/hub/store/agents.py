"""Agents and what they listen to: register, end, retire, find.

SQL and events only; who is alive is decided by the services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.core.identity import ProcessIdentity
from tfx.hub.models import AgentId, LeaseId, StreamNo
from tfx.hub.store.events import AgentRetired, Session, SessionEnded
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfx.core.database import Row
    from tfx.hub.store.events import Event
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Op, Tx

_COLUMNS: Final = (
    "stream, id, client, workspace, capabilities, metadata, session, ttl_ms, pid, start_token, "
    "boot_id, host, pid_namespace, registered_at_ms, ended_at_ms, retired_at_ms"
)
BY_ID: Final = f"SELECT {_COLUMNS} FROM agents WHERE id = ?"  # noqa: S608  (column names)
BY_PROCESS: Final = (
    f"SELECT {_COLUMNS} FROM agents WHERE boot_id = ? AND pid = ? AND start_token = ? "  # noqa: S608
    "AND start_token IS NOT NULL AND session IS NOT NULL"
)
PAGE: Final = f"SELECT {_COLUMNS} FROM agents WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
BY_SESSION: Final = "SELECT id FROM agents WHERE session = ?"
"""Not by an index: it is asked when a session is refused, or one agent registers another name."""
HAD_SESSION: Final = (
    "SELECT 1 FROM log WHERE stream = ? AND kind IN ('agent_registered', 'session_opened') "
    "AND json_extract(body, '$.session') = ? LIMIT 1"
)
END_OF: Final = (
    "SELECT at_ms FROM log WHERE stream = ?1 AND previous >= ?2 AND (kind = 'session_ended' "
    "OR kind = 'agent_retired' OR kind IN ('agent_registered', 'session_opened') "
    "AND json_extract(body, '$.session') <> ?3) ORDER BY previous LIMIT 1"
)
TOPICS_OF: Final = "SELECT topic FROM subscriptions WHERE agent = ? ORDER BY topic"


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as the projection has it; `session` is null when it ended."""

    stream: StreamNo
    id: AgentId
    client: str
    workspace: str | None
    capabilities: list[str]
    metadata: bytes
    session: LeaseId | None
    ttl_ms: int
    process: ProcessIdentity | None
    pid: int | None
    registered_at_ms: int
    ended_at_ms: int | None
    retired_at_ms: int | None

    def said(self, key: str) -> str | None:
        """Return the text that its metadata has under a key, None for anything else."""
        found = msgspec.json.decode(self.metadata, type=dict[str, object]).get(key)
        return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class Registration:
    """An agent as it announces itself."""

    id: AgentId
    client: str
    workspace: str | None
    capabilities: Sequence[str]
    topics: Sequence[str]
    metadata: bytes
    session: LeaseId
    ttl_ms: int
    process: ProcessIdentity | None
    pid: int | None


def find(source: Tx | Reader, agent: str) -> AgentRow | None:
    """Return an agent by name."""
    row = source.one(BY_ID, (agent,))
    return None if row is None else _agent(row)


def sessions_of(source: Tx | Reader, process: ProcessIdentity) -> list[AgentRow]:
    """Return the agents whose sessions a process holds, the newest first."""
    rows = source.all(BY_PROCESS, (process.boot_id, process.pid, process.start_token))
    return sorted(map(_agent, rows), key=lambda row: row.registered_at_ms, reverse=True)


def page(source: Tx | Reader, after: str, limit: int) -> list[AgentRow]:
    """Return agents in the order of their names."""
    return [_agent(row) for row in source.all(PAGE, (after, limit))]


def topics_of(source: Tx | Reader, agent: str) -> list[str]:
    """Return what an agent listens to."""
    return [str(row[0]) for row in source.all(TOPICS_OF, (agent,))]


def process_of_session(source: Tx | Reader, session: str) -> ProcessIdentity | None:
    """Return the process whose open session this is, if it was named."""
    name = owner_of(source, session)
    known = None if name is None else find(source, name)
    return None if known is None else known.process


def owner_of(source: Tx | Reader, session: str) -> AgentId | None:
    """Return the agent whose open session this is."""
    row = source.one(BY_SESSION, (session,))
    return None if row is None else AgentId(str(row[0]))


def had_session(source: Tx | Reader, known: AgentRow, session: str) -> bool:
    """Say whether a session was one of this agent, open or not."""
    return source.one(HAD_SESSION, (known.stream, session)) is not None


def end_of(tx: Tx, stream: int, seq: int, session: str) -> int:
    """Return when a session ended that an event had opened: by its end, or by the next one."""
    row = tx.one(END_OF, (stream, seq, session))
    return tx.now_ms if row is None else int(row[0] or 0)


def open_session(tx: Tx, known: AgentRow | None, wanted: Registration, op: Op | None) -> Event:
    """Register an agent, or a known one again: its topics are replaced, its inbox stays."""
    process = wanted.process
    body = Session(
        boot_id=None if process is None else process.boot_id,
        capabilities=list(wanted.capabilities),
        client=wanted.client,
        host=None if process is None else process.host,
        id=wanted.id,
        metadata=msgspec.Raw(wanted.metadata),
        pid=wanted.pid if process is None else process.pid,
        pid_namespace=None if process is None else process.pid_namespace,
        session=wanted.session,
        start_token=None if process is None else process.start_token,
        topics=sorted(set(wanted.topics)),
        ttl_ms=wanted.ttl_ms,
        workspace=wanted.workspace,
    )
    name = f"agent/{wanted.id}"
    if known is None:
        return tx.begin_stream(name, Kind.AGENT_REGISTERED, wanted.id, body, op=op)
    return tx.append(name, known.stream, Kind.SESSION_OPENED, wanted.id, body, op=op)


def end_session(tx: Tx, known: AgentRow, reason: str, op: Op | None) -> None:
    """End an agent's session."""
    tx.append(
        f"agent/{known.id}",
        known.stream,
        Kind.SESSION_ENDED,
        known.id,
        SessionEnded(reason=reason),
        op=op,
    )


def retire(tx: Tx, known: AgentRow, actor: AgentId, body: AgentRetired, op: Op | None) -> None:
    """Retire an agent."""
    tx.append(
        f"agent/{known.id}",
        known.stream,
        Kind.AGENT_RETIRED,
        actor,
        body,
        op=op,
    )


def _agent(row: Row) -> AgentRow:
    (
        stream,
        name,
        client,
        workspace,
        capabilities,
        metadata,
        session,
        ttl_ms,
        pid,
        start_token,
        boot_id,
        host,
        pid_namespace,
        registered,
        ended,
        retired,
    ) = row
    process = None
    if start_token is not None and boot_id is not None and pid is not None:
        process = ProcessIdentity(
            str(host), str(boot_id), int(pid), str(start_token), str(pid_namespace or "")
        )
    return AgentRow(
        StreamNo(int(stream)),  # type: ignore[arg-type]
        AgentId(str(name)),
        str(client),
        None if workspace is None else str(workspace),
        msgspec.json.decode(str(capabilities), type=list[str]),
        str(metadata).encode(),
        None if session is None else LeaseId(str(session)),
        int(ttl_ms),  # type: ignore[arg-type]
        process,
        None if pid is None else int(pid),
        int(registered),  # type: ignore[arg-type]
        None if ended is None else int(ended),
        None if retired is None else int(retired),
    )
