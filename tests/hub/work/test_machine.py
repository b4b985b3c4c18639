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
from tests.hub.work import invariants
from tests.hub.work.crew import HOUR_MS, ROOM, Crew, Worker, process_facts, stated
from tests.hub.work.test_tasks import NEXT
from tfx.errors import Kind, TfxError
from tfx.hub.models import Limits, Retention
from tfx.hub.wire import admin
from tfx.hub.wire.work import LeaseView
from tfx.hub.work_models import TaskStatus

T = TypeVar("T")

NAMES = st.sampled_from(["ann", "bob", "cat"])
TASKS = st.integers(1, 4)
STATUSES = st.sampled_from([status.value for status in TaskStatus])
TTLS = st.sampled_from([None, 60_000, HOUR_MS])
FENCES = st.sampled_from(["seen", "seen", "unstated", "unstated", "stale", "none"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
SELDOM = st.sampled_from([False, False, False, True])
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
        self.begun = invariants.Begun()
        self.workers: dict[str, Worker] = {}
        self.begin()
        for name in ("ann", "bob", "cat"):
            self.hire(name)
        for _ in range(4):
            self.add(accept=True, blocked=False, exclusive=False, priority=5)
        for task, name in ((1, "ann"), (2, "bob")):
            self.claim(name=name, task=task, ttl_ms=HOUR_MS, key=None, tired=False)
        self.review(name="cat", task=2)

    def begin(self) -> None:
        self.lives += 1
        name = f"life-{self.lives}"

        async def start() -> Crew:
            keep = Retention(agents_ms=HOUR_MS, tasks_ms=HOUR_MS // 2)
            limits = Limits(review_rounds=2, turns=3)
            core = open_core(self.path, self.clock, keep=keep, limits=limits, instance=name)
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

    def worker(self, name: str, *, tired: bool = False) -> Worker:
        """An agent, in a new life if the last one has ended, unless it is too tired for that."""
        rows = self.crew.bed.rows(f"SELECT session FROM agents WHERE id = '{name}'")
        if not tired and rows != [(self.workers[name].session,)]:
            self.hire(name)
        return self.workers[name]

    def holder(self, task: int) -> Worker | None:
        """Who has a task."""
        found = [name for number, name, _ in self.crew.active() if number == task]
        return self.workers[found[0]] if found else None

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

    @precondition(lambda self: self.steps % 4 == 0)
    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self.do(self.workers[name].leave())

    @precondition(lambda self: self.steps % 9 == 0)
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

    @rule(task=TASKS, choice=st.integers(0, 9))
    def the_holder_goes_on(self, task: int, choice: int) -> None:
        """A move that the machine allows, by who may make it."""
        rows = self.crew.bed.rows("SELECT status FROM tasks WHERE number = ?", task)
        ways = sorted(NEXT[str(rows[0][0])] - {"accepted"}) if rows else []
        holder = self.holder(task)
        if ways and holder is not None:
            self.do(holder.update(task, status=ways[choice % len(ways)]))

    @rule(name=NAMES, task=TASKS, key=st.sampled_from([None, None, "x"]))
    def assign_by_hand(self, name: str, task: int, key: str | None) -> None:
        self.do(self.crew.boss.update(task, status="assigned", assignee=name, exclusive=key))

    @rule(name=NAMES, task=TASKS, key=st.sampled_from([None, "x"]))
    def take_without_a_session(self, name: str, task: int, key: str | None) -> None:
        fields = {"status": "assigned", "exclusive": key}
        self.do(self.workers[name].bare.update(task, **fields))

    @rule(task=TASKS, status=STATUSES, is_nobody=st.booleans())
    def move_by_hand(self, task: int, status: str, *, is_nobody: bool) -> None:
        who = self.crew.person if is_nobody else self.crew.boss
        self.do(who.update(task, status=status))

    @rule(some=st.sets(TASKS, min_size=1), key=st.sampled_from(["x", "x", ""]), holds=st.booleans())
    def exclude(self, some: set[int], key: str, *, holds: bool) -> None:
        """An exclusion key comes or goes, during the work too."""
        for task in sorted(some):
            who = (self.holder(task) if holds else None) or self.crew.boss
            self.do(who.update(task, exclusive=key))

    @rule(name=NAMES, task=TASKS, blocker=TASKS)
    def give_and_think_again(self, name: str, task: int, blocker: int) -> None:
        """Something comes up that comes first, before the one it was given to has begun."""
        boss = self.crew.boss
        self.do(boss.update(task, status="accepted"))
        self.do(boss.update(task, status="assigned", assignee=name))
        self.do(boss.update(task, blocked_by=[blocker]))
        self.see_what_began()
        self.note(self.do(self.worker(name).claim(task)))

    @rule(name=NAMES, task=TASKS)
    def take_what_is_anothers(self, name: str, task: int) -> None:
        """Neither nobody nor an agent without its session gives back what is another's."""
        assert self.do(self.crew.person.release(task)) is None
        rows = self.crew.bed.rows("SELECT assignee FROM tasks WHERE number = ?", task)
        if rows != [(name,)]:
            assert self.do(self.crew.person.update(task, assignee=name)) is None
            assert self.do(self.workers[name].bare.release(task)) is None

    @rule(task=TASKS, blocker=TASKS, fence=FENCES)
    def edit(self, task: int, blocker: int, fence: str) -> None:
        fields = {"title": "edited", "blocked_by": [blocker], **self.fence(task, fence)}
        self.do(self.crew.boss.update(task, **fields))

    @rule(name=NAMES, task=TASKS, kind=st.sampled_from(["file", "branch", "pr"]), fence=FENCES)
    def attach(self, name: str, task: int, kind: str, fence: str) -> None:
        worker = self.workers[name]
        self.do(worker.attach(kind, f"{kind}-{task}", task=task, **self.fence(task, fence)))

    @precondition(lambda self: self.steps % 11 == 0)
    @rule(task=TASKS)
    def delete(self, task: int) -> None:
        self.do(self.crew.boss.delete(task))

    # ------------------------------------------------------------ leases

    @rule(name=NAMES, task=TASKS, ttl_ms=TTLS, key=KEYS, tired=SELDOM)
    def claim(
        self, *, name: str, task: int, ttl_ms: int | None, key: str | None, tired: bool
    ) -> None:
        worker = self.worker(name, tired=tired)
        self.note(self.do(worker.claim(task, ttl_ms=ttl_ms, op_id=key)))

    @rule(name=NAMES, ttl_ms=TTLS, key=KEYS)
    def take_next(self, name: str, ttl_ms: int | None, key: str | None) -> None:
        found = self.do(self.worker(name).take_next(ttl_ms=ttl_ms, op_id=key))
        self.note(None if found is None else found.lease)

    @rule(name=NAMES, task=TASKS, fence=FENCES, key=KEYS, stranger=SELDOM)
    def release(self, *, name: str, task: int, fence: str, key: str | None, stranger: bool) -> None:
        giver = None if stranger else self.holder(task)
        self.do((giver or self.workers[name]).release(task, **self.fence(task, fence), op_id=key))

    @rule(name=NAMES, task=TASKS, to=NAMES, fence=FENCES, ttl_ms=TTLS, key=KEYS)
    def handoff(
        self, *, name: str, task: int, to: str, fence: str, ttl_ms: int | None, key: str | None
    ) -> None:
        fields = {**self.fence(task, fence), "ttl_ms": ttl_ms, "op_id": key}
        giver = self.holder(task) or self.workers[name]
        self.worker(to)
        done = self.do(giver.handoff(task, to, **fields))
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
        holder = self.holder(task)
        if holder is not None:
            self.do(holder.update(task, status="in_review"))
        self.do(self.worker(name).review(task))

    @rule(name=NAMES, task=TASKS, status=st.sampled_from(["merged", "in_progress", "blocked"]))
    def judge(self, name: str, task: int, status: str) -> None:
        self.do(self.workers[name].update(task, status=status))

    @rule(to=NAMES, task=TASKS, hands_on=st.booleans())
    def a_former_owner_judges(self, to: str, task: int, *, hands_on: bool) -> None:
        """Who has a task begins it and passes it on; another puts it into review."""
        former = self.holder(task)
        if former is None or former.name == to:
            return
        self.do(former.update(task, status="in_progress"))
        if hands_on:
            self.do(former.handoff(task, to))
        else:
            self.do(former.release(task))
            self.note(self.do(self.worker(to).claim(task)))
        self.do(self.workers[to].update(task, status="in_review"))
        self.do(former.review(task))
        self.do(former.update(task, status="merged"))

    @rule(name=NAMES, task=TASKS)
    def end_review(self, name: str, task: int) -> None:
        self.do(self.workers[name].end_review(task))

    @precondition(lambda self: self.steps % 8 == 0)
    @rule(task=st.one_of(st.none(), TASKS))
    def lock(self, task: int | None) -> None:
        self.do(self.crew.boss.lock(task))

    @rule()
    def unlock_everything(self) -> None:
        for task in (None, 1, 2, 3, 4):
            self.do(self.crew.boss.unlock(task))

    @rule(name=NAMES, task=TASKS, status=st.sampled_from(["in_progress", "in_review", "cancelled"]))
    def too_many_turns(self, name: str, task: int, status: str) -> None:
        for _ in range(3):
            self.turn(name, task)
        holder = self.holder(task)
        if holder is not None:
            self.do(holder.update(task, status=status))

    @rule(name=NAMES, task=TASKS)
    def turn(self, name: str, task: int) -> None:
        """A turn is reported; one too many blocks the task."""
        bed, process = self.crew.bed, process_facts()
        started = bed.call(
            "invocation_start", object, agent_id=name, kind="turn", room=ROOM, task=task,
            process=process,
        )  # fmt: skip
        self.do(started)

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
    def owners_epochs_reviewers_and_seqs_agree(self) -> None:
        invariants.one_owner_at_most(self.crew)
        self.epochs = invariants.epochs_only_rise(self.crew, self.epochs)
        invariants.nobody_reviews_its_own_work(self.crew)
        invariants.no_rivals_are_at_work(self.crew)
        self.see_what_began()
        invariants.ev_p3_rows_carry_their_last_seq(self.crew)

    def see_what_began(self) -> None:
        self.begun = invariants.nothing_begins_behind_another(self.crew, self.begun)

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
