from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.hub import occupying
from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed, FakeClock, open_core
from tfx.core import copies, database
from tfx.errors import TfxError
from tfx.hub.models import AgentId, DefaultAction, HumanKind, Limits, Retention
from tfx.hub.occupancy_models import InvocationKind, Outcome
from tfx.hub.schema import registry
from tfx.hub.store import rebuild
from tfx.hub.store.tally import Tally
from tfx.hub.wire import admin, agents, humans, messages, views
from tfx.hub.wire.agents import ProcessFacts
from tfx.hub.wire.fields import empty_object

T = TypeVar("T")


NAMES = st.sampled_from(["ann", "bob", "cat"])


TOPICS = st.sampled_from(["news", "void"])


KEYS = st.sampled_from([None, "k1", "k2"])


PROCESSES = st.sampled_from(
    [
        occupying.me(),
        occupying.far(),
        msgspec.structs.replace(occupying.me(), boot_id="another-boot"),
    ]
)


KEEP = Retention(
    messages_ms=3_600_000, dead_letters_ms=7_200_000, human_requests_ms=3_600_000, agents_ms=600_000
)


def dumps(connection: database.Connection) -> dict[str, list[database.Row]]:
    return {table: list(rebuild.dump(connection, table)) for table in registry.PROJECTIONS}


