"""Who asks for work to be done, and in which room: checked inside the write transaction (WK-A5).

Knows neither tasks nor leases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfx.errors import AccessDenied, ActorMissing, InvalidRequest
from tfx.hub.models import OPERATOR, AgentId
from tfx.hub.services.life import own_name
from tfx.hub.store import agents

if TYPE_CHECKING:
    from typing import Protocol

    from tfx.hub.models import Caller
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tx import Tx

    class Asking(Protocol):
        """What every request about a room has."""

        @property
        def agent_id(self) -> AgentId | None:
            """The agent, if one asks."""
            ...

        @property
        def room(self) -> str | None:
            """The workspace, if it is named."""
            ...

    class Working(Asking, Protocol):
        """What every request of a worker has."""

        @property
        def session(self) -> str | None:
            """The register lease, if there is one."""
            ...


@dataclass(frozen=True, slots=True)
class Worker:
    """Who asks. Supervised with a session, else not; without an agent it is a person.

    `is_operator` is the operator credential: it skips the holder check and no other (WK-L20).
    """

    room: str
    agent: AgentId | None
    session: str | None
    is_operator: bool

    @property
    def actor(self) -> AgentId:
        """The name that its events carry (K-31)."""
        return self.agent or OPERATOR

    @property
    def is_supervised(self) -> bool:
        """True for one that holds a register lease which has not ended."""
        return self.agent is not None and self.session is not None

    def is_holder(self, agent: str | None, session: str | None) -> bool:
        """Compare key and session, never a label (WK-D6)."""
        return self.is_supervised and (self.agent, self.session) == (agent, session)


def room_of(source: Tx | Reader, request: Asking) -> str:
    """Return the room of a request: its own, else the workspace of the agent who asks (K-27)."""
    if request.room is not None:
        return request.room
    known = None if request.agent_id is None else agents.find(source, request.agent_id)
    if known is None or known.workspace is None:
        raise InvalidRequest(
            "room is needed: it is the workspace whose tasks are meant",
            code="room-needed",
            hint="run it in the workspace, or name it with --room",
            details={"field": "room"},
        )
    return known.workspace


def worker(tx: Tx | Reader, caller: Caller, request: Working) -> Worker:
    """Return who asks, once its session is proven open, its own, and of this room.

    Raises ActorMissing, AccessDenied `actor-invalid`, `actor-mismatch`, `authority-ended` or
    `foreign-room` (WK-A1 … WK-A3).
    """
    if request.agent_id is None:
        if request.session is not None:
            raise ActorMissing("a session needs the agent_id that it is of")
        return Worker(room_of(tx, request), None, None, caller.operator)
    name = own_name(request.agent_id)
    if request.session is None:
        return Worker(room_of(tx, request), name, None, caller.operator)
    known = agents.find(tx, name)
    if known is None:
        raise AccessDenied(f"no agent is called {name}", code="actor-invalid", hint=_REGISTER)
    _prove(tx, known, request.session)
    if known.workspace is None or request.room not in {None, known.workspace}:
        where = "no workspace" if known.workspace is None else known.workspace
        raise AccessDenied(
            f"{name} is registered in {where}, which is not the room of this task",
            code="foreign-room",
            hint=None if known.workspace is not None else _NO_WORKSPACE,
            details={"agent": name, "workspace": known.workspace, "room": request.room},
        )
    return Worker(known.workspace, name, request.session, caller.operator)


def supervised(tx: Tx, caller: Caller, request: Working) -> tuple[Worker, AgentId, str]:
    """Return a worker that may hold leases (WK-A1, WK-A4); raises ActorMissing."""
    found = worker(tx, caller, request)
    if found.agent is None or found.session is None:
        raise ActorMissing(
            "a lease needs an agent and its open session",
            hint="send agent_id and session (the lease_id of register)",
        )
    return found, found.agent, found.session


def _prove(tx: Tx | Reader, known: AgentRow, session: str) -> None:
    if known.session == session and known.retired_at_ms is None:
        return
    if agents.owner_of(tx, session) not in {None, known.id}:
        raise AccessDenied(f"the session is not one of {known.id}", code="actor-mismatch")
    if known.session == session or agents.had_session(tx, known, session):
        raise AccessDenied(
            f"this session of {known.id} has ended",
            code="authority-ended",
            hint=_REGISTER if known.session in {None, session} else _REPLACED,
        )
    raise AccessDenied(f"{known.id} never had this session", code="actor-invalid", hint=_REGISTER)


_REGISTER: Final = "register again, and claim the task again"
_NO_WORKSPACE: Final = "register with `workspace`: the absolute path of the repository"
_REPLACED: Final = (
    "another process registered by this name: let each have a TFX_AGENT_ID of its own"
)
