from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.clock import late_at_each_line
from tests.support import gone
from tfx.core.listen import End, Heard, listen

ENV = {"PATH": "/usr/bin:/bin"}


def sh(script: str, cwd: Path, *, until: bytes = b"MARK\0", timeout_s: float = 60) -> Heard:
    return listen(["sh", "-c", script], env=ENV, cwd=cwd, until=until, timeout_s=timeout_s)


def test_d48_the_mark_ends_it_though_a_job_holds_the_pipe(tmp_path: Path) -> None:
    heard = sh(r"echo complaint >&2; sleep 300 & echo $! >pid; printf 'x\nMARK\0'; wait", tmp_path)
    assert heard.end is End.MARK
    assert heard.stdout == b"x\nMARK\0"
    assert heard.stderr == b"complaint\n"
    assert heard.code is None
    assert gone(int((tmp_path / "pid").read_text()))
    assert not heard.outlived


def test_d48_an_exit_ends_it_though_a_job_holds_the_pipe(tmp_path: Path) -> None:
    heard = sh("sleep 300 & echo $! >pid; echo last; exit 9", tmp_path)
    assert (heard.end, heard.code, heard.stdout) == (End.EXIT, 9, b"last\n")
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert sh("kill -SEGV $$", tmp_path).code == -signal.SIGSEGV


def test_d48_a_flood_is_cut(tmp_path: Path) -> None:
    heard = sh("yes", tmp_path)
    assert heard.end is End.FLOOD
    assert 1 << 20 < len(heard.stdout) <= (1 << 20) + 65536


def test_d48_the_errors_keep_their_tail(tmp_path: Path) -> None:
    heard = sh(r"head -c 1000000 /dev/zero >&2; echo end >&2; printf 'MARK\0'", tmp_path)
    assert len(heard.stderr) == 1 << 16
    assert heard.stderr.endswith(b"end\n")


def test_d49_a_deaf_group_is_killed_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_at_each_line(monkeypatch, tmp_path / "late")
    job = "(trap '' TERM; echo deaf >ready; exec sleep 300) & echo $! >pid"
    script = f"trap '' TERM INT HUP; {job}; while [ ! -s ready ]; do :; done; echo >late"
    heard = sh(f"{script}; while :; do :; done", tmp_path)
    assert heard.end is End.DEADLINE
    assert gone(int((tmp_path / "pid").read_text()))


def test_d48_a_mark_that_came_in_time_is_heard_by_who_stood_still_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We are not let run from the first line on until the time is up and the mark is there."""
    late_at_each_line(monkeypatch, tmp_path / "late")

    def until(said: bytes) -> bool:
        (tmp_path / "go").touch()
        while not (tmp_path / "late").exists():
            time.sleep(0.01)
        return said.endswith(b"mark\n")

    wait = "while [ ! -e go ]; do :; done"
    script = f"echo first; {wait}; echo mark; echo >late; sleep 300"
    heard = listen(["sh", "-c", script], env=ENV, cwd=tmp_path, until=until, timeout_s=60)
    assert (heard.end, heard.stdout) == (End.MARK, b"first\nmark\n")


def test_d49_a_cancelled_probe_leaves_nothing(tmp_path: Path) -> None:
    cancel = threading.Event()
    note = tmp_path / "pid"

    def cancel_when_it_runs() -> None:
        while not (note.exists() and note.read_text().endswith("\n")):
            time.sleep(0.01)
        cancel.set()

    threading.Thread(target=cancel_when_it_runs).start()
    heard = listen(
        ["sh", "-c", "sleep 300 & echo $! >pid; wait"],
        env=ENV, cwd=tmp_path, until=b"MARK", timeout_s=60, cancel=cancel,
    )  # fmt: skip
    assert heard.end is End.CANCELLED
    assert gone(int(note.read_text()))


def test_d49_a_job_in_a_group_of_its_own_is_killed_too(tmp_path: Path) -> None:
    job = "(sh -c 'echo $$ >pid; exec sleep 300') >/dev/null 2>&1 &"
    script = rf"set -m; {job} while [ ! -s pid ]; do :; done; printf 'MARK\0'; wait"
    heard = listen(["bash", "-c", script], env=ENV, cwd=tmp_path, until=b"MARK\0", timeout_s=60)
    assert heard.end is End.MARK
    pid = int((tmp_path / "pid").read_text())
    assert gone(pid)


def test_d69_what_left_the_group_is_told_and_not_hunted(tmp_path: Path) -> None:
    left = "setsid sh -c 'echo $$ >pid; exec sleep 600' &"
    heard = sh(rf"{left} while [ ! -s pid ]; do :; done; printf 'MARK\0'; wait", tmp_path)
    assert (heard.end, heard.outlived) == (End.MARK, True)
    pid = int((tmp_path / "pid").read_text())
    assert not gone(pid, within_s=0)
    os.kill(pid, signal.SIGKILL)


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        listen(["/no/such/shell"], env=ENV, cwd=tmp_path, until=b"x", timeout_s=1)


def test_what_is_said_lies_on_an_input_that_stays_open(tmp_path: Path) -> None:
    code = (
        "import select, sys\n"
        "print(sys.stdin.buffer.raw.read(4096), flush=True)\n"
        "ended = select.select([0], [], [], 0.3)[0]\n"
        "print('ended' if ended else 'open', flush=True)\n"
        "print('MARK', flush=True)\n"
    )
    heard = listen(
        [sys.executable, "-c", code],
        env={},
        cwd=tmp_path,
        until=b"MARK",
        say=b"hello\n",
        timeout_s=60,
    )
    assert heard.stdout.splitlines() == [b"b'hello\\n'", b"open", b"MARK"]


def test_a_question_about_all_that_was_said_ends_it(tmp_path: Path) -> None:
    heard = listen(
        ["/bin/sh", "-c", "printf 'a\\nb\\n'; printf 'c\\n'; sleep 60"],
        env={},
        cwd=tmp_path,
        until=lambda said: len(said.splitlines()) == 3,
        timeout_s=60,
    )
    assert (heard.end, heard.stdout) == (End.MARK, b"a\nb\nc\n")
