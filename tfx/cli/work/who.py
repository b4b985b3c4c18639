"""Who a command of `tfx task` and `tfx lease` speaks for, and on which board.

Inside an agent's process tree that is the agent and its session; elsewhere the person at the
machine, who is no worker (K-27, WK-A4). Decides no right: the hub does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.cli.hub.calls import identity
from tfx.errors import ActorMissing, InvalidRequest, NotFound
from tfx.hub import ancestry
from tfx.hub.models import StatusScope
from tfx.hub.wire.views import StatusResult

if TYPE_CHECKING:
    from tfx.core.paths import Paths
    from tfx.hub.client import HubClient


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the options say of the speaker and the board; None says nothing."""

    agent: str | None = None
    session: str | None = None
    room: str | None = None


@dataclass(frozen=True, slots=True)
class Speaker:
    """A worker, supervised with a `session`; or without `agent` the person. `room` is the board."""

    agent: str | None
    session: str | None
    room: str

    @property
    def fields(self) -> dict[str, object]:
        """The fields of a request that tell who does it, and where."""
        return {"agent_id": self.agent, "session": self.session, "room": self.room}

    @property
    def place(self) -> dict[str, object]:
        """The fields of a request that only looks."""
        return {"agent_id": self.agent, "room": self.room}

    def required(self, why: str) -> str:
        """Return the agent; raises ActorMissing for the person."""
        if self.agent is None:
            raise ActorMissing(
                f"{why}, and this does not run inside an agent that the hub knows",
                hint="run it inside the agent, or add --agent NAME --session ID",
            )
        return self.agent

    @property
    def worktree(self) -> str | None:
        """The working tree the command is run in, when it is one of the board's workspace."""
        here = _here()
        if workspace_of(here) != self.room:
            return None
        return next((str(each) for each in (here, *here.parents) if (each / ".git").exists()), None)


def speaker(paths: Paths, client: HubClient, wishes: Wishes) -> Speaker:
    """Return who speaks: the options, `TFX_AGENT_ID`, the agent this runs in, else the person.

    A supervised worker is on the board of its registration wherever it stands now. Raises
    InvalidRequest for a session without an agent, and what the hub raises.
    """
    agent = wishes.agent or paths.env.get("TFX_AGENT_ID") or None
    session = wishes.session
    if agent is None or session is None:
        found = identity(client, agent)
        if found is not None and found.agent_id is not None:
            agent = found.agent_id
            session = session or found.lease_id
    if session is not None and agent is None:
        raise InvalidRequest(
            "--session is the session of an agent: name it with --agent", code="usage"
        )
    registered = None
    if agent is not None and session is not None and wishes.room is None:
        registered = _workspace_of_agent(client, agent)
    return Speaker(agent, session, registered or board_of(wishes))


def board_of(wishes: Wishes) -> str:
    """Return the workspace that the options name, else that of the working directory (K-4)."""
    if wishes.room is None:
        return workspace_of(_here())
    given = Path(wishes.room)
    return workspace_of(Path(os.path.realpath(given if given.is_absolute() else _here() / given)))


def workspace_of(directory: Path) -> str:
    """Return the workspace of a directory: the tree of its git common directory, else itself."""
    return str(ancestry.workspace_of(directory))


def absolute(path: str) -> str:
    """Return a path of the command line as everybody else may read it (K-4)."""
    return os.path.normpath(_here() / path)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidRequest(
            "the working directory is gone, so there is no workspace",
            code="no-directory",
            hint="cd into the workspace",
        ) from error


def _workspace_of_agent(client: HubClient, agent: str) -> str | None:
    wish = {"scope": StatusScope.AGENT.value, "agent_id": agent}
    try:
        found = client.call_with("status", wish, StatusResult).agent
    except NotFound:
        return None  # the hub says what is wrong with it when it is asked to work
    return None if found is None else found.workspace
