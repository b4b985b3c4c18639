"""A run on a real hub: lease, prior context, result, trace; and nothing at all without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub.running import RunningHub, start
from tests.route.fakes import Bench, wait_until
from tfx.core.identity import identify
from tfx.hub.ancestry import facts_of


@pytest.fixture
def hub(bench: Bench) -> Iterator[RunningHub]:
    bench.install("codex")
    running = start(bench.home, bench.env)
    try:
        yield running
    finally:
        running.end()


def agents(hub: RunningHub) -> dict[str, Any]:
    return {agent["agent_id"]: agent for agent in hub.call("agents")["agents"]}


def test_r9_a_run_holds_a_lease_and_gives_it_back(bench: Bench, hub: RunningHub) -> None:
    bench.behave(': >"$FAKE_DIR/up"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done')
    job = bench.route("executor", "p", "--background", "--timeout", "100").out.strip()
    assert wait_until((bench.notes / "up").exists)
    agent = agents(hub)["executor.codex.cwd"]
    assert (agent["state"], agent["cli"]) == ("online", "codex")
    assert agent["workspace"] == str(bench.cwd)
    left_ms = agent["lease_expires_ms"] - time.time() * 1000
    assert 180_000 < left_ms <= 220_000
    (bench.notes / "go").touch()
    assert bench.tfx("jobs", "wait", job).code == 0
    assert wait_until(lambda: agents(hub)["executor.codex.cwd"]["state"] == "offline")


def test_r9_the_name_is_reused_and_two_at_once_have_two(bench: Bench, hub: RunningHub) -> None:
    for _ in range(3):
        assert bench.route("executor", "p").code == 0
    assert list(agents(hub)) == ["executor.codex.cwd"]
    bench.behave('while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done')
    jobs = []
    for number in (1, 2):
        jobs.append(bench.route("executor", "p", "--background").out.strip())
        assert wait_until(lambda wanted=number: online(hub) == wanted)
    assert set(agents(hub)) == {"executor.codex.cwd", "executor.codex.cwd.2"}
    (bench.notes / "go").touch()
    for job in jobs:
        assert bench.tfx("jobs", "wait", job).code == 0


def online(hub: RunningHub) -> int:
    return sum(agent["state"] == "online" for agent in agents(hub).values())


def test_k_27_the_agent_of_a_run_does_not_get_its_callers_name(
    bench: Bench, hub: RunningHub
) -> None:
    me = identify()
    assert me is not None
    boss = hub.call("attach", cli="x", workspace="/w", process=facts_of(me), agent_id="boss")
    bench.extra["TFX_AGENT_ID"] = "boss"
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "kid"}}
    (bench.notes / "lines").write_text(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}) + "\n"
    )
    bench.behave(
        f'echo "[${{TFX_AGENT_ID-unset}}]"; {sys.executable} -m tfx hub bridge <"$FAKE_DIR/lines"'
    )
    output = bench.json("executor", "p")["output"]
    assert output.startswith("[unset]\n{")
    assert set(agents(hub)) == {"boss", "executor.codex.cwd", "kid.cwd"}
    again = hub.call("attach", cli="x", workspace="/w", process=facts_of(me), find_only=True)
    assert again["lease_id"] == boss["lease_id"]


def test_r9_the_result_is_published_and_the_run_is_in_the_trace(
    bench: Bench, hub: RunningHub
) -> None:
    hub.register("boss", topics=("task.result",))
    bench.behave("printf 'é%.0s' $(seq 30000); echo 429 >&2; exit 3")
    job = bench.json("executor", "p")["job"]
    (message,) = hub.call("poll_messages", agent_id="boss", max_bytes=200_000)["messages"]
    payload = message["payload"]
    assert (payload["job"], payload["role"], payload["cli"]) == (job, "executor", "codex")
    assert (payload["status"], payload["exit_code"]) == ("failed", 3)
    assert payload["issues"] == ["rate-limit"]
    assert payload["output_length"] == 60_000
    assert payload["output_preview"] == "é" * 2048
    assert payload["output_full"] == "é" * 24 * 1024
    trace = bench.tfx("hub", "trace", job, "--json")
    assert trace.code == 0
    assert any(item["topic"] == "task.result" for item in trace.data["items"])


def test_r9_the_result_of_a_run_with_odd_bytes_is_published(bench: Bench, hub: RunningHub) -> None:
    hub.register("boss", topics=("task.result",))
    bench.behave(r"printf 'a\000b\377c'")
    assert bench.route("executor", "p").code == 0
    (message,) = hub.call("poll_messages", agent_id="boss")["messages"]
    assert message["payload"]["output_full"] == "a\ufffdb\ufffdc"


def test_r9_what_waits_on_the_context_topic_is_passed_on_once(
    bench: Bench, hub: RunningHub
) -> None:
    hub.register("ann")
    bench.route("executor", "first")
    for text in ("use tabs", "\u0441 unicode"):
        hub.call("publish", from_="ann", to="executor.codex.cwd", topic="task.context",
                 payload={"text": text})  # fmt: skip
    hub.call("publish", from_="ann", to="executor.codex.cwd", topic="other", payload={})
    data = bench.json("executor", "second")
    assert data["notices"] == ["2 messages of the hub were passed on as context"]
    given = bench.stdin("codex").decode()
    assert given.startswith("second\n\n--- prior context, written by other agents")
    assert '{"text":"use tabs"}' in given.replace(": ", ":")
    assert "--- from ann, " in given
    assert bench.json("executor", "third")["notices"] == []
    assert bench.stdin("codex") == b"third"
    assert agents(hub)["executor.codex.cwd"]["unread"] == 1


def test_r9_a_killed_hub_is_no_delay_and_no_noise(bench: Bench, hub: RunningHub) -> None:
    hub.kill()
    ran = bench.route("executor", "p", "--json")
    assert (ran.code, ran.err, ran.data["notices"]) == (0, "", [])


def test_r9_a_hub_that_stands_still_does_not_hold_a_run_up(bench: Bench, hub: RunningHub) -> None:
    bench.extra["TFX_ROUTE_HUB_ANSWER_S"] = "1"
    os.kill(hub.pid, signal.SIGSTOP)
    try:
        data = bench.json("executor", "p")
    finally:
        os.kill(hub.pid, signal.SIGCONT)
    assert (data["status"], data["notices"]) == ("success", [])


def test_r8_a_run_that_is_cancelled_while_the_hub_lets_it_wait_is_cancelled(
    bench: Bench, hub: RunningHub
) -> None:
    """Its record names the worker already; whether its agent has begun makes no difference."""
    bench.extra["TFX_ROUTE_HUB_ANSWER_S"] = "2"
    os.kill(hub.pid, signal.SIGSTOP)
    try:
        job = bench.route("executor", "p", "--background").out.strip()
        ran = bench.tfx("jobs", "cancel", job, "--json")
    finally:
        os.kill(hub.pid, signal.SIGCONT)
    assert (ran.code, ran.data["status"]) == (0, "cancelled"), ran.out
    assert bench.all_gone()
    assert not list(bench.jobs.glob("*/prompt"))


def test_r9_a_hub_that_goes_away_during_a_run_does_not_harm_it(
    bench: Bench, hub: RunningHub
) -> None:
    bench.behave(': >"$FAKE_DIR/up"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done')
    with bench.start("route", "executor", "p", "--json") as process:
        assert wait_until((bench.notes / "up").exists)
        hub.kill()
        (bench.notes / "go").touch()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["data"]["status"] == "success"


def test_r9_a_wrong_token_is_a_notice_and_not_a_failure(bench: Bench, hub: RunningHub) -> None:
    del hub
    bench.extra["TFX_HUB_TOKEN"] = "wrong" * 8
    data = bench.json("executor", "p")
    assert data["status"] == "success"
    assert len(data["notices"]) == 1
    assert "the hub was not told" in data["notices"][0]
    assert "wrong" not in data["notices"][0]


def test_r9_without_a_hub_nothing_of_it_is_imported(bench: Bench) -> None:
    bench.install("codex")
    probe = (
        "import sys, atexit; sys.argv = ['tfx', 'route', 'executor', 'p'];"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "from tfx.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], env=bench.env, capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert not loaded & {"tfx.hub.client", "msgspec", "httpx", "asyncio", "apsw", "psutil", "rich"}


def test_ev_i1_a_run_reports_itself_with_role_and_cli_and_never_its_prompt(
    bench: Bench, hub: RunningHub
) -> None:
    bench.behave(': >"$FAKE_DIR/up"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done; exit 3')
    with bench.start("route", "executor", "canary-prompt", "--json") as process:
        assert wait_until((bench.notes / "up").exists)
        (run,) = hub.call("invocations")["invocations"]
        assert (run["kind"], run["state"], run["title"]) == (
            "turn",
            "running",
            "route executor by codex",
        )
        assert (run["pid"], run["liveness"]) == (process.pid, "alive")
        assert hub.call("busy", agent_id=run["agent_id"])["busy"] is False  # a turn holds nobody
        (bench.notes / "go").touch()
        out, _ = process.communicate(timeout=60)
    job = json.loads(out)["data"]["job"]
    (run,) = hub.call("invocations")["invocations"]
    assert (run["state"], run["outcome"], run["summary"]) == (
        "finished",
        "failed",
        "failed, exit 3",
    )
    assert run["trace_id"] == job
    trace = bench.tfx("hub", "trace", job, "--json").data["items"]
    assert [item["kind"] for item in trace][:2] == ["invocation_started", "invocation_finished"]
    assert "canary-prompt" not in json.dumps(hub.call("events", limit=500))


def test_ev_i1_a_killed_run_is_lost_by_the_probe(bench: Bench, hub: RunningHub) -> None:
    bench.behave(': >"$FAKE_DIR/up"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done')
    with bench.start("route", "executor", "p", "--json") as process:
        assert wait_until((bench.notes / "up").exists)
        process.kill()
        process.communicate(timeout=60)
    (bench.notes / "go").touch()
    hub.call("invocations_probe")
    (run,) = hub.call("invocations")["invocations"]
    assert (run["state"], run["evidence"]) == ("lost", "pid-gone")


def test_r9_a_hub_that_stands_still_at_the_end_is_asked_once(bench: Bench, hub: RunningHub) -> None:
    bench.extra["TFX_ROUTE_HUB_ANSWER_S"] = "5"
    bench.behave(': >"$FAKE_DIR/up"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done')
    with bench.start("route", "executor", "p", "--json") as process:
        assert wait_until((bench.notes / "up").exists)
        os.kill(hub.pid, signal.SIGSTOP)
        try:
            (bench.notes / "go").touch()
            out, err = process.communicate(timeout=60)
        finally:
            os.kill(hub.pid, signal.SIGCONT)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["data"]["status"] == "success"


def turns(hub: RunningHub, room: str, task: int) -> list[Any]:
    found: list[Any] = hub.call("invocations", room=room, task=task)["invocations"]
    return found


def test_wk_k8_runs_for_a_task_are_turns_of_it_until_a_person_has_to_decide(
    bench: Bench, hub: RunningHub
) -> None:
    bench.write(".config/tfx/config.toml", "[hub]\nturns = 2\n")
    hub.end()
    limited = hub.again()
    repository = bench.cwd / ".git"
    repository.mkdir()
    (bench.cwd / "deep").mkdir()
    room = str(bench.cwd)
    task = limited.call("work_add", room=room, title="x", accept=True)["task"]["task"]
    me = identify()
    assert me is not None
    mine = limited.call("attach", cli="x", workspace=room, process=facts_of(me), agent_id="ann")
    who = {"room": room, "agent_id": "ann", "session": mine["lease_id"]}
    lease = limited.call("work_claim", task=task, **who)["lease"]
    first = bench.json("executor", "p", "--task", str(task), "--cwd", str(bench.cwd / "deep"))
    assert (first["task"], first["notices"]) == (task, [])
    assert limited.call("work_show", room=room, task=task)["task"]["status"] == "assigned"
    assert f"task: {task}\n" in bench.route("executor", "p", "--task", str(task)).out
    shown = limited.call("work_show", room=room, task=task)
    assert shown["task"]["status"] == "blocked"
    assert shown["task"]["note"].startswith("policy: 2 turns")
    assert shown["task"]["lease"]["lease_id"] == lease["lease_id"]
    assert [(run["kind"], run["outcome"], run["task"]) for run in turns(limited, room, task)] == [
        ("turn", "ok", task)
    ] * 2
    limited.end()


def test_wk_k8_a_task_that_is_not_there_is_a_notice_and_the_run_is_reported(
    bench: Bench, hub: RunningHub
) -> None:
    data = bench.json("executor", "p", "--task", "99")
    assert data["status"] == "success"
    (notice,) = data["notices"]
    assert notice.startswith("the run counts as no turn: there is no task 99 in ")
    (run,) = hub.call("invocations")["invocations"]
    assert (run["task"], run["trace_id"]) == (None, data["job"])


def test_wk_k8_without_a_hub_a_task_changes_nothing(bench: Bench, hub: RunningHub) -> None:
    hub.kill()
    ran = bench.route("executor", "p", "--task", "1", "--json")
    assert (ran.code, ran.err, ran.data["notices"]) == (0, "", [])
    assert bench.route("executor", "p", "--task", "0").code == 2


def test_r8_a_run_in_the_background_is_a_turn_of_its_task_too(
    bench: Bench, hub: RunningHub
) -> None:
    room = str(bench.cwd)
    task = hub.call("work_add", room=room, title="x")["task"]["task"]
    job = bench.route("executor", "p", "--task", str(task), "--background").out.strip()
    assert bench.tfx("jobs", "wait", job).code == 0
    (run,) = turns(hub, room, task)
    assert run["trace_id"] == job
    assert bench.tfx("jobs", "show", job, "--json").data["task"] == task
