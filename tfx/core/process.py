"""Run, spawn and identify processes: the only door to `subprocess`.

Knows nothing of what the programs mean; the environment and the time-out are always given.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from tfx.core.identity import start_token
from tfx.core.pipes import Drain, feed

_STEP_S = 0.005
_REAP_S = 2.0
_running: set[int] = set()  # leaders of the groups that `run` waits for
_running_guard = threading.Lock()
_closing = threading.Event()  # nothing more is started


class Closing(OSError):
    """No program is started any more: this one is about to end."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended: `code` is None when it was killed at the time-out."""

    argv: tuple[str, ...]
    code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool = False

    @property
    def timed_out(self) -> bool:
        """True when the time-out ended it."""
        return self.code is None

    @property
    def ok(self) -> bool:
        """True when it ended by itself with status 0."""
        return self.code == 0


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    limit_bytes: int = 4 * 1024 * 1024,
    cancel: threading.Event | None = None,
) -> Completed:
    """Run a program to its end in a session of its own; at the time-out kill its whole group.

    Standard input is closed unless `stdin` is given. Each stream keeps at most `limit_bytes`.
    Once `cancel` is set nothing is started any more: that counts as killed at the time-out.
    Raises OSError when the program cannot be started, or when we are about to end.
    """
    with _running_guard:  # so that `kill_running` sees it or it is not there
        if _closing.is_set():
            raise Closing
        if cancel is not None and cancel.is_set():
            return Completed(tuple(argv), None, b"", b"")
        started = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        _running.add(started.pid)
    with started as child:
        streams = [Drain(child.stdout, limit_bytes), Drain(child.stderr, limit_bytes)]
        feeder = threading.Thread(target=feed, args=(child.stdin, stdin), daemon=True)
        feeder.start()
        try:
            code: int | None = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with _running_guard:
                kill_group(child.pid)
                child.wait()
                _running.discard(child.pid)
        out, err = (drain.finish() for drain in streams)
        feeder.join(1)
    return Completed(tuple(argv), code, out, err, any(drain.truncated for drain in streams))


Child: TypeAlias = subprocess.Popen[bytes]


def start_piped(argv: Sequence[str], *, env: Mapping[str, str]) -> Child:
    """Start a program in a group of its own with pipes on all three; raises OSError."""
    return subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )


def wait_for(child: Child, timeout_s: float) -> int | None:
    """Return how a program ended, or None when it has not by then."""
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def kill_running() -> None:
    """Kill the group of every program that another thread still waits for in `run`.

    For a program that ends while its threads do not: nothing of ours is left behind.
    """
    with _running_guard:
        for pid in _running:
            kill_group(pid)


def end_all() -> None:
    """Kill what `run` waits for in other threads, and start nothing more in it.

    For an interrupted program: its threads go on until the interpreter ends.
    """
    _closing.set()
    kill_running()


def run_attached(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run a program that speaks to the user, its standard output on our stderr; return its code.

    Raises OSError when it cannot be started.
    """
    return subprocess.run(list(argv), env=dict(env), stdout=2, check=False).returncode


def spawn_detached(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
) -> int:
    """Start a program that outlives us, in a session of its own, in `/`; return its pid.

    It inherits no descriptor but `pass_fds`, `stdin` and `stderr` (H-18). Raises OSError.
    """
    child = subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd="/",
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
        close_fds=True,
        pass_fds=tuple(pass_fds),
    )
    child.returncode = 0  # init reaps it; the destructor must not warn about a daemon
    return child.pid


@dataclass(frozen=True, slots=True)
class Streams:
    """The open files of a program; `announce` gets its pid and a line end before it begins."""

    stdin: int
    stdout: int
    stderr: int
    announce: int | None = None

    def begin(self) -> None:
        """Announce; runs between fork and exec and so does nothing but one system call."""
        if self.announce is not None:
            os.write(self.announce, b"%d\n" % os.getpid())


class Session:
    """A program in a session of its own: two output pipes open and input closed, or `streams`.

    `stdin` is a descriptor to read from instead of the closed input.

    The leader stays unreaped until `end`, so that its group's number cannot be taken by a
    stranger between two signals.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        streams: Streams | None = None,
        stdin: int | None = None,
    ) -> None:
        """Start it; raises OSError when the program or the directory is not usable."""
        given = subprocess.DEVNULL if stdin is None else stdin
        self._child = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=streams.stdin if streams else given,
            stdout=streams.stdout if streams else subprocess.PIPE,
            stderr=streams.stderr if streams else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=streams.begin if streams and streams.announce is not None else None,  # noqa: PLW1509  (see begin)
        )
        self.pid = self._child.pid
        self.stdout, self.stderr = (
            -1 if pipe is None else pipe.fileno()
            for pipe in (self._child.stdout, self._child.stderr)
        )

    def exit_code(self) -> int | None:
        """Return how the leader ended, -N for signal N, or None while it runs; reaps nothing."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def end(self, *, grace_s: float = 0.02) -> None:
        """Kill every group of the session, TERM first, and reap the leader.

        With job control on a shell gives each job a group of its own, so the leader's group is
        not all. What left the session is not ours to end. The pipes stay readable.
        """
        if self._child.returncode is not None:
            return
        for group in self._groups():
            kill_group(group, signal.SIGTERM)
        until = time.monotonic() + grace_s
        time.sleep(_STEP_S)
        while self.exit_code() is None and time.monotonic() < until:
            time.sleep(_STEP_S)
        killed: set[int] = set()
        while groups := self._groups() - killed:  # a job may start another before it dies
            for group in groups:
                kill_group(group)
            killed |= groups
        with contextlib.suppress(subprocess.TimeoutExpired):  # a dead file system may hold it
            self._child.wait(_REAP_S)

    def _groups(self) -> set[int]:
        """Return the process groups of the session; where /proc is absent, the leader's alone."""
        groups = {self.pid}
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                groups.add(os.getpgid(pid))
        return groups

    def _members(self) -> Iterator[int]:
        """Yield the processes of the session, ended ones included; nothing without /proc."""
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir("/proc"):  # noqa: PTH208  (names are enough, and many)
                with contextlib.suppress(ValueError, ProcessLookupError, PermissionError):
                    if os.getsid(pid := int(name)) == self.pid:
                        yield pid

    def is_over(self) -> bool:
        """Say whether nothing of the session runs any more, as far as can be seen."""
        for pid in self._members():
            with contextlib.suppress(OSError):
                if start_token(pid) is not None:
                    return False
        return True

    def reap(self) -> None:
        """Wait for the leader alone; what it left running goes on."""
        self._child.wait()

    def close(self) -> None:
        """End the group and close the pipes."""
        self.end()
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()


def kill_group(pid: int, signum: int = signal.SIGKILL) -> None:
    """Signal the process group that `pid` leads; a group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def signal_exactly(pid: int, token: str, signum: int) -> bool:
    """Signal the process with this pid and start token, and never a later one (H-15).

    Through a pidfd where the system has one: it is opened first and the start token read after,
    so the number cannot change its owner in between. False when that process is gone.
    Raises PermissionError for somebody else's process.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # no pidfd here: the check is as close as it can be
        if start_token(pid) != token:
            return False
        os.kill(pid, signum)
        return True
    try:
        if start_token(pid) != token:
            return False
        signal.pidfd_send_signal(descriptor, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True
