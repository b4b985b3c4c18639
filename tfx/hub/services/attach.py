"""Find or open the identity of an agent process (K-27, H-29).

Knows no SQL and no transport; a name is never taken from a live process, one that was asked for
neither: the next process gets it with a number (H-61).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from tfx.core.identity import Liveness, ProcessIdentity
from tfx.errors import InvalidRequest, StateConflict
from tfx.hub.models import AgentId, AgentState, LeaseId, topic_name
from tfx.hub.services.judge import GRACE_MS
from tfx.hub.services.life import identity_of, open_session, own_name
from tfx.hub.store import agents
from tfx.hub.store.ids import new_id
from tfx.hub.wire.agents import AttachRequest, AttachResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfx.hub.models import Caller
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

_SLUG_LENGTH: Final = 40
_NAME_LENGTH: Final = 64
_MOST: Final = 1_000


class Attach:
    """Names for processes."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store = store
        self._life = life

    async def attach(self, caller: Caller, request: AttachRequest) -> AttachResult:
        """Return the identity of an agent process, or open one (K-27).

        Names of two workspaces never collide: a workspace whose plain name is taken gets a
        digest of its path into the name (H-29).
        """
        del caller
        process = identity_of(request.process)
        if process is None:
            raise InvalidRequest("process is needed", details={"field": "process"})
        own = None if request.agent_id is None else own_name(request.agent_id)
        topics = [topic_name(each, "topics") for each in request.topics]

        def command(tx: Tx) -> tuple[AgentId, LeaseId | None, int, bool] | None:
            known = _of_this_name(agents.sessions_of(tx, process), own)
            if known is not None and known.session is not None:
                return known.id, known.session, known.ttl_ms, False
            if request.find_only:
                return self._unheld(tx, own, process)
            name = self._free_name(tx, request, own, process)
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
            lease = open_session(tx, agents.find(tx, name), wanted, None)
            return name, lease, wanted.ttl_ms, True

        found = await self._store.write(command)
        now = self._store.clock.now_ms()
        if found is None:
            return _nobody(None, now)
        name, lease, ttl_ms, created = found
        if lease is None:
            return _nobody(name, now)
        beat = self._life.beat(name, ttl_ms)
        return AttachResult(
            agent_id=name,
            lease_id=lease,
            lease_expires_ms=beat.lease_expires_ms,
            created=created,
            server_time_ms=beat.seen_at_ms,
        )

    def _unheld(
        self, tx: Tx, own: AgentId | None, process: ProcessIdentity
    ) -> tuple[AgentId, None, int, bool] | None:
        """Return the agent that a process is only named after, unless another process is it."""
        known = None if own is None else agents.find(tx, own)
        if known is None:
            return None
        if known.process is not None and not self._is_free(known, process, tx.now_ms):
            return None
        return known.id, None, known.ttl_ms, False

    def _free_name(
        self, tx: Tx, request: AttachRequest, own: AgentId | None, process: ProcessIdentity
    ) -> AgentId:
        """Return the name that was asked for or one of client and workspace, free of a number."""
        client = _slug(request.cli, 16)
        plain = f"{client}.{_slug(PurePosixPath(request.workspace).name, _SLUG_LENGTH)}"
        marked = f"{plain}-{hashlib.sha256(request.workspace.encode()).hexdigest()[:6]}"
        for base in (plain, marked) if own is None else (own,):
            for name in _numbered(base):
                known = agents.find(tx, name)
                if known is None:
                    return name
                is_ours = own is not None or known.workspace == request.workspace
                unproven = name == own and known.process is None  # by a program that said none
                if is_ours and (unproven or self._is_free(known, process, tx.now_ms)):
                    return name
                if not is_ours:
                    break
        raise StateConflict(f"no free name is left for {own or plain}", code="names-exhausted")

    def _is_free(self, known: AgentRow, process: ProcessIdentity, now_ms: int) -> bool:
        """Say whether nobody is this agent now: by proof, or by its deadline where none can be had.

        A deadline counts only once everybody had the time to call (EV-B4, EV-B9).
        """
        if known.session is None or known.process == process:
            return True
        life = Liveness.UNKNOWN if known.process is None else self._life.liveness(known.process)
        if life is not Liveness.UNKNOWN:
            return life is Liveness.DEAD
        lapsed = self._life.state(known, now_ms) is not AgentState.ONLINE
        return lapsed and self._store.clock.steady_ms() >= GRACE_MS


def _numbered(base: str) -> Iterator[AgentId]:
    yield AgentId(base)
    for number in range(2, _MOST):
        suffix = f".{number}"
        yield AgentId(base[: _NAME_LENGTH - len(suffix)] + suffix)


def _of_this_name(held: Iterable[AgentRow], own: AgentId | None) -> AgentRow | None:
    """Return which of a process's agents is meant: the name itself before one with a number."""
    rows = list(held)
    if own is None:
        return rows[0] if rows else None
    by_name = {row.id: row for row in rows}
    return next((by_name[name] for name in _numbered(own) if name in by_name), None)


def _nobody(name: AgentId | None, now_ms: int) -> AttachResult:
    """Return the answer without a session."""
    return AttachResult(
        agent_id=name, lease_id=None, lease_expires_ms=None, created=False, server_time_ms=now_ms
    )


def _slug(text: str, longest: int) -> str:
    words = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", text)).strip("-._")
    return words[:longest].strip("-._") or "root"
