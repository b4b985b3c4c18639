"""Find or open the identity of an agent process (K-27, H-29).

Knows no SQL and no transport; a name is never taken from a live process.
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
from tfx.hub.services.life import identity_of, open_session, own_name
from tfx.hub.store import agents
from tfx.hub.store.ids import new_id
from tfx.hub.wire.agents import AttachRequest, AttachResult

if TYPE_CHECKING:
    from tfx.hub.models import Caller
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

_SLUG_LENGTH: Final = 40


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
            lease = open_session(tx, agents.find(tx, name), wanted, None)
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
        beat = self._life.beat(name, ttl_ms)
        return AttachResult(
            agent_id=name,
            lease_id=lease,
            lease_expires_ms=beat.lease_expires_ms,
            created=created,
            server_time_ms=beat.seen_at_ms,
        )

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
            return self._life.liveness(known.process) is Liveness.DEAD
        return self._life.state(known, now_ms) is not AgentState.ONLINE


def _slug(text: str, longest: int) -> str:
    words = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", text)).strip("-._")
    return words[:longest].strip("-._") or "root"
