"""How many turns agents may take on a task before a person decides (WK-K8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, with_bed
from tests.hub.occupying import finish, me
from tfx.errors import TfxError
from tfx.hub.models import AgentId, Limits, OpId
from tfx.hub.occupancy_models import InvocationKind
from tfx.hub.wire import admin, agents, invocations, leases, work
from tfx.hub.work_models import LeaseState, TaskStatus, WantedStatus

ROOM = "/home/u/work/app"
Story = Callable[[Bed], Awaitable[None]]


@dataclass(slots=True)
class Held:
    """A task that `bob` holds."""

    bed: Bed
    number: int
    session: str
    lease: work.LeaseView

    @classmethod
    async def make(cls, bed: Bed, status: TaskStatus | None = None) -> Held:
        attached = await bed.core.attaching.attach(
            NOBODY,
            agents.AttachRequest(
                cli="claude", workspace=ROOM, process=me(), agent_id=AgentId("bob")
            ),
        )
        session = str(attached.lease_id)
        made = await bed.core.tasking.work_add(
            NOBODY, work.TaskAddRequest(room=ROOM, title="x", accept=True)
        )
        number = made.task.task
        claimed = await bed.core.leasing.work_claim(
            NOBODY,
            leases.ClaimRequest(agent_id=AgentId("bob"), session=session, room=ROOM, task=number),
        )
        held = cls(bed, number, session, claimed.lease)
        if status is not None:
            await held.moves(status)
        return held

    async def moves(self, status: TaskStatus) -> None:
        """Let the holder move it."""
        await self.bed.core.changing.work_update(
            NOBODY,
            work.TaskUpdateRequest(
                agent_id=AgentId("bob"),
                session=self.session,
                room=ROOM,
                task=self.number,
                lease_id=self.lease.lease_id,
                epoch=self.lease.epoch,
                status=WantedStatus(status.value),
            ),
        )

    async def decided(self, status: TaskStatus) -> None:
        """Let the person move it."""
        await self.bed.core.changing.work_update(
            OPERATOR_CALLER,
            work.TaskUpdateRequest(
                room=ROOM,
                task=self.number,
                lease_id=self.lease.lease_id,
                epoch=self.lease.epoch,
                status=WantedStatus(status.value),
            ),
        )

    async def turn(
        self, kind: InvocationKind = InvocationKind.TURN, number: int | None = None
    ) -> str:
        started = await self.bed.core.invocations.invocation_start(
            NOBODY,
            invocations.InvocationStartRequest(
                agent_id=AgentId("bob"),
                kind=kind,
                process=me(),
                room=ROOM,
                task=number or self.number,
            ),
        )
        return str(started.invocation_id)

    async def look(self) -> work.TaskView:
        shown = await self.bed.core.tasking.work_show(
            NOBODY, work.TaskShowRequest(room=ROOM, task=self.number)
        )
        return shown.task


def played(path: Path, story: Story, turns: int = 2) -> None:
    """Run a story with a limit; what a refold gives must be what it left."""

    async def whole(bed: Bed) -> None:
        await story(bed)
        check = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert check.equal, check

    with_bed(path / "hub.db", whole, limits=Limits(turns=turns), clock=FakeClock())


@pytest.mark.parametrize("status", [None, TaskStatus.IN_PROGRESS])
def test_wk_k8_at_the_limit_of_turns_the_task_is_blocked_and_the_lease_stays(
    tmp_path: Path, status: TaskStatus | None
) -> None:
    async def story(bed: Bed) -> None:
        held = await Held.make(bed, status)
        before = (await held.look()).status
        await finish(bed, await held.turn())
        assert (await held.look()).status is before
        last = await held.turn()
        task = await held.look()
        assert task.status is TaskStatus.BLOCKED
        assert task.note == "policy: 2 turns are the limit; a person has to decide"
        assert task.lease is not None
        assert (task.lease.lease_id, task.lease.state) == (held.lease.lease_id, LeaseState.ACTIVE)
        assert task.assignee is not None
        assert task.assignee.agent_id == "bob"
        await finish(bed, last)
        await held.turn()  # one more is recorded and blocks nothing twice
        assert (await held.look()).status is TaskStatus.BLOCKED
        assert (await held.look()).revision == task.revision

    played(tmp_path, story)


def test_wk_k8_a_move_by_the_person_begins_a_new_count(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        held = await Held.make(bed, TaskStatus.IN_PROGRESS)
        for _ in range(2):
            await held.turn()
        assert (await held.look()).status is TaskStatus.BLOCKED
        await held.decided(TaskStatus.IN_PROGRESS)
        await held.turn()
        assert (await held.look()).status is TaskStatus.IN_PROGRESS
        await held.turn()
        assert (await held.look()).status is TaskStatus.BLOCKED

    played(tmp_path, story)


def test_wk_k8_a_move_by_the_agent_begins_no_new_count(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        held = await Held.make(bed)
        await held.turn()
        await held.moves(TaskStatus.IN_PROGRESS)
        await held.turn()
        assert (await held.look()).status is TaskStatus.BLOCKED

    played(tmp_path, story)


def test_wk_k8_no_limit_and_no_other_kind_of_invocation_blocks_a_task(tmp_path: Path) -> None:
    async def unlimited(bed: Bed) -> None:
        held = await Held.make(bed)
        for _ in range(60):
            await held.turn()
        assert (await held.look()).status is TaskStatus.ASSIGNED

    async def other_kinds(bed: Bed) -> None:
        held = await Held.make(bed)
        for kind in InvocationKind:
            if kind is not InvocationKind.TURN:
                await finish(bed, await held.turn(kind))
        await held.turn()
        assert (await held.look()).status is TaskStatus.ASSIGNED

    for name, story, turns in (("none", unlimited, 0), ("kinds", other_kinds, 2)):
        place = tmp_path / name
        place.mkdir()
        played(place, story, turns)


def test_wk_k8_a_task_in_review_is_not_blocked_by_turns(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        held = await Held.make(bed, TaskStatus.IN_REVIEW)
        for _ in range(3):
            await held.turn()
        assert (await held.look()).status is TaskStatus.IN_REVIEW

    played(tmp_path, story)


def test_wk_k8_a_repeated_report_is_one_turn_and_an_unknown_task_none(tmp_path: Path) -> None:
    async def story(bed: Bed) -> None:
        held = await Held.make(bed)
        with pytest.raises(TfxError) as refused:
            await held.turn(number=99)
        assert refused.value.reason == "unknown-task"
        for _ in range(3):
            await bed.core.invocations.invocation_start(
                NOBODY,
                invocations.InvocationStartRequest(
                    agent_id=AgentId("bob"),
                    kind=InvocationKind.TURN,
                    process=me(),
                    room=ROOM,
                    task=held.number,
                    op_id=OpId("turn-1"),
                ),
            )
        assert (await held.look()).status is TaskStatus.ASSIGNED

    played(tmp_path, story)
