"""Agents at work in a hub without transports: short names for the operations `work_*`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pytest

from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed
from tests.hub.waiting import until_in_loop
from tfx.errors import TfxError
from tfx.hub.models import Caller
from tfx.hub.wire import agents, leases, work

T = TypeVar("T")

ROOM = "/home/u/project/.git"
ELSEWHERE = "/home/u/other/.git"
HOUR_MS = 3_600_000

_pids = itertools.count(1_000)


def process_facts(pid: int | None = None) -> dict[str, object]:
    """A process of a host that is not this one: nothing can prove its death."""
    number = next(_pids) if pid is None else pid
    return {
        "pid": number,
        "start_token": f"start-{number}",
        "boot_id": "boot-of-another-host",
        "host": "another-host",
        "pid_namespace": "",
    }


@dataclass(frozen=True, slots=True)
class Worker:
    """One life of an agent, or somebody who is none: then `name` or `session` is missing."""

    bed: Bed
    name: str | None
    session: str | None
    caller: Caller = NOBODY
    room: str = ROOM

    @property
    def bare(self) -> Worker:
        """The same agent without its session: unsupervised (WK-A4)."""
        return Worker(self.bed, self.name, None, self.caller, self.room)

    async def ask(self, operation: str, response: type[T], **fields: object) -> T:
        who = {"agent_id": self.name, "session": self.session, "room": self.room}
        given = {**who, **fields}
        filled = {key: value for key, value in given.items() if value is not None}
        return await self.bed.call(operation, response, caller=self.caller, **filled)

    async def add(self, title: str = "do it", /, **fields: object) -> work.TaskView:
        return (await self.ask("work_add", work.TaskResult, title=title, **fields)).task

    async def ready(self, title: str = "do it", /, **fields: object) -> work.TaskView:
        """Add a task that may be claimed."""
        return await self.add(title, accept=True, **fields)

    async def show(self, task: int) -> work.TaskView:
        who = {"agent_id": None, "session": None}
        return (await self.ask("work_show", work.TaskResult, task=task, **who)).task

    async def board(self, **fields: object) -> work.TaskListResult:
        who = {"agent_id": None, "session": None}
        return await self.ask("work_list", work.TaskListResult, **{**who, **fields})

    async def claim(self, task: int, **fields: object) -> work.LeaseView:
        return (await self.ask("work_claim", leases.LeaseResult, task=task, **fields)).lease

    async def take_next(self, **fields: object) -> work.TaskNextResult:
        return await self.ask("work_next", work.TaskNextResult, **fields)

    async def update(
        self, task: int, lease: work.LeaseView | None = None, /, **fields: object
    ) -> work.TaskView:
        given = {**stated(lease), **fields}
        return (await self.ask("work_update", work.TaskResult, task=task, **given)).task

    async def attach(
        self, kind: str, identity: str, lease: work.LeaseView | None = None, /, **fields: object
    ) -> work.TaskView:
        given = {"kind": kind, "identity": identity, **stated(lease), **fields}
        return (await self.ask("work_attach", work.TaskResult, **given)).task

    async def release(
        self, task: int, lease: work.LeaseView | None = None, /, **fields: object
    ) -> leases.ReleaseResult:
        given = {"task": task, **stated(lease), **fields}
        return await self.ask("work_release", leases.ReleaseResult, **given)

    async def handoff(
        self, task: int, to: str, lease: work.LeaseView | None = None, /, **fields: object
    ) -> leases.HandoffResult:
        given = {"task": task, "to": to, **stated(lease), **fields}
        return await self.ask("work_handoff", leases.HandoffResult, **given)

    async def renew(self, lease: work.LeaseView, **fields: object) -> work.LeaseView:
        given = {**stated(lease), **fields}
        return (await self.ask("work_renew", leases.RenewResult, **given)).lease

    async def beat(
        self, sequence: int, observed_at_ms: int | None = None, **fields: object
    ) -> leases.BeatResult:
        at = self.bed.clock.now_ms() if observed_at_ms is None else observed_at_ms
        given = {"room": None, "sequence": sequence, "observed_at_ms": at, **fields}
        return await self.ask("work_beat", leases.BeatResult, **given)

    async def force(
        self, task: int, lease: work.LeaseView | None = None, /, **fields: object
    ) -> leases.ReleaseResult:
        given = {"task": task, "reason": "it hangs", **stated(lease), **fields}
        return await self.ask("work_force_release", leases.ReleaseResult, **given)

    async def status(self, **fields: object) -> leases.LeaseStatusResult:
        given = {"agent_id": None, "session": None, "room": None, **fields}
        return await self.ask("work_status", leases.LeaseStatusResult, **given)

    async def review(self, task: int, **fields: object) -> work.ReviewView:
        found = await self.ask("work_review_claim", leases.ReviewResult, task=task, **fields)
        assert found.review is not None
        return found.review

    async def end_review(self, task: int, **fields: object) -> work.ReviewView | None:
        given = {"task": task, **fields}
        return (await self.ask("work_review_release", leases.ReviewResult, **given)).review

    async def lock(self, task: int | None = None, **fields: object) -> work.LockView:
        given = {"task": task, "reason": "human_stop", **fields}
        return (await self.ask("work_lock", leases.LockResult, **given)).lock

    async def unlock(self, task: int | None = None) -> work.LockView | None:
        return (await self.ask("work_unlock", leases.LockClearResult, task=task)).cleared

    async def delete(self, task: int) -> work.TaskDeleteResult:
        return await self.ask("work_delete", work.TaskDeleteResult, task=task)

    async def leave(self) -> None:
        """End the session."""
        who = {"session": None, "room": None, "lease_id": self.session}
        await self.ask("deregister", agents.DeregisterResult, **who)

    async def mail(self) -> list[dict[str, Any]]:
        """Take what the hub told this agent about leases: the payloads, oldest first."""
        assert self.name is not None
        polled = await self.bed.poll(self.name, most=100, auto_ack=True, max_bytes=262_144)
        found = [each for each in polled.messages if each.topic == "work.lease"]
        assert {(each.sender, each.type.value) for each in found} <= {("hub:hub", "system")}
        return [msgspec.json.decode(bytes(each.payload)) for each in found]


def stated(lease: work.LeaseView | None) -> dict[str, object]:
    """The fence of a mutation: what its author believes to be the active lease (WK-L9)."""
    return {} if lease is None else {"lease_id": lease.lease_id, "epoch": lease.epoch}


class Crew:
    """A hub, the person at it, and whoever was hired."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.clock = bed.clock
        self.person = Worker(bed, None, None)
        self.boss = Worker(bed, None, None, OPERATOR_CALLER)

    async def hire(
        self,
        name: str,
        *,
        room: str = ROOM,
        pid: int | None = None,
        ttl_ms: int = 7_200_000,
        label: str | None = None,
    ) -> Worker:
        """Register an agent from a process of its own; once more is another life of it."""
        given = await self.bed.call(
            "register",
            agents.RegisterResult,
            agent_id=name,
            cli="codex",
            capabilities=["code"],
            topics=[],
            heartbeat_ttl_ms=ttl_ms,
            workspace=room,
            process=process_facts(pid),
            metadata=msgspec.Raw(msgspec.json.encode({} if label is None else {"label": label})),
        )
        return Worker(self.bed, name, given.lease_id, room=room)

    async def owned(self, worker: Worker, *steps: str, **fields: object) -> work.LeaseView:
        """Let a worker claim a fresh task and move it through these statuses."""
        task = await self.person.ready(**fields)
        lease = await worker.claim(task.task)
        for status in steps:
            await worker.update(task.task, lease, status=status)
        return lease

    async def assigned(self, name: str, *, status: str = "assigned") -> int:
        """Assign a fresh task by hand: an assignee without a lease."""
        task = await self.person.ready()
        await self.person.update(task.task, status="assigned", assignee=name)
        if status != "assigned":
            await self.person.update(task.task, status=status)
        return task.task

    def active(self) -> list[tuple[int, str, int]]:
        """Task number, holder and epoch of every active lease."""
        rows = self.bed.rows(
            "SELECT t.number, l.agent, l.epoch FROM work_leases l JOIN tasks t ON t.stream = l.task"
            " WHERE l.status = 'active' ORDER BY t.number"
        )
        return [(int(number or 0), str(agent), int(epoch or 0)) for number, agent, epoch in rows]

    def leases(self, task: int) -> list[tuple[int, str, str, str | None]]:
        """Epoch, holder, state and reason of every lease of a task of the room, oldest first."""
        rows = self.bed.rows(
            "SELECT l.epoch, l.agent, l.status, l.reason FROM work_leases l "
            f"JOIN tasks t ON t.stream = l.task WHERE t.room = '{ROOM}' AND t.number = ? "
            "ORDER BY l.epoch",
            task,
        )
        return [
            (int(epoch or 0), str(agent), str(state), None if why is None else str(why))
            for epoch, agent, state, why in rows
        ]

    def log(self, *kinds: str, task: int | None = None) -> list[tuple[str, str, dict[str, Any]]]:
        """Kind, actor and body of the events of these kinds, or of a task's stream."""
        rows = self.bed.rows(
            "SELECT l.kind, l.actor, l.body, t.number FROM log l "
            "LEFT JOIN tasks t ON t.stream = l.stream ORDER BY l.seq"
        )
        return [
            (str(kind), str(actor), msgspec.json.decode(str(body)))
            for kind, actor, body, number in rows
            if (not kinds or kind in kinds) and (task is None or number == task)
        ]

    def last_seq(self) -> int:
        """The seq of the newest event."""
        ((seq,),) = self.bed.rows("SELECT max(seq) FROM log")
        return int(seq or 0)