class HubMachine(RuleBasedStateMachine):
    """Every operation in any order; the projections always equal a fold of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "hub.db"
        self.clock = FakeClock()
        self.lives = 0
        self.steps = 0
        self.known: list[str] = []
        self.asked: list[tuple[str, str, str]] = []
        self.holds: list[tuple[str, str]] = []
        self.terminals: list[tuple[str, str]] = []
        self.runs: list[str] = []
        self.generations: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        name = f"life-{self.lives}"

        async def start() -> Bed:
            core = open_core(
                self.path, self.clock, keep=KEEP, limits=Limits(max_attempts=2), instance=name
            )
            await core.upkeep.begin(name)
            return Bed(self.path, core, self.clock)

        self.bed = self.loop.run_until_complete(start())

    def do(self, step: Awaitable[T]) -> T | None:
        async def run() -> T | None:
            try:
                return await step
            except TfxError:
                return None

        return self.loop.run_until_complete(run())

    @rule(name=NAMES, topics=st.sets(TOPICS), key=KEYS)
    def register(self, name: str, topics: set[str], key: str | None) -> None:
        self.do(self.bed.register(name, *sorted(topics), op_id=key))

    @rule(name=NAMES)
    def deregister(self, name: str) -> None:
        request = agents.DeregisterRequest(agent_id=AgentId(name))
        self.do(self.bed.core.agents.deregister(NOBODY, request))

    @rule(
        sender=NAMES, to=NAMES, key=KEYS, deferred=st.booleans(), priority=st.integers(1, 9),
        ttl_ms=st.sampled_from([1_000, 300_000, 86_400_000]),
    )  # fmt: skip
    def publish(
        self, *, sender: str, to: str, key: str | None, deferred: bool, priority: int, ttl_ms: int
    ) -> None:
        sent = self.do(
            self.bed.publish(
                sender, to, op_id=key, deferred=deferred, priority=priority, ttl_ms=ttl_ms
            )
        )
        if sent is not None:
            self.known.append(sent.message_id)

    @rule(sender=NAMES, topic=TOPICS, deferred=st.booleans())
    def fan_out(self, *, sender: str, topic: str, deferred: bool) -> None:
        sent = self.do(self.bed.publish(sender, f"topic:{topic}", deferred=deferred))
        if sent is not None:
            self.known.append(sent.message_id)

    @rule(sender=NAMES, to=NAMES, key=KEYS)
    def ask(self, sender: str, to: str, key: str | None) -> None:
        ticket = self.do(self.bed.ask(sender, to, op_id=key))
        if ticket is not None:
            self.asked.append((sender, to, ticket.correlation_id))

    @rule(sender=NAMES, to=NAMES)
    def handoff(self, sender: str, to: str) -> None:
        request = messages.HandoffRequest(
            sender=AgentId(sender), to=AgentId(to), topic="work", task="do it"
        )
        sent = self.do(self.bed.core.asks.handoff(NOBODY, request))
        if sent is not None:
            self.asked.append((sender, to, sent.correlation_id))

    @rule(choice=st.integers(0, 1_000), accepted=st.booleans(), forged=st.booleans())
    def answer(self, *, choice: int, accepted: bool, forged: bool) -> None:
        if self.asked:
            sender, to, correlation = self.asked[choice % len(self.asked)]
            who = "eve" if forged else to
            payload = '{"accepted":true}' if accepted else '{"accepted":false}'
            self.do(self.bed.answer(who, sender, correlation, payload))

    @rule(name=NAMES, most=st.integers(1, 3), auto_ack=st.booleans(), key=KEYS)
    def poll(self, *, name: str, most: int, auto_ack: bool, key: str | None) -> None:
        self.do(self.bed.poll(name, most=most, auto_ack=auto_ack, op_id=key))

    @rule(name=NAMES, choice=st.integers(0, 1_000))
    def ack(self, name: str, choice: int) -> None:
        if self.known:
            self.do(self.bed.ack(name, self.known[choice % len(self.known)]))

    @rule(ms=st.sampled_from([500, 1_001, 60_001, 300_001, 3_600_001]))
    def time_passes(self, ms: int) -> None:
        self.do(self.bed.tick(ms))

    @rule(ms=st.sampled_from([-3_600_000, 32_400_000]))
    def the_clock_jumps(self, ms: int) -> None:
        self.clock.wall_ms += ms
        self.do(self.bed.core.upkeep.tick())

    @rule(choice=st.integers(0, 1_000), key=KEYS)
    def replay(self, choice: int, key: str | None) -> None:
        letters = self.do(self.bed.dead())
        if letters:
            letter = letters[choice % len(letters)]
            sent = self.do(self.bed.replay(letter.message_id, key))
            if sent is not None:
                self.known.append(sent.message_id)

    @rule(name=NAMES)
    def purge(self, name: str) -> None:
        request = views.DeadPurgeRequest(agent_id=AgentId(name))
        self.do(self.bed.core.dead.dead_purge(OPERATOR_CALLER, request))

    @rule(name=NAMES)
    def retire(self, name: str) -> None:
        request = agents.RetireRequest(agent_id=AgentId(name))
        self.do(self.bed.core.retiring.agents_retire(OPERATOR_CALLER, request))

    @rule(name=NAMES, default=st.sampled_from(list(DefaultAction)))
    def ask_a_person(self, name: str, default: DefaultAction) -> None:
        request = humans.HumanInputRequest(
            requester_agent=AgentId(name),
            kind=HumanKind.APPROVAL,
            prompt="May I?",
            requested_schema=empty_object(),
            deadline_ms=60_000,
            default_action=default,
        )
        self.do(self.bed.core.humans.request_human_input(NOBODY, request))

    @rule(name=NAMES, process=PROCESSES, guards=st.booleans(), force=st.booleans(), key=KEYS)
    def hold(
        self, *, name: str, process: ProcessFacts, guards: bool, force: bool, key: str | None
    ) -> None:
        message = self.known[-1] if guards and self.known else None
        held = self.do(
            occupying.hold(
                self.bed, name, process, ttl_ms=30_000, message=message, force=force, op_id=key
            )
        )
        if held is not None:
            self.holds.append((name, held.hold_id))

    @rule(choice=st.integers(0, 1_000), delivered=st.booleans(), beats=st.booleans())
    def release(self, *, choice: int, delivered: bool, beats: bool) -> None:
        if self.holds:
            name, hold_id = self.holds[choice % len(self.holds)]
            if beats:
                self.do(occupying.beat(self.bed, hold_id, name))
            else:
                self.do(occupying.release(self.bed, hold_id, name, delivered=delivered))

    @rule(name=NAMES, process=PROCESSES)
    def open_terminal(self, name: str, process: ProcessFacts) -> None:
        opened = self.do(occupying.open_terminal(self.bed, name, process, 30_000))
        if opened is not None:
            self.terminals.append((name, opened.terminal_id))

    @rule(choice=st.integers(0, 1_000))
    def close_terminal(self, choice: int) -> None:
        if self.terminals:
            name, terminal_id = self.terminals[choice % len(self.terminals)]
            self.do(occupying.close_terminal(self.bed, terminal_id, name))

    @rule(name=NAMES, process=PROCESSES, kind=st.sampled_from(list(InvocationKind)), key=KEYS)
    def start(
        self, *, name: str, process: ProcessFacts, kind: InvocationKind, key: str | None
    ) -> None:
        run = self.do(occupying.start(self.bed, name, process, kind=kind, ttl_ms=30_000, op_id=key))
        if run is not None:
            self.runs.append(run)

    @rule(choice=st.integers(0, 1_000), outcome=st.sampled_from(list(Outcome)))
    def finish(self, choice: int, outcome: Outcome) -> None:
        if self.runs:
            run = self.runs[choice % len(self.runs)]
            self.do(occupying.finish(self.bed, run, outcome))
            self.do(occupying.notify(self.bed, run))

    @rule(name=NAMES, force=st.booleans())
    def free(self, *, name: str, force: bool) -> None:
        self.do(occupying.free(self.bed, name, force=force))

    @rule()
    def probe(self) -> None:
        self.do(self.bed.core.occupancy.sweep())
        self.do(self.bed.core.running.probe())

    @rule()
    def forget(self) -> None:
        self.do(self.bed.core.upkeep.forget())

    @rule()
    def rebuild(self) -> None:
        self.do(self.bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest()))

    @rule(ordered=st.booleans())
    def restart(self, *, ordered: bool) -> None:
        async def stop() -> None:
            if ordered:
                await self.bed.core.upkeep.end()
            await self.bed.core.store.close()

        self.loop.run_until_complete(stop())
        self.begin()

    @invariant()
    def the_counts_in_memory_are_those_of_the_file(self) -> None:
        self.steps += 1
        if self.steps % 5 == 0:
            self.compare()

    def compare(self) -> None:
        request = admin.RebuildCheckRequest()
        result = self.do(self.bed.core.upkeep.rebuild_check(OPERATOR_CALLER, request))
        assert result is not None
        assert result.differences == ()
        assert result.equal
        connection = database.open_reader(self.path)
        try:
            self.seats_agree_with_what_runs(connection)
            assert Tally.load(connection) == self.bed.core.store.tally
        finally:
            connection.close()

    def seats_agree_with_what_runs(self, connection: database.Connection) -> None:
        """EV-B3, EV-P3: a seat of an invocation is one that runs; no generation ever goes back."""
        rows = connection.execute(
            "SELECT o.agent, o.generation, o.last_seq, o.invocation, i.state, i.holder, "
            "o.invocation_holder, i.agent FROM occupancy o "
            "LEFT JOIN invocations i ON i.id = o.invocation"
        )
        for agent, generation, last_seq, run, state, holder, same, owner in rows:
            assert int(generation) >= self.generations.get(str(agent), 0)
            assert int(generation) <= int(last_seq)
            self.generations[str(agent)] = int(generation)
            if run is not None:
                assert (state, holder, owner) == ("running", same, agent)

    def teardown(self) -> None:
        self.compare()
        self.loop.run_until_complete(self.bed.core.store.close())
        self.loop.close()
        refolds_to_itself(self.path)
        self.directory.cleanup()


def refolds_to_itself(path: Path) -> None:
    """Fold the log of a closed file again and compare every byte of every projection."""
    connection = database.open_writer(path)
    scratch = rebuild.new_scratch()
    try:
        assert copies.quick_check(connection) == []
        rows = connection.execute("SELECT seq, stream, at_ms, kind, actor, body FROM log")
        with database.Transaction(scratch):
            assert rebuild.fold_rows(scratch, iter(rows.fetchall())) == 0
        assert dumps(connection) == dumps(scratch)
    finally:
        connection.close()
        scratch.close()


TestRebuildEquivalence = HubMachine.TestCase


TestRebuildEquivalence.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    ("turns", "events"), [(50, 9_000), pytest.param(560, 100_000, marks=pytest.mark.faults)]
)
def test_ev_p2_a_log_of_a_hundred_thousand_events_refolds_byte_identical(
    play: Play, turns: int, events: int
) -> None:
    async def story(bed: Bed) -> None:
        for number in range(10):
            await bed.register(f"agent-{number}", "news")

        async def talk(number: int) -> None:
            for turn in range(turns):
                await bed.publish(f"agent-{number}", f"agent-{(number + 1) % 10}")
                await bed.publish(f"agent-{number}", "topic:news")
                polled = await bed.poll(f"agent-{number}", most=100)
                if turn % 3:
                    await bed.ack(f"agent-{number}", *(m.message_id for m in polled.messages))

        await asyncio.gather(*(talk(number) for number in range(10)))
        (row,) = bed.rows("SELECT count(*) FROM log")
        assert int(row[0] or 0) >= events
        connection = database.open_reader(bed.path)
        before = dumps(connection)
        await bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        assert dumps(connection) == before
        connection.close()
        result = await bed.core.upkeep.rebuild_check(OPERATOR_CALLER, admin.RebuildCheckRequest())
        assert result.equal

    play(story)
