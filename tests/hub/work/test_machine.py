"""Tasks and leases in any order on a fake clock: the invariants hold after every step."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.hub.driver import OPERATOR_CALLER, Bed, FakeClock, open_core
from tests.hub.store.test_rebuild import refolds_to_itself
from tests.hub.work.crew import HOUR_MS, Crew, Worker, stated
from tfx.errors import Kind, TfxError
from tfx.hub.models import Retention
from tfx.hub.wire import admin
from tfx.hub.wire.work import LeaseView
from tfx.hub.work_models import TaskStatus

T = TypeVar("T")

NAMES = st.sampled_from(["ann", "bob", "cat"])
TASKS = st.integers(1, 4)
STATUSES = st.sampled_from([status.value for status in TaskStatus])
TTLS = st.sampled_from([None, 60_000, HOUR_MS])
FENCES = st.sampled_from(["seen", "stale", "none", "unstated"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
BUGS = {"constraint", "storage", "writer-dead"}
"""What the schema refused is what a command should have refused itself."""


class WorkMachine(RuleBasedStateMachine):
    """Three agents, a person and a clock; a step may be refused, never half done."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "hub.db"
        self.clock = FakeClock()
        self.lives = 0
        self.steps = 0
        self.seen: dict[int, list[LeaseView]] = {}
        self.epochs: dict[int, list[str]] = {}
        self.workers: dict[str, Worker] = {}
        self.begin()
        for name in ("ann", "bob", "cat"):
            self.hire(name)
        for _ in range(2):
            self.add(accept=True, blocked=False, exclusive=False, priority=5)

    def begin(self) -> None:
        self.lives += 1
        name = f"life-{self.lives}"

        async def start() -> Crew:
            keep = Retention(agents_ms=HOUR_MS)
            core = open_core(self.path, self.clock, keep=keep, instance=name)
            await core.upkeep.begin(name)
            return Crew(Bed(self.path, core, self.clock))

        self.crew = self.loop.run_until_complete(start())
        bed = self.crew.bed
        self.workers = {
            name: Worker(bed, name, each.session) for name, each in self.workers.items()
        }

    def do(self, step: Awaitable[T]) -> T | None:
        async def run() -> T | None:
            try:
                return await step
            except TfxError as error:
                if error.reason in BUGS or error.kind is Kind.OPERATION_FAILED:
                    raise AssertionError(error.message) from error
                return None

        return self.loop.run_until_complete(run())

    def fence(self, task: int, kind: str) -> dict[str, object]:
        """What the author of a change believes: the newest lease it saw, an older one, none."""
        known = self.seen.get(task, [])
        if kind == "none":
            return {"no_lease": True}
        if kind == "unstated" or not known:
            return {}
        return stated(known[-1] if kind == "seen" else known[0])

    def note(self, lease: LeaseView | None) -> None:
        if lease is not None:
            self.seen.setdefault(lease.task, []).append(lease)

    # ------------------------------------------------------------ agents

    @rule(name=NAMES)
    def hire(self, name: str) -> None:
        """Register from a process of its own: another life of the agent."""
        hired = self.do(self.crew.hire(name))
        if hired is not None:
            self.workers[name] = hired

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self.do(self.workers[name].leave())

    @rule(name=NAMES)
    def retire(self, name: str) -> None:
        retiring = self.crew.bed.call(
            "agents_retire", object, caller=OPERATOR_CALLER, agent_id=name
        )
        self.do(retiring)

    @rule(name=NAMES, sequence=st.integers(0, 5))
    def beat(self, name: str, sequence: int) -> None:
        self.do(self.workers[name].beat(sequence))

    # ------------------------------------------------------------ tasks

    @rule(
        accept=st.booleans(), blocked=st.booleans(), exclusive=st.booleans(),
        priority=st.integers(1, 9),
    )  # fmt: skip
    def add(self, *, accept: bool, blocked: bool, exclusive: bool, priority: int) -> None:
        fields: dict[str, object] = {"accept": accept, "priority": priority}
        if blocked:
            fields["blocked_by"] = [1]
        if exclusive:
            fields["exclusive"] = "x"
        self.do(self.crew.person.add(**fields))

    @rule(name=NAMES, task=TASKS, status=STATUSES, fence=FENCES, bare=st.booleans())
    def move(self, *, name: str, task: int, status: str, fence: str, bare: bool) -> None:
        who = self.workers[name].bare if bare else self.workers[name]
        self.do(who.update(task, **self.fence(task, fence), status=status))

    @rule(name=NAMES, task=TASKS, status=STATUSES)
    def assign_by_hand(self, name: str, task: int, status: str) -> None:
        self.do(self.crew.person.update(task, status=status, assignee=name))

    @rule(task=TASKS, blocker=TASKS, fence=FENCES)
    def edit(self, task: int, blocker: int, fence: str) -> None:
        fields = {"title": "edited", "blocked_by": [blocker], **self.fence(task, fence)}
        self.do(self.crew.boss.update(task, **fields))

    @rule(name=NAMES, task=TASKS, kind=st.sampled_from(["file", "branch", "pr"]), fence=FENCES)
    def attach(self, name: str, task: int, kind: str, fence: str) -> None:
        worker = self.workers[name]
        self.do(worker.attach(kind, f"{kind}-{task}", task=task, **self.fence(task, fence)))

    @precondition(lambda self: self.steps % 7 == 0)
    @rule(task=TASKS)
    def delete(self, task: int) -> None:
        self.do(self.crew.boss.delete(task))

    # ------------------------------------------------------------ leases

    @rule(name=NAMES, task=TASKS, ttl_ms=TTLS, key=KEYS)
    def claim(self, name: str, task: int, ttl_ms: int | None, key: str | None) -> None:
        self.note(self.do(self.workers[name].claim(task, ttl_ms=ttl_ms, op_id=key)))

    @rule(name=NAMES, ttl_ms=TTLS, key=KEYS)
    def take_next(self, name: str, ttl_ms: int | None, key: str | None) -> None:
        found = self.do(self.workers[name].take_next(ttl_ms=ttl_ms, op_id=key))
        self.note(None if found is None else found.lease)

    @rule(name=NAMES, task=TASKS, fence=FENCES, key=KEYS)
    def release(self, name: str, task: int, fence: str, key: str | None) -> None:
        self.do(self.workers[name].release(task, **self.fence(task, fence), op_id=key))

    @rule(name=NAMES, task=TASKS, to=NAMES, fence=FENCES, ttl_ms=TTLS, key=KEYS)
    def handoff(
        self, *, name: str, task: int, to: str, fence: str, ttl_ms: int | None, key: str | None
    ) -> None:
        fields = {**self.fence(task, fence), "ttl_ms": ttl_ms, "op_id": key}
        done = self.do(self.workers[name].handoff(task, to, **fields))
        self.note(None if done is None else done.lease)

    @rule(name=NAMES, task=TASKS, ttl_ms=TTLS)
    def renew(self, name: str, task: int, ttl_ms: int | None) -> None:
        if self.seen.get(task):
            self.do(self.workers[name].renew(self.seen[task][-1], ttl_ms=ttl_ms))

    @rule(task=TASKS, fence=FENCES)
    def force(self, task: int, fence: str) -> None:
        self.do(self.crew.boss.force(task, **self.fence(task, fence)))

    @rule(name=NAMES, task=TASKS)
    def review(self, name: str, task: int) -> None:
        self.do(self.workers[name].review(task))

    @rule(name=NAMES, task=TASKS)
    def end_review(self, name: str, task: int) -> None:
        self.do(self.workers[name].end_review(task))

    @rule(task=st.one_of(st.none(), TASKS))
    def lock(self, task: int | None) -> None:
        self.do(self.crew.boss.lock(task))

    @rule(task=st.one_of(st.none(), TASKS))
    def unlock(self, task: int | None) -> None:
        self.do(self.crew.boss.unlock(task))

    # ------------------------------------------------------------ time

    @rule(ms=st.sampled_from([500, 45_001, 60_001, HOUR_MS + 1]))
    def time_passes(self, ms: int) -> None:
        self.do(self.crew.bed.tick(ms))

    @rule(ms=st.sampled_from([500, 60_001]))
    def time_passes_unswept(self, ms: int) -> None:
        self.clock.pass_ms(ms)

    @rule(ms=st.sampled_from([-HOUR_MS, 9 * HOUR_MS]))
    def the_clock_jumps(self, ms: int) -> None:
        self.clock.wall_ms += ms
        self.do(self.crew.bed.core.upkeep.tick())

    @rule()
    def forget(self) -> None:
        self.do(self.crew.bed.core.upkeep.forget())

    @rule()
    def rebuild(self) -> None:
        self.do(self.crew.bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest()))

    @rule(ordered=st.booleans())
    def restart(self, *, ordered: bool) -> None:
        async def stop() -> None:
            if ordered:
                await self.crew.bed.core.upkeep.end()
            await self.crew.bed.core.store.close()

        self.loop.run_until_complete(stop())
        self.begin()

    # ------------------------------------------------------------ what always holds

    @invariant()
    def no_chore_fails(self) -> None:
        assert self.crew.bed.core.counted.failing == set()

    @invariant()
    def one_lease_at_most_is_active_and_the_owner_agrees(self) -> None:
        rows = self.crew.bed.rows(
            "SELECT t.status, t.assignee, t.session, l.agent, l.session, count(*) "
            "FROM work_leases l LEFT JOIN tasks t ON t.stream = l.task "
            "WHERE l.status = 'active' GROUP BY l.task"
        )
        for status, assignee, session, agent, life, count in rows:
            assert count == 1
            assert status in {"assigned", "in_progress", "blocked", "in_review"}
            assert (assignee, session) == (agent, life)
        ended = self.crew.bed.rows(
            "SELECT l.id FROM work_leases l JOIN agents a ON a.id = l.agent "
            "WHERE l.status = 'active' AND a.session IS NOT l.session"
        )
        assert ended == []

    @invariant()
    def epochs_only_rise(self) -> None:
        rows = self.crew.bed.rows("SELECT task, epoch, id FROM work_leases ORDER BY task, epoch")
        now: dict[int, list[str]] = {}
        for task, epoch, lease in rows:
            held = now.setdefault(int(task or 0), [])
            assert epoch == len(held)  # 0, 1, 2 … without a gap
            held.append(str(lease))
        for task, before in self.epochs.items():
            held = now.get(task, [])
            assert not held or held[: len(before)] == before
        self.epochs = now

    @invariant()
    def reviewers_never_review_their_own_work(self) -> None:
        rows = self.crew.bed.rows(
            "SELECT t.status, t.assignee, r.agent, count(*) FROM review_leases r "
            "JOIN tasks t ON t.stream = r.task WHERE r.status = 'active' GROUP BY r.task"
        )
        for status, assignee, reviewer, count in rows:
            assert (status, count) == ("in_review", 1)
            assert assignee != reviewer

    @invariant()
    def ev_p3_every_row_carries_the_last_seq_that_touched_it(self) -> None:
        newest = self.crew.last_seq()
        for table in ("tasks", "blockers", "artifacts", "work_leases", "review_leases", "locks"):
            ((most,),) = self.crew.bed.rows(f"SELECT coalesce(max(last_seq), 0) FROM {table}")
            assert 0 <= int(most or 0) <= newest
        rows = self.crew.bed.rows(
            "SELECT t.last_seq FROM tasks t WHERE NOT EXISTS "
            "(SELECT 1 FROM log l WHERE l.seq = t.last_seq AND l.stream = t.stream)"
        )
        assert rows == []

    @invariant()
    def the_projections_equal_a_fold_of_the_log(self) -> None:
        self.steps += 1
        if self.steps % 5 == 0:
            self.compare()

    def compare(self) -> None:
        assert self.loop.run_until_complete(self.crew.bed.refolds())

    def teardown(self) -> None:
        self.compare()
        self.loop.run_until_complete(self.crew.bed.core.store.close())
        self.loop.close()
        refolds_to_itself(self.path)
        self.directory.cleanup()


TestTasksAndLeases = WorkMachine.TestCase
TestTasksAndLeases.settings = settings(
    max_examples=30,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
