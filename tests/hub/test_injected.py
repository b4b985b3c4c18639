"""Faults inside the daemon: a hung handler, a hung loop, a dead writer, no descriptors left."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import running
from tests.hub.running import RunningHub
from tests.hub.waiting import until
from tests.support import bare_env
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.daemon import stop as stopping
from tfx.hub.daemon.probe import Reason, State, probe
from tfx.hub.daemon.readiness import await_ready
from tfx.hub.daemon.stop import Patience, Step
from tfx.hub.places import HubFiles

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def _daemon(home: Path, fault: str) -> Iterator[tuple[subprocess.Popen[bytes], RunningHub]]:
    env = bare_env(home, PYTHONPATH=str(ROOT))
    read_end, write_end = os.pipe()
    argv = [sys.executable, "-m", "tests.hub.injected", fault, '{"port": 0, "idle_exit_s": null}']
    with subprocess.Popen(argv, env=env, stderr=write_end, cwd=ROOT) as child:
        os.close(write_end)
        run = await_ready(read_end, limit_s=90)
        os.close(read_end)
        paths = Paths.resolve(bare_env(home))
        files = HubFiles.of(paths)
        hub = RunningHub(home, env, paths, files, run.url, run.port, run.pid, run.instance)
        try:
            yield child, hub
        finally:
            child.kill()


@contextlib.contextmanager
def _stuck_call(hub: RunningHub) -> Iterator[None]:
    """Keep a handler of the hub waiting for the rest of a body that never comes."""
    head = "".join(f"{name}: {value}\r\n" for name, value in hub.headers())
    with socket.create_connection(("127.0.0.1", hub.port)) as stuck:
        stuck.sendall(
            f"POST /v1/publish HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        until(lambda: b"tfx_http_open_calls 2" in hub.get("/metrics").body)
        yield


def test_h_4_a_start_during_a_stop_waits_for_its_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_ENDING_S", 120.0)
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        _daemon(home, "patient-end") as (child, hub),
    ):
        with _stuck_call(hub):
            os.kill(hub.pid, signal.SIGTERM)
            until(lambda: probe(hub.paths, port=0).reason is Reason.REFUSED)
            starting = pool.submit(running.start, home)
            time.sleep(1)  # it looks, and waits
            assert not starting.done()
        again = starting.result(120)
        try:
            assert again.instance != hub.instance
            assert child.wait(60) == 0
        finally:
            again.end()


def test_h_16_a_hung_handler_is_cut_off_by_the_first_step(hub: RunningHub) -> None:
    with _stuck_call(hub):
        assert stopping.stop(hub.paths, running.PATIENT).step is Step.REQUEST
    assert "1 calls were cut off" in hub.files.log.read_text("utf-8")


def test_h_16_a_hung_loop_is_killed(home: Path) -> None:
    with _daemon(home, "hung-loop") as (child, hub):
        until((home / "hung").exists)
        assert probe(hub.paths, port=0, answer_s=0.1).reason is Reason.TIMEOUT
        assert stopping.stop(hub.paths, Patience(1, 1, 60)).step is Step.SIGKILL
        assert not locks.is_held(hub.files.lock)
        assert child.wait(60) == -9


def test_h_19_a_dead_writer_thread_ends_the_daemon_with_exit_1(home: Path) -> None:
    with _daemon(home, "dead-writer") as (child, hub):
        assert child.wait(60) == 1
        assert probe(hub.paths, port=0).state is State.STOPPED
        log = hub.files.log.read_text("utf-8")
        assert "the writer ended: SystemExit" in log
        assert "stopping: writer died" in log
        assert "canary-of-the-writer" not in log


def test_h_19_no_free_descriptor_ends_nothing(home: Path) -> None:
    with _daemon(home, "few-files") as (_child, hub):
        until(lambda: _limit(hub.pid) == 40)
        held = []
        try:
            for _ in range(80):
                held += [socket.create_connection(("127.0.0.1", hub.port), timeout=60)]
            time.sleep(0.3)
            before = _cpu_ticks(hub.pid)
            time.sleep(1)
            assert _cpu_ticks(hub.pid) - before < 50  # of 100: it does not spin
        finally:
            for each in held:
                each.close()
        until(lambda: _answers(hub))
        hub.register("bob")
        assert hub.files.log.stat().st_size < 100_000


def _answers(hub: RunningHub) -> bool:
    try:
        return hub.request("GET", "/health", None, hub.headers(), timeout_s=2).status == 200
    except OSError:
        return False


def _limit(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()
    (line,) = (each for each in lines if each.startswith("Max open files"))
    return int(line.split()[3])


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