@contextlib.contextmanager
def refused(code: str, kind: str | None = None) -> Iterator[pytest.ExceptionInfo[TfxError]]:
    """What is inside must be refused with this code, and of this kind where one is named."""
    with pytest.raises(TfxError) as caught:
        yield caught
    assert caught.value.reason == code, (caught.value.reason, caught.value.message)
    assert kind in {None, caught.value.kind.value}


async def all_refused(
    steps: Iterable[Awaitable[object]], code: str, kind: str | None = None
) -> list[TfxError]:
    """Each of these must be refused with this code; all are tried, one after the other."""
    errors: list[TfxError] = []
    told: list[str] = []
    for step in steps:
        try:
            await step
        except TfxError as error:
            errors.append(error)
            told.append(error.reason)
        else:
            told.append("was not refused")
    assert set(told) == {code}, told
    assert kind is None or {error.kind.value for error in errors} == {kind}
    return errors


async def later(crew: Crew, step: Awaitable[T]) -> asyncio.Future[T]:
    """Begin something and let it come as far as the writer that is held."""
    writer = crew.bed.core.store.writer
    before = writer.pending
    task = asyncio.ensure_future(step)
    await until_in_loop(lambda: task.done() or writer.pending > before)
    return task


Story = Callable[[Crew], Awaitable[None]]
PlayCrew = Callable[[Story], None]
