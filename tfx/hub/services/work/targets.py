"""The one live session that a task may be handed to (WK-L17, WK-K2).

Knows no lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.errors import AgentUnavailable, StateConflict
from tfx.hub.models import AgentId, AgentState
from tfx.hub.store import agents

if TYPE_CHECKING:
    from tfx.hub.services.life import Life
    from tfx.hub.store.agents import AgentRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx


_MOST: Final = 128
"""What is longer is no id, and stands in no lease."""


def one_live(  # noqa: PLR0917  (whom, and what narrows it down)
    tx: Tx, life: Life, task: TaskRow, target: AgentId, session: str | None, instance: str | None
) -> tuple[str, str | None]:
    """Return the session of the target in the task's room, and its instance if it named one.

    Raises AgentUnavailable `target-unreachable` when it has no session there or does not live
    (H-61), StateConflict `target-not-unique` when that session is not the one asked for.
    """
    known = agents.find(tx, target)
    if (
        known is None
        or known.session is None
        or known.retired_at_ms is not None
        or known.workspace != task.room
    ):
        raise AgentUnavailable(
            f"{target} has no open session in {task.room}",
            code="target-unreachable",
            hint="tfx hub agents",
            details={"target": target, "room": task.room},
        )
    its_instance = _instance(known)
    if session not in {None, known.session} or instance not in {None, its_instance}:
        raise StateConflict(
            f"the session of {target} is not the one that was asked for",
            code="target-not-unique",
            hint="tfx hub agents",
            details={"target": target, "room": task.room},
        )
    state = life.state(known, tx.now_ms)
    if state is not AgentState.ONLINE:
        raise AgentUnavailable(
            f"{target} is {state.value}: a task goes to a live session only",
            code="target-unreachable",
            hint="tfx hub agents",
            details={"target": target, "state": state.value},
        )
    return known.session, its_instance


def _instance(known: AgentRow) -> str | None:
    found = known.said("instance")
    return found if found and len(found) <= _MOST else None
