from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clock import late_once_there
from tests.support import gone
from tfx.core import pipes, process
from tfx.core.identity import (
    Liveness,
    ProcessIdentity,
    Proof,
    examine,
    identify,
    liveness,
    start_token,
)


def test_run_returns_both_streams_and_the_code() -> None:
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 7"], env={}, timeout_s=60)
    assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_run_feeds_stdin_and_closes_it() -> None:
    done = process.run(["cat"], env=dict(os.environ), timeout_s=60, stdin=b"a\0b")
    assert done.stdout == b"a\0b"


def test_run_kills_the_whole_group_at_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    late_once_there(monkeypatch, note)
    script = f"sleep 300 & echo $! > {note}; wait"
    done = process.run(["sh", "-c", script], env=dict(os.environ), timeout_s=60)
    assert done.timed_out
    assert gone(int(note.read_text()))


def test_run_keeps_what_was_said_though_its_reader_was_not_let_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader stands still for longer than a pipe that says nothing is waited for."""
    monkeypatch.setattr(pipes, "_LET_GO_S", 0.2)
    read = os.read

    def late(descriptor: int, size: int) -> bytes:
        time.sleep(1)
        return read(descriptor, size)

    monkeypatch.setattr(pipes, "os", SimpleNamespace(read=late))
    done = process.run(["echo", "all of it"], env=dict(os.environ), timeout_s=60)
    assert done.stdout == b"all of it\n"


def test_d16_kill_running_sees_what_is_just_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is not let run between the start of a program and the next line of ours."""
    running, told = threading.Event(), threading.Event()
    ended: list[process.Completed] = []

    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401
            super().__init__(*given, **more)
            running.set()
            told.wait(0.5)  # longer only where nobody waits for us

    monkeypatch.setattr(process, "subprocess", SimpleNamespace(
        Popen=Slow, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    ))  # fmt: skip

    def wait() -> None:
        ended.append(process.run(["sleep", "300"], env=dict(os.environ), timeout_s=300))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert running.wait(60)
    process.kill_running()
    told.set()
    waiting.join(60)
    assert [done.code for done in ended] == [-9]


def test_d16_nothing_is_started_after_the_end_was_told(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    argv = ["touch", str(tmp_path / "x")]
    done = process.run(argv, env=dict(os.environ), timeout_s=60, cancel=cancel)
    assert done.timed_out
    assert list(tmp_path.iterdir()) == []


def test_d69_a_session_is_over_when_the_last_of_it_has_ended(tmp_path: Path) -> None:
    job = "set -m; sleep 300 & echo $! >pid; wait"
    session = process.Session(["bash", "-c", job], env=dict(os.environ), cwd=tmp_path)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "pid").exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert not session.is_over()
    finally:
        session.close()
    while not session.is_over() and time.monotonic() < until:
        time.sleep(0.01)
    assert session.is_over()
    assert gone(int((tmp_path / "pid").read_text()))


def test_run_keeps_no_more_than_the_limit() -> None:
    code = "import sys; sys.stdout.write('x' * 1_000_000)"
    done = process.run([sys.executable, "-c", code], env={}, timeout_s=60, limit_bytes=1000)
    assert len(done.stdout) == 1000
    assert done.truncated


def test_ev_b5_identity_tells_a_process_from_its_successor() -> None:
    mine = identify()
    assert mine is not None
    assert liveness(mine) is Liveness.ALIVE
    other = ProcessIdentity(mine.host, mine.boot_id, mine.pid, "1", mine.pid_namespace)
    assert liveness(other) is Liveness.DEAD


def test_ev_b4_doubt_is_never_death() -> None:
    mine = identify()
    assert mine is not None
    elsewhere = ProcessIdentity("elsewhere", mine.boot_id, 1, "1", mine.pid_namespace)
    assert liveness(elsewhere) is Liveness.UNKNOWN
    rebooted = ProcessIdentity(mine.host, "old-boot", mine.pid, "1", mine.pid_namespace)
    assert liveness(rebooted) is Liveness.DEAD


def test_ev_b4_a_death_comes_with_its_proof() -> None:
    mine = identify()
    assert mine is not None
    namespace = mine.pid_namespace
    later = ProcessIdentity(mine.host, mine.boot_id, mine.pid, "1", namespace)
    ended = ProcessIdentity(mine.host, mine.boot_id, 2**22 + 1, "1", namespace)
    rebooted = ProcessIdentity(mine.host, "old-boot", mine.pid, mine.start_token, namespace)
    assert [examine(each).proof for each in (mine, later, ended, rebooted)] == [
        None,
        Proof.TOKEN_DIFFERS,
        Proof.PID_GONE,
        Proof.BOOT_DIFFERS,
    ]
    inside = ProcessIdentity(mine.host, mine.boot_id, mine.pid, "1", "pid:[1]")
    assert examine(inside).liveness is Liveness.UNKNOWN


def test_ev_b4_a_process_that_cannot_be_looked_at_is_not_dead() -> None:
    code = (
        "import resource\n"
        "from tfx.core.identity import examine, identify\n"
        "mine = identify()\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "print(examine(mine).liveness.value)\n"
    )
    done = process.run([sys.executable, "-c", code], env=dict(os.environ), timeout_s=60)
    assert done.stdout == b"unknown\n"


def test_a_process_that_ended_and_was_not_reaped_is_gone() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert start_token(child.pid) is None
        assert identify(child.pid) is None


def test_kill_running_ends_what_another_thread_waits_for() -> None:
    ended: list[process.Completed] = []

    def wait() -> None:
        ended.append(process.run(["sleep", "300"], env=dict(os.environ), timeout_s=300))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until = time.monotonic() + 60
    while waiting.is_alive() and time.monotonic() < until:
        process.kill_running()
        waiting.join(0.05)
    assert [done.code for done in ended] == [-9]
