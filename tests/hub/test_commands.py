"""`tfx hub <operation>` for people and scripts (H-6, H-70, H-71, H-120, K-31)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, cli
from tests.hub.waiting import until
from tests.support import bare_env, tfx
from tfx.core.identity import identify
from tfx.hub.ancestry import facts_of
from tfx.hub.operations import OPERATIONS
from tfx.hub.operations_work import WORK_ROWS

# what the command line offers under another name, or does not offer by design
ELSEWHERE = {
    "register": "agents register themselves; the bridge and the hooks attach",
    "attach": "bridge, hook, status line and route",
    "heartbeat": "every call is one",
    "deregister": "route at its end; a bridge's client may live on",
    "handoff": "agents",
    "read_message": "agents; people see whole messages in a trace",
    "request_human_input": "agents",
    "human_requests": "tfx hub human list",
    "submit_human_input": "tfx hub human answer",
    "withdraw_human_input": "tfx hub human withdraw",
    "poll_messages": "tfx hub poll",
    "rebuild_check": "tfx hub rebuild --check",
    "dead_letters": "tfx hub dead list",
    "shutdown": "tfx hub stop",
    "snapshot": "tfx backup create",
    "notices": "hooks",
    **dict.fromkeys(
        (
            *("receiver_hold", "receiver_beat", "receiver_release"),
            *("terminal_open", "terminal_beat", "terminal_close"),
            *("invocation_start", "invocation_beat", "invocation_finish", "invocation_notify"),
        ),
        "programs that deliver turns, the bridge and route: the holder is their process",
    ),
    **{row.name: "tfx task and tfx lease: tests/cli/work/test_help.py" for row in WORK_ROWS},
}


def test_h_120_k_31_a_first_message_takes_two_commands(home: Path) -> None:
    env = bare_env(home)
    try:
        assert tfx(home, "hub", "start", "--port", "0", env=env).code == 0
        sent = tfx(home, "hub", "publish", "--to", "somebody", "--deferred", "hi", env=env)
        assert (sent.code, sent.err) == (0, "")
        got = tfx(home, "hub", "poll", "--agent", "somebody", "--json", env=env)
        [message] = got.data["messages"]
        assert message["payload"] == {"text": "hi"}
    finally:
        tfx(home, "hub", "stop", env=env)


def test_h_6_every_operation_has_its_command_or_a_reason(home: Path) -> None:
    text = tfx(home, "hub", "--help").out
    for name in OPERATIONS:
        if name in ELSEWHERE:
            continue
        words = name.split("_")
        assert words[0] in text, name
        assert tfx(home, "hub", *words, "--help").code == 0, name


@pytest.mark.parametrize(
    "words",
    [
        ("agents",),
        ("agents", "retire", "x-1"),
        ("agents", "prune"),
        ("publish", "--to", "x-1", "hi"),
        ("ask", "--to", "x-1", "what?"),
        ("poll", "--agent", "x-1"),
        ("ack", "--agent", "x-1", "m"),
        ("wait", "--agent", "x-1"),
        ("dead", "list"),
        ("dead", "replay", "m"),
        ("dead", "purge", "m"),
        ("trace", "t"),
        ("events",),
        ("prune",),
    ],
)
def test_h_7_without_a_hub_each_operation_exits_4_with_the_way_out(
    home: Path, words: tuple[str, ...]
) -> None:
    ran = tfx(home, "hub", *words, "--json")
    assert ran.code == 4, ran.out
    [problem] = ran.document["problems"]
    assert (problem["code"], problem["hint"]) == ("hub-not-running", "tfx hub start")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("words", [("bogus",), ("dead", "bogus"), ("agents", "bogus")])
def test_h_7_no_unknown_sub_command_exits_0(home: Path, words: tuple[str, ...]) -> None:
    assert tfx(home, "hub", *words).code == 2


def test_publish_refuses_an_unknown_recipient_with_the_known_names(hub: RunningHub) -> None:
    hub.register("reviewer")
    ran = cli(hub, "publish", "--to", "revewer", "hi", "--json")
    assert (ran.code, ran.document["status"]) == (4, "unavailable")
    assert ran.document["problems"][0]["code"] == "unknown-recipient"
    assert "reviewer" in json.dumps(ran.document["problems"][0])


def test_publish_takes_a_text_or_an_object_from_argument_or_stdin(hub: RunningHub) -> None:
    hub.register("reader")
    to = ("publish", "--to", "reader")
    assert cli(hub, *to, "plain").code == 0
    assert cli(hub, *to, "-", stdin="한글 ✓\n").code == 0
    assert cli(hub, *to, "--payload", '{"a":[1,2]}').code == 0
    assert cli(hub, *to, "--payload", "-", stdin='{"b":null}').code == 0
    got = cli(hub, "poll", "--agent", "reader", "--auto-ack", "--json").data["messages"]
    payloads = [message["payload"] for message in got]
    assert payloads == [{"text": "plain"}, {"text": "한글 ✓\n"}, {"a": [1, 2]}, {"b": None}]
    for bad in (("x", "--payload", "{}"), (), ("--payload", "[1]"), ("--payload", '{"a":1,"a":2}')):
        assert cli(hub, *to, *bad).code == 2


def test_h_26_what_was_sent_says_how_long_it_waits_and_mail_says_how_to_ack(
    hub: RunningHub,
) -> None:
    sent = cli(hub, "publish", "--to", "reader", "--deferred", "--ttl", "2m59s", "hi")
    assert sent.out.endswith(", for 2 min if nobody claims it\n")
    got = cli(hub, "poll", "--agent", "reader")
    message_id = sent.out.split()[3].rstrip(",")
    assert f"tfx hub ack --agent reader {message_id};" in got.err
    assert cli(hub, "ack", "--agent", "reader", message_id).code == 0
    assert "ack" not in cli(hub, "poll", "--agent", "reader", "--auto-ack").err
    lost = cli(hub, "publish", "--to", "topic:nobody", "hi")
    assert "nobody receives that topic" in lost.out
    assert "is a dead letter" in lost.out


def test_ask_waits_for_the_answer_of_another_command(hub: RunningHub) -> None:
    hub.register("oracle")
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tfx",
            "hub",
            "ask",
            "--to",
            "oracle",
            "--wait",
            "45",
            "6 x 7?",
            "--json",
        ],
        env=hub.env,
        stdout=subprocess.PIPE,
        text=True,
    ) as asking:
        got = cli(hub, "poll", "--agent", "oracle", "--wait", "45", "--json").data["messages"]
        [request] = got
        answer = ("publish", "--to", "operator", "--from", "oracle", "42")
        ran = cli(hub, *answer, "--correlation-id", request["correlation_id"])
        assert ran.code == 0, ran.err
        out, _ = asking.communicate(timeout=120)
    assert asking.returncode == 0
    data = json.loads(out)["data"]
    assert (data["state"], data["response"]["payload"]) == ("answered", {"text": "42"})


def test_ask_that_gets_no_answer_leaves_a_ticket(hub: RunningHub) -> None:
    hub.register("oracle")
    ran = cli(hub, "ask", "--to", "oracle", "--wait", "0", "well?", "--json")
    assert (ran.code, ran.data["state"], ran.data["response"]) == (0, "queued", None)


def test_h_86_ack_of_a_foreign_id_exits_1_and_says_which(hub: RunningHub) -> None:
    hub.register("one", "two")
    sent = cli(hub, "publish", "--to", "one", "hi", "--json").data["message_id"]
    ran = cli(hub, "ack", "--agent", "two", sent, "never-was", "--json")
    assert ran.code == 1
    assert {p["details"]["message_id"] for p in ran.document["problems"]} == {sent, "never-was"}
    assert cli(hub, "ack", "--agent", "one", sent).code == 0


def test_h_71_wait_returns_with_mail_and_claims_nothing(hub: RunningHub) -> None:
    hub.register("sleeper")
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "hub", "wait", "--agent", "sleeper", "--json"],
        env=hub.env,
        stdout=subprocess.PIPE,
        text=True,
    ) as waiting:
        _until_waiting(hub)
        hub.call("publish", from_="operator", to="sleeper", topic="x", payload={})
        out, _ = waiting.communicate(timeout=120)
    assert (waiting.returncode, json.loads(out)["data"]["total"]) == (0, 1)
    assert cli(hub, "poll", "--agent", "sleeper", "--json").data["messages"][0]["attempt"] == 1


def test_h_71_wait_survives_a_restart_of_the_hub(hub: RunningHub) -> None:
    hub.register("sleeper")
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "hub", "wait", "--agent", "sleeper", "--timeout", "120"],
        env=hub.env,
        stdout=subprocess.PIPE,
        text=True,
    ) as waiting:
        _until_waiting(hub)
        hub.kill()
        again = hub.again()
        again.call("publish", from_="operator", to="sleeper", topic="x", payload={})
        out, _ = waiting.communicate(timeout=120)
    assert (waiting.returncode, "1 waiting" in out) == (0, True)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc/net/tcp")
def test_h_71_wait_survives_a_hub_that_ends_before_its_first_answer(hub: RunningHub) -> None:
    hub.register("sleeper")
    os.kill(hub.pid, signal.SIGSTOP)
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "hub", "wait", "--agent", "sleeper", "--timeout", "120"],
        env=hub.env,
        stdout=subprocess.PIPE,
        text=True,
    ) as waiting:
        _until_asked(hub.port)
        hub.kill()
        again = hub.again()
        again.call("publish", from_="operator", to="sleeper", topic="x", payload={})
        out, _ = waiting.communicate(timeout=120)
    assert (waiting.returncode, "1 waiting" in out) == (0, True)


def _until_asked(port: int) -> None:
    """Wait until the kernel holds bytes that the stopped hub has not read."""
    here = f"0100007F:{port:04X}"

    def asked() -> bool:
        for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
            _, local, _, _, queues, *_ = line.split()
            if local == here and int(queues.partition(":")[2], 16) > 64:
                return True
        return False

    until(asked)


@pytest.mark.parametrize("words", [("busy", "nobody"), ("agents", "retire", "nobody")])
def test_k_9_an_agent_that_the_hub_does_not_know_is_exit_4(
    hub: RunningHub, words: tuple[str, ...]
) -> None:
    ran = cli(hub, *words, "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (4, "unknown-agent")


def test_h_71_wait_exits_1_at_the_time_out(hub: RunningHub) -> None:
    hub.register("sleeper")
    ran = cli(hub, "wait", "--agent", "sleeper", "--timeout", "0.2", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "no-mail")


def test_k_28_the_command_line_uses_the_operator_credential_where_it_is_needed(
    hub: RunningHub,
) -> None:
    hub.register("old-agent")
    for words in (
        ("agents", "prune"),
        ("agents", "retire", "old-agent"),
        ("prune", "--dry-run"),
        ("rebuild",),
        ("rebuild", "--check"),
        ("dead", "purge", "--all"),
    ):
        ran = cli(hub, *words, "--json")
        assert ran.code == 0, (words, ran.out)
    hub.files.operator.write_text("x" * 43)
    assert cli(hub, "agents").code == 0
    assert cli(hub, "rebuild", "--json").code == 5


def test_purging_everything_must_be_said(hub: RunningHub) -> None:
    assert cli(hub, "dead", "purge").code == 2


def test_people_see_agents_dead_letters_and_a_trace_as_a_timeline(hub: RunningHub) -> None:
    hub.register("drawer", topics=("news",))
    sent = hub.call("publish", from_="operator", to="drawer", topic="x", payload={}, trace_id="t-1")
    hub.call("publish", from_="operator", to="topic:nobody", topic="nobody", payload={})
    assert "drawer" in cli(hub, "agents").out
    assert "no-subscriber" in cli(hub, "dead", "list").out
    cli(hub, "poll", "--agent", "drawer", "--auto-ack")
    text = cli(hub, "trace", "t-1").out
    assert sent["message_id"] in text
    lines = text.splitlines()
    assert lines[1].split()[0] == "+0.000"
    assert "message_posted" in lines[1]
    assert "delivery" in lines[-1]
    assert "running at" in cli(hub, "status").out
    plain = tfx(hub.home, "--ascii", "hub", "trace", "t-1", env=hub.env).out
    assert plain.isascii()


def test_replay_makes_one_message_for_one_key(hub: RunningHub) -> None:
    hub.register("late")
    sent = hub.call("publish", from_="operator", to="topic:t", topic="t", payload={})["message_id"]
    hub.register("late", topics=("t",))
    first, second = (
        cli(hub, "dead", "replay", sent, "--op-id", "again", "--json") for _ in range(2)
    )
    assert first.code == second.code == 0, first.out
    assert first.data["message_id"] == second.data["message_id"]


def test_an_agents_own_id_comes_from_the_environment(hub: RunningHub) -> None:
    hub.register("me-1", "you-1")
    env = {**hub.env, "TFX_AGENT_ID": "me-1"}
    assert tfx(hub.home, "hub", "publish", "--to", "you-1", "hi", env=env).code == 0
    got = cli(hub, "poll", "--agent", "you-1", "--json").data["messages"][0]
    assert "me-1" in (got.get("from_agent"), got.get("from"))
    assert tfx(hub.home, "hub", "poll", env=env).code == 0


def test_h_9_a_hub_address_of_the_environment_is_used(hub: RunningHub, tmp_path: Path) -> None:
    env = bare_env(tmp_path, TFX_HUB_URL=f"{hub.url}/mcp", TFX_HUB_TOKEN=hub.token)
    assert tfx(tmp_path, "hub", "agents", env=env).code == 0
    wrong = {**env, "TFX_HUB_URL": "ftp://nowhere"}
    assert tfx(tmp_path, "hub", "agents", env=wrong).code == 2
    gone = {**env, "TFX_HUB_URL": "http://127.0.0.1:1"}
    assert tfx(tmp_path, "hub", "agents", env=gone).code == 4


def _until_waiting(hub: RunningHub) -> None:
    until(lambda: hub.get("/status").document["queues"]["open_waits"])


def test_h_76_refusals_are_counted_by_code(hub: RunningHub) -> None:
    for _ in range(3):
        assert hub.post("/v1/publish", b'{"from":1}').status == 400
    assert hub.get("/health").status == 200
    assert 'invalid-request"' in hub.get("/metrics").body.decode()


def test_h_50_the_help_says_what_a_token_does_not_protect_from(home: Path) -> None:
    text = " ".join(tfx(home, "hub", "--help").out.split())
    assert "One token is one trust domain" in text
    assert "not a hostile process" in text


@pytest.mark.parametrize(
    "words",
    [
        ("publish", "--to", "bob", "--deferred", "h\udcff"),
        ("publish", "--to", "bob\udcff", "--deferred", "hi"),
        ("publish", "--to", "bob", "--deferred", "--payload", '{"a":"\udcff"}'),
        ("poll", "--agent", "bob\udcff"),
        ("trace", "\udcff"),
        ("wait", "--agent", "bob", "--timeout", "inf"),
        ("wait", "--agent", "bob", "--timeout", "nan"),
        ("poll", "--agent", "bob", "--wait", "nan"),
        ("publish", "--to", "bob", "--deferred", "--ttl", "nan", "hi"),
    ],
)
def test_h_7_what_no_request_can_carry_is_a_usage_error(
    hub: RunningHub, words: tuple[str, ...]
) -> None:
    ran = cli(hub, *words, "--json")
    assert ran.code == 2, ran.out + ran.err
    assert ran.document["problems"][0]["kind"] == "invalid-request"


def test_h_7_standard_input_that_is_not_utf8_is_a_usage_error(hub: RunningHub) -> None:
    argv = [sys.executable, "-m", "tfx", "hub", "publish", "--to", "bob", "--deferred", "-"]
    done = subprocess.run(argv, env=hub.env, input=b"a\xff", capture_output=True, check=False)
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr


def test_h_54_purging_what_is_no_dead_letter_is_a_failure(hub: RunningHub) -> None:
    ran = cli(hub, "dead", "purge", "nope", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "unknown-message")


def test_people_see_who_is_busy_what_runs_and_can_free_an_agent(hub: RunningHub) -> None:
    own = identify()
    assert own is not None
    hub.register("bob-1")
    process = facts_of(own)
    hub.call("receiver_hold", agent_id="bob-1", process=process)
    hub.call("invocation_start", agent_id="bob-1", process=process, kind="turn", title="a turn")
    table = cli(hub, "agents").out
    assert f"message: pid {own.pid} on {own.host} (alive, heard" in table
    shown = cli(hub, "agents", "--json").data["agents"][0]
    assert shown["generation"] > 0
    assert {"tier", "pid", "liveness", "evidence", "beat_age_ms", "since_ms"} <= set(
        shown["seats"][0]
    )
    assert "bob-1 is busy (message)" in cli(hub, "busy", "bob-1").out
    assert cli(hub, "busy", "bob-1", "--json").data["busy"] is True
    assert cli(hub, "busy", "nobody").code == 4
    left = cli(hub, "agents", "free", "bob-1")
    assert (left.code, "left, because nothing proves that it is gone" in left.out) == (0, True)
    assert f"evicted pid {own.pid}" in cli(hub, "agents", "free", "bob-1", "--force").out
    assert "bob-1 is idle" in cli(hub, "busy", "bob-1").out
    listed = cli(hub, "invocations").out
    assert "a turn" in listed
    assert "running alive, heard" in listed
    assert cli(hub, "invocations", "--state", "lost", "--json").data["invocations"] == []
    assert cli(hub, "invocations", "--state", "nonsense").code == 2
    elsewhere = cli(hub, "invocations", "--room", "some/where", "--task", "1", "--json")
    (problem,) = elsewhere.document["problems"]
    assert problem["code"] == "unknown-task"  # where it is run, never a relative room
    assert "in /" in problem["message"]
    assert "looked at 1, lost 0" in cli(hub, "invocations", "probe").out
