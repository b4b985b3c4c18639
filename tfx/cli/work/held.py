"""Which leases there are: for `status`, and where a command may leave its own one out.

Asks the hub each time; remembers nothing between two commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfx.cli.hub.calls import Answered
from tfx.cli.work.calls import called, worked
from tfx.cli.work.who import Speaker, Wishes, speaker
from tfx.errors import InvalidRequest, Kind, StateConflict
from tfx.hub.client import HubClient
from tfx.hub.wire.leases import BeatResult, LeaseStatusResult
from tfx.hub.work_models import LeaseState
from tfx.result import Problem, Result, Status

if TYPE_CHECKING:
    from tfx.core.paths import Paths
    from tfx.hub.wire.work import LeaseView

_STATUS = "work_status"


@dataclass(frozen=True, slots=True)
class Question:
    """What `tfx lease status` is asked: at most one of task, lease, agent and mine."""

    task: int | None
    lease: str | None
    agent: str | None
    mine: bool
    limit: int

    def fields(self, who: Speaker) -> dict[str, object]:
        """Return the fields of the request; without anything asked the whole board."""
        if self.lease is not None:
            return {"lease_id": self.lease}
        if self.task is not None:
            return {"task": self.task, "room": who.room}
        if self.mine or self.agent is not None:
            own = who.required("--mine asks for your own leases") if self.mine else self.agent
            return {"agent_id": own}
        return {"room": who.room}


def leases_of(
    paths: Paths, agent: str | None, room: str | None, question: Question
) -> Result[Answered[LeaseStatusResult]]:
    """Return leases, reviews and locks; raises InvalidRequest for two questions at once."""
    asked = [question.task, question.lease, question.agent, question.mine or None]
    if sum(each is not None for each in asked) > 1:
        raise InvalidRequest(
            "ask for one of a task, --lease, --of and --mine",
            code="usage",
            hint="tfx lease status --help",
        )
    with HubClient.of(paths) as client:
        who = speaker(paths, client, Wishes(agent, room=room))
        fields = {**question.fields(who), "limit": question.limit, "max_bytes": 262_144}
        return Result(Answered(called(client, _STATUS, fields, LeaseStatusResult)))


def own_lease(
    client: HubClient, who: Speaker, task: int, lease: str | None, epoch: int | None
) -> dict[str, object]:
    """Return lease id and epoch as given, else those of the task that this session holds.

    Raises StateConflict `lease-missing` when it holds none.
    """
    if lease is not None and epoch is not None:
        return {"lease_id": lease, "epoch": epoch}
    found = _active(client, who.room, task)
    mine = found is not None and (found.agent_id, found.session) == (who.agent, who.session)
    if found is None or not mine or (lease or found.lease_id) != found.lease_id:
        raise StateConflict(
            f"this session holds no lease of task {task}",
            code="lease-missing",
            hint=f"who holds it: tfx lease status {task}",
            details={"task": task},
        )
    return {"lease_id": found.lease_id, "epoch": found.epoch if epoch is None else epoch}


def present_lease(client: HubClient, room: str, task: int) -> dict[str, object]:
    """Return what a task's lease is now, as the expectation of a request (WK-D5)."""
    found = _active(client, room, task)
    if found is None:
        return {"no_lease": True}
    return {"lease_id": found.lease_id, "epoch": found.epoch}


def beaten(
    paths: Paths, wishes: Wishes, sequence: int, observed_at_ms: int, op_id: str | None
) -> Result[Answered[BeatResult]]:
    """Beat for the session that speaks; a beat that came too late is a warning (WK-L25)."""

    def fields(_client: HubClient, who: Speaker) -> dict[str, object]:
        who.required("a beat is that of a session")
        return {
            "room": None,
            "sequence": sequence,
            "observed_at_ms": observed_at_ms,
            "op_id": op_id,
        }

    result = worked(paths, wishes, "work_beat", BeatResult, fields)
    if result.data.struct.accepted:
        return result
    late = Problem(
        "beat-not-taken",
        Kind.STATE_CONFLICT,
        "the beat was not taken: a later one came before it, or the session has ended",
        "tfx lease status --mine",
    )
    return Result(result.data, Status.WARNING, (late,))


def _active(client: HubClient, room: str, task: int) -> LeaseView | None:
    fields = {"task": task, "room": room, "limit": 1}  # the newest epoch comes first
    found = called(client, _STATUS, fields, LeaseStatusResult).leases
    return next((each for each in found if each.state is LeaseState.ACTIVE), None)
