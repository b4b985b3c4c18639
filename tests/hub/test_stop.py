"""How a hub ends: request, signals, escalation, drain, and whom it never touches (H-15 … H-17)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import http.client
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.hub.running import PATIENT, RunningHub
from tests.hub.waiting import until
from tfx.core import locks, process
from tfx.core.identity import start_token
from tfx.errors import LockHeld, StateConflict
from tfx.hub import state as state_file
from tfx.hub.daemon import stop as stopping
from tfx.hub.daemon.probe import Reason, State, probe
from tfx.hub.daemon.stop import Patience, Step

SHORT = Patience(request_s=1.0, sigterm_s=1.0, sigkill_s=60.0)
"""For those that will not end by themselves."""


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that nobody may touch."""
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child
        assert child.poll() is None, "an innocent process was signalled"
        child.kill()


def test_h_16_a_request_with_the_operator_credential_ends_it(hub: RunningHub) -> None:
    assert stopping.stop(hub.paths, PATIENT).step is Step.REQUEST
    assert not locks.is_held(hub.files.lock)


def test_h_16_without_the_credential_sigterm_ends_it(hub: RunningHub) -> None:
    hub.files.operator.write_text("x" * 43)
    assert stopping.stop(hub.paths, PATIENT).step is Step.SIGTERM


def test_h_16_a_stopped_process_is_killed(hub: RunningHub) -> None:
    os.kill(hub.pid, signal.SIGSTOP)
    assert stopping.stop(hub.paths, SHORT).step is Step.SIGKILL
    assert not locks.is_held(hub.files.lock)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_h_17_a_signal_answers_every_wait_at_once(hub: RunningHub, signum: signal.Signals) -> None:
    names = [f"agent-{number}" for number in range(50)]
    hub.register(*names)
    with (
        concurrent.futures.ThreadPoolExecutor(50) as pool,
        _stream(hub) as stream,
    ):
        polls = [
            pool.submit(hub.post, "/v1/poll_messages", {"agent_id": name, "wait_ms": 45_000})
            for name in names
        ]
        until(lambda: hub.get("/status").document["queues"]["open_waits"] >= 51)  # the stream too
        os.kill(hub.pid, signum)
        replies = [poll.result(timeout=60) for poll in polls]
        assert [reply.data["messages"] for reply in replies] == [[]] * 50
        stream.read()  # ends instead of hanging
    assert locks.wait_until_free(hub.files.lock, 60)
    assert probe(hub.paths, port=0).state is State.STOPPED


def test_h_17_stop_with_open_waits_needs_the_first_step_only(hub: RunningHub) -> None:
    hub.register("agent-1")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            hub.post, "/v1/poll_messages", {"agent_id": "agent-1", "wait_ms": 45_000}
        )
        until(lambda: hub.get("/status").document["queues"]["open_waits"] == 1)
        assert stopping.stop(hub.paths, PATIENT).step is Step.REQUEST
        assert waiting.result(timeout=60).status == 200


def test_h_15_h_99_a_recycled_pid_is_never_signalled(
    hub: RunningHub, stranger: subprocess.Popen[bytes]
) -> None:
    recorded = state_file.read(hub.files.state)
    assert recorded is not None
    hub.kill()
    token = start_token(stranger.pid)
    assert token is not None
    for forged in (
        dataclasses.replace(recorded, pid=stranger.pid),
        dataclasses.replace(recorded, pid=stranger.pid, start_token=token),
    ):
        state_file.write(hub.files.state, forged)
        assert probe(hub.paths, port=0).state is State.STALE
        assert stopping.stop(hub.paths, SHORT).step is Step.NOTHING
        assert stranger.poll() is None


def test_h_15_a_lock_file_that_names_a_stranger_gets_nobody_signalled(
    hub: RunningHub, stranger: subprocess.Popen[bytes]
) -> None:
    os.kill(hub.pid, signal.SIGSTOP)
    named = locks.holder(hub.files.lock)
    assert named is not None
    genuine = hub.files.lock.read_bytes()
    forged = genuine.replace(b'"pid": %d' % named.pid, b'"pid": %d' % stranger.pid)
    hub.files.lock.write_bytes(forged)
    try:
        with pytest.raises(StateConflict) as caught:
            stopping.stop(hub.paths, Patience(0.2, 0.2, 0.2))
        assert caught.value.reason == "holder-unknown"
        assert stranger.poll() is None
    finally:
        hub.files.lock.write_bytes(genuine)  # so that the hub can be ended


def test_h_15_a_signal_needs_the_start_token_of_the_process(
    stranger: subprocess.Popen[bytes],
) -> None:
    token = start_token(stranger.pid)
    assert token is not None
    assert not process.signal_exactly(stranger.pid, "1", signal.SIGKILL)
    assert not process.signal_exactly(2**22 - 1, token, signal.SIGKILL)
    assert stranger.poll() is None
    assert process.signal_exactly(stranger.pid, token, signal.SIGCONT)


def test_k_22_the_lock_of_another_worker_is_not_fought_over(hub: RunningHub) -> None:
    hub.end()
    lock = locks.try_lock(hub.files.lock, "upgrade")
    assert lock is not None
    with lock:
        seen = probe(hub.paths)
        assert (seen.state, seen.reason) == (State.UNRESPONSIVE, Reason.OTHER_HOLDER)
        with pytest.raises(LockHeld, match="upgrade"):
            stopping.stop(hub.paths)
        with pytest.raises(LockHeld, match="upgrade"):
            hub.again()


@contextlib.contextmanager
def _stream(hub: RunningHub) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/events", headers=dict(hub.headers()))
        with connection.getresponse() as response:
            assert response.status == 200
            response.readline()
            yield response
