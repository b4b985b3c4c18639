"""The one probe: each state set up, and the commands that ask it (H-13, H-14)."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.support import bare_env, tfx
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub import state as state_file
from tfx.hub.daemon import launch, report, rotation, stop
from tfx.hub.daemon import probe as probe_module
from tfx.hub.daemon.probe import Reason, State, probe
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes


def _state(hub: RunningHub, answer_s: float = 60.0) -> tuple[State, Reason | None]:
    seen = probe(hub.paths, port=0, answer_s=answer_s)
    return seen.state, seen.reason


def test_h_14_running(hub: RunningHub) -> None:
    assert _state(hub) == (State.RUNNING, None)


def test_h_14_h_100_a_hub_that_does_not_answer_is_unresponsive_and_keeps_its_files(
    hub: RunningHub,
) -> None:
    os.kill(hub.pid, signal.SIGSTOP)
    before = hub.files.state.read_bytes()
    assert _state(hub, 0.3) == (State.UNRESPONSIVE, Reason.TIMEOUT)
    ran = tfx(hub.home, "hub", "start", "--json", env=hub.env)
    assert (ran.code, ran.document["problems"][0]["code"]) == (5, "hub-unresponsive")
    assert hub.files.state.read_bytes() == before
    os.kill(hub.pid, signal.SIGCONT)
    assert _state(hub) == (State.RUNNING, None)


def test_h_4_a_start_waits_for_a_hub_that_is_slow(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_SLOW_S", 120.0)
    os.kill(hub.pid, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        starting = pool.submit(launch.start, hub.paths, RunWishes())
        time.sleep(probe_module.ANSWER_S + 0.5)  # its first question has got no answer
        os.kill(hub.pid, signal.SIGCONT)
        started = starting.result(120)
    assert (started.by_us, started.probe.state) == (False, State.RUNNING)


def test_h_14_a_changed_token_is_a_token_mismatch(hub: RunningHub) -> None:
    kept = hub.token
    hub.files.token.write_text("x" * 43 + "\n")
    assert _state(hub) == (State.UNRESPONSIVE, Reason.TOKEN_MISMATCH)
    hub.files.token.write_text(kept + "\n")
    assert _state(hub) == (State.RUNNING, None)


def test_h_13_an_answer_of_another_instance_is_not_running(hub: RunningHub) -> None:
    recorded = state_file.read(hub.files.state)
    assert recorded is not None
    state_file.write(hub.files.state, dataclasses.replace(recorded, instance="f" * 32))
    assert _state(hub) == (State.UNRESPONSIVE, Reason.OTHER_INSTANCE)


def test_h_14_a_refused_connection(hub: RunningHub) -> None:
    recorded = state_file.read(hub.files.state)
    assert recorded is not None
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen: nobody else can, meanwhile
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        state_file.write(hub.files.state, dataclasses.replace(recorded, url=url))
        assert _state(hub) == (State.UNRESPONSIVE, Reason.REFUSED)


def test_h_14_a_lock_without_its_state_file_is_starting_for_half_a_minute(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths.resolve(bare_env(home))
    files = HubFiles.of(paths)
    files.directory.mkdir(parents=True)
    lock = locks.try_lock(files.lock, "hub")
    assert lock is not None
    with lock:
        assert probe(paths, port=0).state is State.STARTING
        monkeypatch.setattr(probe_module, "STARTING_MS", -1)
        seen = probe(paths, port=0)
        assert (seen.state, seen.reason) == (State.UNRESPONSIVE, Reason.NO_STATE_FILE)


def test_h_13_a_state_file_of_another_run_is_not_the_holders(
    hub: RunningHub, tmp_path: Path
) -> None:
    recorded = state_file.read(hub.files.state)
    assert recorded is not None
    for other in (
        dataclasses.replace(recorded, pid=recorded.pid + 1),
        dataclasses.replace(recorded, start_token="1"),  # noqa: S106  (a time)
        dataclasses.replace(recorded, boot_id="another boot"),
    ):
        state_file.write(hub.files.state, other)
        assert _state(hub)[0] is State.STARTING
    assert tmp_path.exists()


def test_h_14_a_stranger_on_the_wanted_port(home: Path) -> None:
    paths = Paths.resolve(bare_env(home))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        seen = probe(paths, port=listener.getsockname()[1])
    assert seen.state is State.FOREIGN
    assert seen.stranger is not None
    assert seen.stranger[0] == os.getpid()


def test_h_14_stopped_and_stopped_stale(hub: RunningHub) -> None:
    hub.end()
    assert _state(hub) == (State.STOPPED, None)
    again = hub.again()
    again.kill()
    assert _state(hub) == (State.STALE, None)


def test_h_14_start_stop_and_status_ask_the_one_probe() -> None:
    asking = {vars(module)["probe"] for module in (launch, report, stop)}
    assert asking == {probe}


def test_h_3_status_names_the_reason_for_programs(hub: RunningHub) -> None:
    hub.files.token.write_text("x" * 43 + "\n")
    ran = tfx(hub.home, "hub", "status", "--json", env=hub.env)
    assert ran.code == 4
    assert (ran.data["state"], ran.data["reason"]) == ("unresponsive", "token-mismatch")


@pytest.mark.parametrize("name", ["token", "operator"])
def test_h_42_rotate_renews_a_credential_of_a_running_hub(hub: RunningHub, name: str) -> None:
    old = getattr(hub, name)
    words = ("rotate", "--operator") if name == "operator" else ("rotate",)
    ran = tfx(hub.home, "hub", "token", *words, "--json", env=hub.env)
    assert ran.code == 0, ran.err
    new = getattr(hub, name)
    assert new != old
    assert old not in ran.out + ran.err
    assert new not in ran.out + ran.err
    assert _with(hub, old) == 401
    assert _with(hub, new) == 200


def test_h_42_a_hub_that_ends_while_a_credential_is_renewed_has_not_taken_it(
    hub: RunningHub,
) -> None:
    seen = probe(hub.paths, port=0, answer_s=60)
    hub.kill()
    assert rotation._taken(seen, "x" * 43) is False  # and no bug: its next start takes it


def test_h_42_rotate_works_while_the_hub_is_down(hub: RunningHub) -> None:
    hub.end()
    old = hub.token
    assert tfx(hub.home, "hub", "token", "rotate", env=hub.env).code == 0
    assert hub.token != old
    again = hub.again()
    assert _with(again, hub.token) == 200


def test_h_42_rotate_says_why_where_nothing_can_be_written(home: Path) -> None:
    (home / ".local").write_text("a file where a directory belongs")
    ran = tfx(home, "hub", "token", "rotate", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "io"), ran.out
    assert "cannot be used" in ran.document["problems"][0]["message"]


def test_h_42_a_token_of_the_environment_wins_and_cannot_be_rotated(home: Path) -> None:
    env = bare_env(home, TFX_HUB_TOKEN="e" * 40)
    started = tfx(home, "hub", "start", "--port", "0", "--json", env=env)
    try:
        assert started.code == 0, started.err
        assert tfx(home, "hub", "status", env=env).code == 0
        ran = tfx(home, "hub", "token", "rotate", "--json", env=env)
        assert (ran.code, ran.document["problems"][0]["code"]) == (5, "token-from-environment")
        assert json.loads(tfx(home, "hub", "token", "--json", env=env).out)["data"]["bus"] == (
            "environment"
        )
    finally:
        tfx(home, "hub", "stop", env=env)


def _with(hub: RunningHub, secret: str) -> int:
    headers = [("Host", f"127.0.0.1:{hub.port}"), ("Authorization", f"Bearer {secret}")]
    return hub.request("GET", "/status", None, headers).status
