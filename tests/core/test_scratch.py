from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MAKE = """
import os, signal
from tfx.core.scratch import scratch
with scratch("probe") as folder:
    (folder / "inside").write_text("x")
    print(folder, flush=True)
    if os.environ.get("DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
"""
LONG_AGO = 1_000_000_000


def make(tmp_path: Path, **extra: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", MAKE],
        env={"TMPDIR": str(tmp_path)} | extra,
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    return Path(done.stdout.decode().strip())


def test_d49_a_scratch_folder_goes_with_its_process(tmp_path: Path) -> None:
    assert make(tmp_path).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_d49_the_next_run_removes_what_a_killed_one_left_an_hour_ago(tmp_path: Path) -> None:
    left = make(tmp_path, DIE="1")
    make(tmp_path)
    assert left.is_dir(), "its process may be one of another container"
    os.utime(left, (LONG_AGO, LONG_AGO))
    make(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["alive", "link", "other", "file"])
def test_d49_what_is_not_surely_of_a_dead_process_of_ours_stays(tmp_path: Path, kind: str) -> None:
    dead = make(tmp_path, DIE="1")
    place = {
        "alive": tmp_path / f"tfx-probe-{os.getpid()}-abc",
        "other": tmp_path / "tfx-probe-things",
    }.get(kind, dead)
    dead.rename(tmp_path / "aside")
    (tmp_path / "aside").rename(place) if kind not in {"link", "file"} else None
    if kind == "link":
        place.symlink_to(tmp_path / "aside")
    elif kind == "file":
        place.write_text("x")
    os.utime(place, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    if kind == "link":
        os.utime(tmp_path / "aside", (LONG_AGO, LONG_AGO))
    make(tmp_path)
    assert place.lstat()
    if kind == "link":
        assert (tmp_path / "aside" / "inside").exists()


LEAVE = """
import os, threading
from tfx.core.scratch import scratch
made, cancelled = threading.Event(), threading.Event()
def probe():
    global folder
    with scratch("probe") as folder:
        for number in range(2000):
            (folder / str(number)).mkdir()
        made.set()
        cancelled.wait()
threading.Thread(target=probe, daemon=True).start()
made.wait()
CANCEL
"""


REMOVING = """
cancelled.set()
while len(os.listdir(folder)) == 2000:
    pass
"""


@pytest.mark.parametrize("cancel", ["", REMOVING], ids=["inside", "removing"])
def test_d49_the_folder_of_a_thread_that_is_not_waited_for_goes_at_the_exit(
    tmp_path: Path, cancel: str
) -> None:
    subprocess.run(
        [sys.executable, "-c", LEAVE.replace("CANCEL", cancel)],
        env={"TMPDIR": str(tmp_path)},
        check=True,
        timeout=60,
    )
    assert list(tmp_path.iterdir()) == []
