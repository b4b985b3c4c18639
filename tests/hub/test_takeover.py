"""Holders that are real processes: races, stopped and killed ones, a pid that comes again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.driver import Bed, with_bed
from tests.hub.occupying import delivery, facts, hold
from tests.hub.running import RunningHub
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core.identity import Liveness, Proof, examine, identify
from tfx.hub.occupancy_models import Evidence

ROOT = Path(__file__).resolve().parents[2]
ENDS = {"receiver_released", "receiver_taken_over"}
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


class Contender:
    """One process that wants to hold `bob`."""

    def __init__(self, hub: RunningHub) -> None:
        argv = [sys.executable, "-m", "tests.hub.contender", hub.url, hub.token]
        self.process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.heard() == "ready"

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def heard(self) -> Any:  # noqa: ANN401  (JSON of the hub under test)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, line: str) -> Any:  # noqa: ANN401
        self.say(line)
        return self.heard()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait(60)


@contextlib.contextmanager
def contenders(hub: RunningHub, number: int) -> Iterator[list[Contender]]:
    made: list[Contender] = []
    try:
        made.extend(Contender(hub) for _ in range(number))
        yield made
    finally:
        for each in made:
            each.kill()


def test_ev_b1_of_sixteen_processes_one_wins_and_after_its_death_one_more(hub: RunningHub) -> None:
    hub.register("bob")
    with contenders(hub, 16) as all_of_them:
        for each in all_of_them:
            each.say("hold")
        answers = [each.heard() for each in all_of_them]
        (winner,) = [n for n, said in enumerate(answers) if isinstance(said, dict)]
        assert set(answers[:winner] + answers[winner + 1 :]) == {"receiver-busy"}
        all_of_them.pop(winner).kill()
        for each in all_of_them:
            each.say("hold")
        second = [each.heard() for each in all_of_them]
        (successor,) = [said for said in second if isinstance(said, dict)]
        # taken over by the successor itself, unless the hub's own look was there before
        events = hub.call("events", limit=500)["events"]
        (end,) = (each for each in events if each["kind"] in ENDS)
        evicted = end["body"]["evicted"]
        assert (evicted["id"], evicted["evidence"]) == (answers[winner]["hold_id"], "pid-gone")
        told = successor["taken_over"]
        assert (told is None) == (end["kind"] == "receiver_released")
        if told is not None:
            assert (told["seat_id"], told["evidence"]) == (evicted["id"], "pid-gone")
        assert successor["generation"] > answers[winner]["generation"]
        assert [said for said in second if said != successor] == ["receiver-busy"] * 14


def test_ev_b7_a_stopped_holder_that_wakes_after_a_takeover_is_refused_everything(
    hub: RunningHub,
) -> None:
    hub.register("ann", "bob")
    ask = {"from": "ann", "to": "bob", "topic": "q", "question": "why?", "await_response_ms": 0}
    asked = hub.post("/v1/ask", ask).data
    message = asked["request_message_id"]
    with contenders(hub, 2) as (old, new):
        assert old.ask(f"hold {message}")["attempt"] == 1
        old.process.send_signal(signal.SIGSTOP)
        # stopped is alive: nobody takes over by proof, only a person by force
        assert new.ask(f"hold {message}") == "receiver-busy"
        seen = hub.call("busy", agent_id="bob")["generation"]
        wish = {"agent_id": "bob", "force": True, "generation": seen}
        (evicted,) = hub.call("agents_free", operator=True, **wish)["evicted"]
        assert evicted["evidence"] == "force"
        held = new.ask(f"hold {message}")
        assert (held["attempt"], held["taken_over"]) == (2, None)
        assert isinstance(new.ask(f"answer {asked['correlation_id']}"), dict)
        old.process.send_signal(signal.SIGCONT)
        assert [old.ask(word) for word in ("beat", "deliver", "release")] == ["lease-lost"] * 3
        assert old.ask(f"answer {asked['correlation_id']}") == "already-answered"
        assert new.ask("deliver")["released"] is True
    events = hub.call("events", limit=500)["events"]
    assert sum(each["kind"] == "reply_posted" for each in events) == 1


def test_ev_b11_the_hub_itself_brings_a_killed_holders_message_back(hub: RunningHub) -> None:
    hub.register("ann", "bob")
    sent = hub.call("publish", from_="ann", to="bob", topic="x", payload={})
    with contenders(hub, 1) as (only,):
        assert only.ask(f"hold {sent['message_id']}")["attempt"] == 1
        only.kill()
        (message,) = hub.call("poll_messages", agent_id="bob", wait_ms=45_000)["messages"]
    assert (message["message_id"], message["attempt"]) == (sent["message_id"], 2)
    assert hub.call("busy", agent_id="bob")["seats"] == []


def test_ev_b4_ev_t9_a_pid_that_comes_again_is_another_process(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        recorded = identify(child.pid)
        assert recorded is not None
        assert examine(recorded).liveness is Liveness.ALIVE
        child.kill()
    time.sleep(0.02)  # a start time counts in hundredths of a second
    with _reborn(recorded.pid) as again:
        assert again.pid == recorded.pid
        finding = examine(recorded)
        assert (finding.liveness, finding.proof) == (Liveness.DEAD, Proof.TOKEN_DIFFERS)

        async def story(bed: Bed) -> None:
            await bed.register("bob")
            await hold(bed, process=facts(recorded))
            new = await hold(bed)
            assert new.taken_over is not None
            assert new.taken_over.evidence is Evidence.TOKEN_DIFFERS

        with_bed(tmp_path / "hub.db", story)


@contextlib.contextmanager
def _reborn(pid: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with exactly this pid (K-44)."""
    if not os.access(LAST_PID, os.W_OK):
        pytest.skip("needs the right to write ns_last_pid")
    for _ in range(200):
        try:
            LAST_PID.write_text(str(pid - 1), "ascii")
        except OSError as error:
            pytest.skip(f"ns_last_pid cannot be written: {error.strerror}")
        with subprocess.Popen(["sleep", "600"]) as child:
            try:
                if child.pid == pid:
                    yield child
                    return
            finally:
                child.kill()
    pytest.skip(f"another process took pid {pid} each time")


