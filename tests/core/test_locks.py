from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tfx.core import locks

HOLD = """
import sys, time
from pathlib import Path
from tfx.core import locks
lock = locks.try_lock(Path(sys.argv[1]), "test")
print("held" if lock else "refused", flush=True)
sys.stdin.read()
"""


def _holding(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_h_10_a_lock_names_its_holder_and_keeps_a_second_one_out(tmp_path: Path) -> None:
    path = tmp_path / "hub.db.lock"
    with _holding(path) as child:
        assert locks.try_lock(path, "second") is None
        assert locks.is_held(path)
        named = locks.holder(path)
        assert named is not None
        assert (named.purpose, named.pid, named.alive) == ("test", child.pid, True)
        child.communicate("")


def test_h_10_after_sigkill_the_file_stays_and_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "hub.db.lock"
    with _holding(path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert path.exists()
    assert not locks.is_held(path)
    stale = locks.holder(path)
    assert stale is not None
    assert not stale.alive
    lock = locks.try_lock(path, "again")
    assert lock is not None
    now = locks.holder(path)
    assert now is not None
    assert now.pid == os.getpid()
    lock.release()


def test_releasing_blanks_the_name_and_never_unlinks(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    lock = locks.try_lock(path, "once")
    assert lock is not None
    inode = path.stat().st_ino
    lock.release()
    lock.release()
    assert locks.holder(path) is None
    assert not locks.is_held(path)
    with locks.try_lock(path, "twice") or pytest.fail("the lock is free"):
        assert path.stat().st_ino == inode


def test_h_45_a_lock_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        lock = locks.try_lock(tmp_path / "x.lock", "mode")
    finally:
        os.umask(old)
    assert lock is not None
    assert lock.path.stat().st_mode & 0o777 == 0o600
    lock.release()


def test_asking_whether_a_lock_is_held_creates_nothing(tmp_path: Path) -> None:
    assert not locks.is_held(tmp_path / "none.lock")
    assert locks.holder(tmp_path / "none.lock") is None
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_the_lock_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"x\.lock"):
        locks.try_lock(tmp_path / "x.lock", "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_torn_or_foreign_lock_file_has_no_holder(tmp_path: Path) -> None:
    for content in (b"", b"4711\n", b"[1]", b'{"pid":1}', b"\xff\xfe"):
        (tmp_path / "x.lock").write_bytes(content)
        assert locks.holder(tmp_path / "x.lock") is None


def test_waiting_ends_when_the_holder_dies_or_the_time_is_up(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with _holding(path) as child:
        assert not locks.wait_until_free(path, 0.05)
        child.kill()
        assert locks.wait_until_free(path, 60)


ASK = """
import fcntl, sys
file = open(sys.argv[1], "rb")
fcntl.flock(file, fcntl.LOCK_SH)
print("asking", flush=True)
sys.stdin.read()
"""


def test_h_10_who_only_asks_keeps_nobody_out_even_if_it_stands_still_meanwhile(
    tmp_path: Path,
) -> None:
    """`is_held` of another process, which is not let run between two of its lines."""
    path = tmp_path / "x.lock"
    path.touch()
    taken: list[locks.Lock | None] = []
    with subprocess.Popen(
        [sys.executable, "-c", ASK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == b"asking\n"
        taking = threading.Thread(target=lambda: taken.append(locks.try_lock(path, "late")))
        taking.start()
        taking.join(0.3)
        asking.communicate()
    taking.join(60)
    assert len(taken) == 1
    assert taken[0] is not None
    taken[0].release()
