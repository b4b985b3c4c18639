"""A hub without transports for tests: real files and threads, only the clock is ours."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from tests.hub.waiting import LIMIT_S, until_in_loop
from tfx.core import database
from tfx.hub.core import HubCore
from tfx.hub.models import (
    AgentId,
    Caller,
    CorrelationId,
    Durability,
    Limits,
    MessageId,
    OpId,
    Retention,
    RunFacts,
    Topic,
)
from tfx.hub.operations import OPERATIONS
from tfx.hub.store.store import Store
from tfx.hub.store.tx import Tx
from tfx.hub.wire import admin, agents, messages, views

T = TypeVar("T")

NOBODY = Caller()
OPERATOR_CALLER = Caller(operator=True)
START_MS = 1_760_000_000_000


class FakeClock:
    """A clock that tests move: wall and monotonic apart when they want."""

    def __init__(self) -> None:
        self.wall_ms = START_MS
        self.mono_ms = 1_000

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.mono_ms

    def pass_ms(self, ms: int) -> None:
        self.wall_ms += ms
        self.mono_ms += ms

    def sleep_ms(self, ms: int) -> None:
        """The machine sleeps: on Linux the monotonic clock stands still."""
        self.wall_ms += ms


FACTS = RunFacts(
    instance="instance-1",
    version="0.0.0",
    pid=1,
    host="127.0.0.1",
    port=1,
    url="http://127.0.0.1:1",
    started_at_ms=START_MS,
    database="hub.db",
    log="hub.log",
)


def open_core(
    path: Path,
    clock: FakeClock,
    *,
    limits: Limits | None = None,
    keep: Retention | None = None,
    durability: Durability = Durability.NORMAL,
    vfs: str | None = None,
    instance: str = "instance-1",
) -> HubCore:
    facts = msgspec.convert({**_facts(), "instance": instance}, RunFacts)
    store = Store.open(path, durability=durability, clock=clock, vfs=vfs)
    core = HubCore(store, facts, limits or Limits(), keep or Retention(), facts.version)
    # the chores of every few real seconds are the test's to call, however slow the machine is
    core.upkeep._fallback_at = core.upkeep._forget_at = math.inf
    return core


def _facts() -> dict[str, object]:
    return {name: getattr(FACTS, name) for name in RunFacts.__slots__}


class Bed:
    """One hub on a fake clock, and short names for what tests do."""

    def __init__(self, path: Path, core: HubCore, clock: FakeClock) -> None:
        self.path = path
        self.core = core
        self.clock = clock

    async def tick(self, ms: int = 0) -> None:
        """Let time pass and do what is due."""
        self.clock.pass_ms(ms)
        await self.core.upkeep.tick()

    async def call(
        self, name: str, response: type[T], *, caller: Caller = NOBODY, **fields: object
    ) -> T:
        """Call an operation of the table with named fields, as the wire would check them."""
        request = msgspec.convert(fields, OPERATIONS[name].request)
        answer = await self.core.handlers[name](caller, request)
        assert isinstance(answer, response)
        return answer

    @asynccontextmanager
    async def writer_held(self) -> AsyncIterator[None]:
        """Hold the writer inside: what is asked for meanwhile is read now and written later."""
        inside, gate = threading.Event(), threading.Event()

        def hold(_tx: Tx) -> None:
            inside.set()
            gate.wait(LIMIT_S)

        self.core.store.queue(hold)
        await until_in_loop(inside.is_set)
        try:
            yield
        finally:
            gate.set()

    async def refolds(self) -> bool:
        """Say whether the projections equal a fold of the log."""
        request = admin.RebuildCheckRequest()
        found = await self.core.upkeep.rebuild_check(OPERATOR_CALLER, request)
        assert found.differences == ()
        return found.equal

    async def register(
        self, name: str, *topics: str, op_id: str | None = None, ttl_ms: int = 7_200_000
    ) -> agents.RegisterResult:
        return await self.core.agents.register(
            NOBODY,
            agents.RegisterRequest(
                agent_id=AgentId(name),
                cli="claude",
                capabilities=("code",),
                topics=topics,
                heartbeat_ttl_ms=ttl_ms,
                op_id=_op(op_id),
            ),
        )

    async def publish(
        self,
        sender: str,
        to: str,
        payload: str = '{"a":1}',
        *,
        topic: str = "news",
        op_id: str | None = None,
        priority: int = 5,
        ttl_ms: int = 300_000,
        deferred: bool = False,
        correlation_id: str | None = None,
        trace_id: str | None = None,
    ) -> messages.PublishResult:
        return await self.core.bus.publish(
            NOBODY,
            messages.PublishRequest(
                sender=AgentId(sender),
                to=to,
                topic=topic,
                payload=msgspec.Raw(payload.encode()),
                op_id=_op(op_id),
                priority=priority,
                ttl_ms=ttl_ms,
                deferred=deferred,
                correlation_id=correlation_id,
                trace_id=trace_id,
            ),
        )

    async def ask(
        self,
        sender: str,
        to: str,
        question: str = "why?",
        *,
        wait_ms: int = 0,
        op_id: str | None = None,
        ttl_ms: int = 300_000,
        correlation_id: str | None = None,
        trace_id: str | None = None,
    ) -> messages.AskResult:
        return await self.core.asks.ask(
            NOBODY,
            messages.AskRequest(
                sender=AgentId(sender),
                to=AgentId(to),
                topic="questions",
                question=question,
                await_response_ms=wait_ms,
                op_id=_op(op_id),
                ttl_ms=ttl_ms,
                correlation_id=correlation_id,
                trace_id=trace_id,
            ),
        )

    async def answer(
        self,
        sender: str,
        to: str,
        correlation_id: CorrelationId | str,
        payload: str = '{"because":1}',
        *,
        op_id: str | None = None,
    ) -> messages.PublishResult:
        return await self.publish(
            sender, to, payload, topic="answers", correlation_id=correlation_id, op_id=op_id
        )

    async def poll(
        self,
        agent: str,
        *,
        wait_ms: int = 0,
        most: int = 20,
        acks: tuple[str, ...] = (),
        auto_ack: bool = False,
        topics: tuple[str, ...] = (),
        op_id: str | None = None,
        max_bytes: int = 16_384,
    ) -> messages.PollResult:
        return await self.core.inbox.poll_messages(
            NOBODY,
            messages.PollRequest(
                agent_id=AgentId(agent),
                wait_ms=wait_ms,
                max_messages=most,
                ack_ids=acks,
                auto_ack=auto_ack,
                include_topics=topics,
                op_id=_op(op_id),
                max_bytes=max_bytes,
            ),
        )

    async def ack(self, agent: str, *ids: str) -> messages.AckResult:
        return await self.core.inbox.ack(
            NOBODY, messages.AckRequest(agent_id=AgentId(agent), message_ids=ids)
        )

    async def dead(self, agent: str | None = None) -> tuple[views.DeadLetter, ...]:
        name = None if agent is None else AgentId(agent)
        page = await self.core.dead.dead_letters(NOBODY, views.DeadLettersRequest(agent_id=name))
        return page.dead_letters

    async def replay(self, message_id: str, op_id: str | None = None) -> views.DeadReplayResult:
        return await self.core.dead.dead_replay(
            NOBODY, views.DeadReplayRequest(message_id=message_id, op_id=_op(op_id))
        )

    def rows(self, sql: str, *values: int | str) -> list[database.Row]:
        """Look at the file beside the hub."""
        connection = database.open_reader(self.path)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def kinds(self) -> list[str]:
        """The kinds of all events in log order."""
        return [str(row[0]) for row in self.rows("SELECT kind FROM log ORDER BY seq")]


def _op(text: str | None) -> OpId | None:
    return None if text is None else OpId(text)


def with_bed(
    path: Path,
    story: Callable[[Bed], Awaitable[T]],
    *,
    limits: Limits | None = None,
    keep: Retention | None = None,
    clock: FakeClock | None = None,
    durability: Durability = Durability.NORMAL,
    instance: str = "instance-1",
) -> T:
    """Run a story against a hub on a fresh event loop; every chore is called by the story."""

    async def play() -> T:
        ours = clock or FakeClock()
        core = open_core(
            path, ours, limits=limits, keep=keep, durability=durability, instance=instance
        )
        try:
            await core.upkeep.begin(instance)
            return await story(Bed(path, core, ours))
        finally:
            await core.store.close()

    return asyncio.run(play())


__all__ = ["Bed", "FakeClock", "MessageId", "Topic", "open_core", "with_bed"]