CUT = """
import asyncio, os, pathlib, signal, sys
sys.path.insert(0, sys.argv[3])
from tests.hub import occupying as o
from tests.hub.driver import Bed, FakeClock, open_core
from tfx.hub.occupancy_models import InvocationKind

path, step, at = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[4])

def armed(core):
    left = [at]
    def count(_cursor, _sql, _values):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True
    core.store.writer._connection.exec_trace = count

async def story():
    clock = FakeClock()
    core = open_core(path, clock)
    bed = Bed(path, core, clock)
    await bed.register("bob")
    sent = await bed.publish("ann", "bob", ttl_ms=86_400_000)
    first = None
    if step == "takeover":
        await o.hold(bed, process=o.ended(), message=sent.message_id)
    if step == "release":
        first = await o.hold(bed, message=sent.message_id)
    if step == "finish":
        first = await o.start(bed, kind=InvocationKind.TERMINAL)
    armed(core)
    if step in {"hold", "takeover"}:
        await o.hold(bed, message=sent.message_id)
    elif step == "release":
        await o.release(bed, first.hold_id)
    elif step == "start":
        await o.start(bed, kind=InvocationKind.TERMINAL)
    else:
        await o.finish(bed, first)
    core.store.writer._connection.exec_trace = None
    os.kill(os.getpid(), signal.SIGKILL)  # after the answer, before anything else

asyncio.run(story())
"""


def _killed_at(path: Path, step: str, at: int) -> None:
    argv = [sys.executable, "-c", CUT, str(path), step, str(ROOT), str(at)]
    done = subprocess.run(argv, check=False, capture_output=True, timeout=150)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize("step", ["hold", "takeover", "release", "start", "finish"])
@pytest.mark.timeout(300)
def test_ev_b11_ev_b3_killed_at_any_statement_nothing_is_half_done(
    tmp_path: Path, step: str
) -> None:
    before = {"hold": 0, "takeover": 1, "release": 1, "start": 0, "finish": 0}[step]
    after = {"hold": 1, "takeover": 2, "release": 1, "start": 0, "finish": 0}[step]
    seen: set[str] = set()
    at = 0
    while "whole" not in seen:
        path = tmp_path / f"{at}" / "hub.db"
        path.parent.mkdir()
        _killed_at(path, step, at)

        async def story(bed: Bed) -> None:
            ((message,),) = bed.rows("SELECT id FROM messages")
            kinds = bed.kinds()
            done = {
                "hold": "receiver_held",
                "takeover": "receiver_taken_over",
                "release": "receiver_released",
                "start": "agent_busy",
                "finish": "agent_idle",
            }[step] in kinds
            seen.add("whole" if done else "nothing")
            agrees = bed.rows(
                "SELECT count(*) FROM invocations i LEFT JOIN occupancy o ON o.invocation = i.id "
                "WHERE (i.state = 'running') <> (o.agent IS NOT NULL)"
            )
            assert agrees == [(0,)]
            await bed.core.occupancy.sweep()
            await bed.core.running.probe()
            state, attempts, _ = await delivery(bed, str(message))
            assert (state, attempts) == ("queued", after if done else before)
            assert bed.rows("SELECT count(*) FROM occupancy WHERE hold IS NOT NULL") == [(0,)]
            assert bed.rows("SELECT count(*) FROM invocations WHERE state = 'running'") == [(0,)]

        with_bed(path, story, instance=f"after-{at}")
        refolds_to_itself(path)
        at += 1
    assert seen == {"nothing", "whole"}
    assert at > 5
