"""A name is its process's while that lives: no other registers by it (H-61, K-27)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.hub.conftest import Play
from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed
from tests.hub.occupying import ended, facts, far, me, refusal
from tests.hub.work.crew import ROOM
from tfx.core.identity import ProcessIdentity, identify
from tfx.hub.ancestry import is_one_agent
from tfx.hub.models import AgentId, Caller, LeaseId
from tfx.hub.wire import agents, leases, work
from tfx.hub.wire.agents import ProcessFacts

CHILD = "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); "
TWO = "q = subprocess.Popen(['sleep', '600']); print(q.pid, flush=True); sys.stdin.read(); "
BOTH_END = "p.kill(); q.kill()"


class Tree:
    """A process called as an agent CLI, or as nobody, and two processes below it."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.process = stack.enter_context(
            subprocess.Popen(
                [name, "-c", CHILD + TWO + BOTH_END],
                executable=sys.executable,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        assert self.process.stdout is not None
        self.first, self.second = (known(int(self.process.stdout.readline())) for _ in range(2))
        self.top = known(self.process.pid)
        stack.callback(self.end)

    def end(self) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait(20)


def known(pid: int) -> ProcessIdentity:
    found = identify(pid)
    assert found is not None
    return found


@pytest.fixture
def trees() -> Iterator[Callable[[str], Tree]]:
    with ExitStack() as stack:
        yield lambda name: Tree(name, stack)


async def register(
    bed: Bed,
    process: ProcessFacts | None,
    *,
    caller: Caller = NOBODY,
    name: str = "ann",
    workspace: str | None = ROOM,
) -> str:
    request = agents.RegisterRequest(
        agent_id=AgentId(name),
        cli="claude",
        capabilities=("code",),
        topics=(),
        heartbeat_ttl_ms=600_000,
        workspace=workspace,
        process=process,
    )
    return (await bed.core.agents.register(caller, request)).lease_id


async def session_of(bed: Bed, name: str = "ann") -> str:
    return (await bed.call("heartbeat", agents.HeartbeatResult, agent_id=name)).lease_id


async def pid_of(bed: Bed) -> int | None:
    return (await bed.call("agents", agents.AgentsResult)).agents[0].pid


def test_h_61_another_live_process_does_not_take_a_name_nor_its_work(
    play: Play, trees: Callable[[str], Tree]
) -> None:
    one, two = trees("claude"), trees("claude")

    async def story(bed: Bed) -> None:
        first = await register(bed, facts(one.top))
        who: dict[str, Any] = {"agent_id": "ann", "session": first}
        await bed.call("work_add", work.TaskResult, **who, title="x", accept=True)
        await bed.call("work_claim", leases.LeaseResult, **who, task=1)
        for other in (facts(two.top), facts(two.first), me(), far(), None):
            for where in (ROOM, "/elsewhere", None):
                taken = await refusal(register(bed, other, workspace=where))
                assert taken.reason == "name-taken"
                assert taken.details["pid"] == one.top.pid
                assert "TFX_AGENT_ID" in str(taken.hint)
        assert await session_of(bed) == first
        assert bed.rows("SELECT status FROM work_leases") == [("active",)]

    play(story)


def test_h_61_the_person_may_take_a_name_from_a_live_process(
    play: Play, trees: Callable[[str], Tree]
) -> None:
    one = trees("claude")

    async def story(bed: Bed) -> None:
        first = await register(bed, facts(one.top))
        second = await register(bed, None, caller=OPERATOR_CALLER)
        assert await session_of(bed) == second != first

    play(story)


@pytest.mark.parametrize("holder", [ended, far, lambda: None])
def test_h_61_who_is_not_proven_to_live_is_followed_by_the_next(
    play: Play, holder: Callable[[], ProcessFacts | None]
) -> None:
    async def story(bed: Bed) -> None:
        first = await register(bed, holder())
        second = await register(bed, me())
        assert await session_of(bed) == second != first

    play(story)


def test_h_61_a_name_is_free_as_soon_as_its_process_has_ended(
    play: Play, trees: Callable[[str], Tree]
) -> None:
    one, two = trees("claude"), trees("claude")

    async def story(bed: Bed) -> None:
        await register(bed, facts(one.top))
        await refusal(register(bed, facts(two.top)))
        one.end()
        second = await register(bed, facts(two.top))
        assert await session_of(bed) == second

    play(story)


@pytest.mark.parametrize("cli", ["claude", "no-cli-of-ours"])
def test_k_27_the_process_its_tools_and_its_bridge_go_on_in_the_session(
    play: Play, trees: Callable[[str], Tree], cli: str
) -> None:
    one = trees(cli)

    async def story(bed: Bed) -> None:
        first = await register(bed, facts(one.top))
        bridge = Caller(agent=AgentId("ann"), session=LeaseId(first))
        assert await register(bed, facts(one.top)) == first
        assert await register(bed, facts(one.first)) == first
        assert await pid_of(bed) == one.top.pid  # the session ends with the agent, not its tool
        assert await register(bed, None, caller=bridge) == first
        assert await pid_of(bed) == one.top.pid

    play(story)


def test_k_27_a_new_bridge_goes_on_while_the_old_one_still_dies(
    play: Play, trees: Callable[[str], Tree]
) -> None:
    one = trees("claude")

    async def story(bed: Bed) -> None:
        first = await register(bed, facts(one.first))
        assert await register(bed, facts(one.second)) == first
        assert await pid_of(bed) == one.second.pid
        assert await register(bed, facts(one.top)) == first
        assert await pid_of(bed) == one.top.pid

    play(story)


def test_k_27_a_bridge_that_attached_by_another_name_speaks_for_the_same_process(
    play: Play, trees: Callable[[str], Tree]
) -> None:
    one, two = trees("claude"), trees("claude")

    async def story(bed: Bed) -> None:
        first = await register(bed, facts(one.top))
        own = await register(bed, facts(one.top), name="cat")
        strange = await register(bed, facts(two.top), name="dan")
        ours = Caller(agent=AgentId("cat"), session=LeaseId(own))
        theirs = Caller(agent=AgentId("dan"), session=LeaseId(strange))
        assert await register(bed, None, caller=ours) == first
        assert (await refusal(register(bed, None, caller=theirs))).reason == "name-taken"

    play(story)


def test_k_27_a_cli_that_another_one_started_is_another_agent(
    trees: Callable[[str], Tree],
) -> None:
    one, two = trees("claude"), trees("codex")
    assert is_one_agent(one.top, one.first)
    assert is_one_agent(one.first, one.second)
    assert not is_one_agent(one.top, two.top)
    assert not is_one_agent(one.first, two.first)
    assert not is_one_agent(known(os.getpid()), one.top)  # it is above it all the same
