"""The hub's log: a rotating private file, and a reader that follows it.

Holds no payloads and no secrets: what is logged are names, counts and ids (H-21, H-46).
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import time
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tfx.errors import OperationFailed

MAX_BYTES = 5 * 1024 * 1024
KEPT = 4  # with the current one: five files
_FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
_TIME = "%Y-%m-%dT%H:%M:%S"
_BLOCK = 65_536
_STDERR = 2


class _LogFile(RotatingFileHandler):
    """A rotating file that is the process's standard error too, across rotations."""

    def _open(self) -> io.TextIOWrapper:
        stream = super()._open()
        os.dup2(stream.fileno(), _STDERR)
        return stream


def to_file(path: Path) -> None:
    """Log to the rotating file; standard error goes there too from now on."""
    _install(_LogFile(path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8"))


def to_stderr() -> None:
    """Log to standard error (`--foreground`): the service manager keeps it."""
    _install(logging.StreamHandler())


def _install(handler: logging.Handler) -> None:
    formatter = logging.Formatter(_FORMAT, _TIME)
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("tfx").setLevel(logging.INFO)
    # anybody who can connect can send bad requests: each would be a line
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def last_lines(path: Path, count: int, *, end: int | None = None) -> list[str]:
    """Return the last lines of the log, reaching into the rotated one when it was just begun.

    `end`: the byte offset in the newest file behind which nothing is read. Raises OperationFailed
    `log-unreadable`.
    """
    lines: list[str] = []
    for each, limit in ((path, end), (path.with_name(f"{path.name}.1"), None)):
        with contextlib.suppress(FileNotFoundError), _opened(each) as file:
            lines = _tail(file, count - len(lines), limit) + lines
        if len(lines) >= count:
            break
    return lines


def follow(path: Path, count: int = 0, *, pause_s: float = 0.25) -> Iterator[str]:
    """Yield the last `count` lines, then each line as it is written, through rotations (H-3).

    The place to go on from is taken before the last lines are read, so none falls between. A log
    that does not exist yet is waited for and then read from its beginning.
    """
    file: io.BufferedReader | None = None
    try:
        if path.exists():
            file = _opened(path)
            yield from last_lines(path, count, end=file.seek(0, os.SEEK_END))
        kept = b""
        while True:
            while file is not None and (block := file.read(_BLOCK)):
                *lines, kept = (kept + block).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in lines)
            if _is_another(path, file):
                if file is not None:
                    file.close()
                file = _opened(path)
                continue
            time.sleep(pause_s)
    finally:
        if file is not None:
            file.close()


def _is_another(path: Path, file: io.BufferedReader | None) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return file is None or now.st_ino != os.fstat(file.fileno()).st_ino


def _opened(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OperationFailed(
            f"{path} cannot be read: {error.strerror}",
            code="log-unreadable",
            hint=f"ls -ld {path}",
        ) from error


def _tail(file: io.BufferedReader, count: int, end: int | None) -> list[str]:
    if count <= 0:
        return []
    position = file.seek(0, os.SEEK_END) if end is None else end
    data = b""
    while position > 0 and data.count(b"\n") <= count:
        step = min(_BLOCK, position)
        position -= step
        file.seek(position)
        data = file.read(step) + data
    return data.decode("utf-8", "replace").splitlines()[-count:]
