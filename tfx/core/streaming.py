"""Run a program and hand over its output line by line, until it ends or hangs.

Knows nothing of what the lines mean; `process` starts and ends the program.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfx.core import process
from tfx.core.pipes import Drain, feed


@dataclass(frozen=True, slots=True)
class Streamed:
    """How a program ended that was read line by line.

    `killed` says why, if we ended it: `silent`, `garbage` or `too-much`.
    """

    code: int
    killed: str | None
    stderr: bytes


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: bytes,
    on_line: Callable[[bytes], bool],
    silence_s: float,
    limit_bytes: int = 64 * 1024 * 1024,
) -> Streamed:
    """Run a program in a group of its own and hand over its output line by line.

    `on_line` says whether a line made sense. The program is killed when no such line came for
    `silence_s`, whatever else it sends, when a line is longer than `limit_bytes`, or when it goes
    on for `silence_s` after the end of its output. An exception of ours (an interrupt, one of
    `on_line`) is passed on once SIGTERM, or SIGKILL after `silence_s`, has ended it. Raises
    OSError when it cannot be started.
    """
    with process.start_piped(argv, env=env) as child:
        noise = Drain(child.stderr, 65_536)
        feeder = threading.Thread(target=feed, args=(child.stdin, stdin), daemon=True)
        feeder.start()
        try:
            killed = _read_lines(child, on_line, silence_s, limit_bytes)
            if killed is None and process.wait_for(child, silence_s) is None:
                killed = "silent"
            if killed is not None:
                process.kill_group(child.pid)
        except BaseException:
            process.kill_group(child.pid, signal.SIGTERM)
            process.wait_for(child, silence_s)
            process.kill_group(child.pid)
            raise
        finally:
            code = child.wait()
            feeder.join(1)
            child.stdin = None  # closed by the feeder; a program that never read it is no error
    return Streamed(code, killed, noise.finish())


def _read_lines(
    child: process.Child,
    on_line: Callable[[bytes], bool],
    silence_s: float,
    limit_bytes: int,
) -> str | None:
    """Read until the end; return why the program must be killed, or None."""
    if child.stdout is None:
        return None
    descriptor = child.stdout.fileno()
    kept = bytearray()
    spoke = False
    until = time.monotonic() + silence_s
    while True:
        left_s = until - time.monotonic()
        # what was said in time is heard, also by one who stood still meanwhile
        if not select.select([descriptor], [], [], max(0.0, left_s))[0]:
            return "garbage" if spoke else "silent"
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            return None
        spoke = True
        kept += chunk
        *lines, kept = kept.split(b"\n")
        for line in lines:
            if on_line(bytes(line)):
                spoke, until = False, time.monotonic() + silence_s
        if len(kept) > limit_bytes:
            return "too-much"
        if spoke and left_s <= 0:
            return "garbage"
