from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from tfx.core import process
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
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 7"], env={}, timeout_s=20)
    assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_run_feeds_stdin_and_closes_it() -> None:
    done = process.run(["cat"], env=dict(os.environ), timeout_s=20, stdin=b"a\0b")
    assert done.stdout == b"a\0b"


def test_run_kills_the_whole_group_at_the_timeout(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {note}; wait"
    done = process.run(["sh", "-c", script], env=dict(os.environ), timeout_s=1)
    assert done.timed_out
    pid = int(note.read_text())
    for _ in range(100):
        if start_token(pid) is None or _state(pid) == "Z":
            break
        time.sleep(0.05)
    assert start_token(pid) is None or _state(pid) == "Z"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_run_keeps_no_more_than_the_limit() -> None:
    code = "import sys; sys.stdout.write('x' * 1_000_000)"
    done = process.run([sys.executable, "-c", code], env={}, timeout_s=20, limit_bytes=1000)
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
    gone = ProcessIdentity(mine.host, mine.boot_id, 2**22 + 1, "1", namespace)
    rebooted = ProcessIdentity(mine.host, "old-boot", mine.pid, mine.start_token, namespace)
    assert [examine(each).proof for each in (mine, later, gone, rebooted)] == [
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
    done = process.run([sys.executable, "-c", code], env=dict(os.environ), timeout_s=20)
    assert done.stdout == b"unknown\n"


def test_a_process_that_ended_and_was_not_reaped_is_gone() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert start_token(child) is None
        assert identify(child) is None
    finally:
        os.waitpid(child, 0)


def test_kill_running_ends_what_another_thread_waits_for() -> None:
    ended: list[process.Completed] = []

    def wait() -> None:
        ended.append(process.run(["sleep", "300"], env=dict(os.environ), timeout_s=300))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until = time.monotonic() + 20
    while waiting.is_alive() and time.monotonic() < until:
        process.kill_running()
        waiting.join(0.05)
    assert [done.code for done in ended] == [-9]
