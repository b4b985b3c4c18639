"""Scratch folders that go at the end, and those of killed processes, which did not.

Knows nothing of what is put into them.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

_STALE_S: Final = 3600  # far above the longest time-out of a probe
_NAME: Final = re.compile(r"tfx-[a-z]+-(?P<pid>\d+)-\w+")
_TRIES: Final = 5  # a process that was killed may write its last while its folder goes
_TRY_AGAIN_S: Final = 0.02

_open: Final[set[Path]] = set()
_changing: Final = threading.RLock()


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """Give a private folder in TMPDIR and remove it; first those that dead processes left there.

    `purpose` is a word of small letters. The end of the interpreter removes the folders of
    threads that it does not wait for.
    """
    place = Path(tempfile.gettempdir())
    _sweep(place)
    with _changing:
        _at_exit()
        folder = Path(tempfile.mkdtemp(prefix=f"tfx-{purpose}-{os.getpid()}-", dir=place))
        _open.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _open.discard(folder)


@cache
def _at_exit() -> None:
    atexit.register(_remove_open, os.getpid())


def _remove_open(pid: int) -> None:
    """Remove what is open when the process ends: an interrupt leaves threads in the middle."""
    if os.getpid() != pid:  # a forked child: they are its parent's
        return
    _changing.acquire()  # and never released: no thread makes another one from here on
    for folder in tuple(_open):
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(_TRY_AGAIN_S)


@cache
def _sweep(place: Path) -> None:
    """Remove the folders of this user's dead processes, once for each run of the program."""
    try:
        names = [entry.name for entry in os.scandir(place)]
    except OSError:
        return
    for name in names:
        found = _NAME.fullmatch(name)
        if found is not None and is_stale(place / name, int(found["pid"])):
            shutil.rmtree(place / name, ignore_errors=True)


def is_stale(folder: Path, pid: int) -> bool:
    """Say whether a folder is this user's, an hour old, and its process is gone.

    The age counts too, since a process of another container has no number here.
    """
    try:
        info = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
    if not ours or time.time() - info.st_mtime < _STALE_S:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
