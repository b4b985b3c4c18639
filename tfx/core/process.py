"""Run, spawn and identify processes: the only door to `subprocess`.

Knows nothing of what the programs mean; the environment and the time-out are always given.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from socket import gethostname
from typing import IO

_START_TIME_FIELD = 19  # field 22 of /proc/<pid>/stat, counted behind the command name


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
) -> Completed:
    """Run a program to its end in a session of its own; at the time-out kill its whole group.

    Standard input is closed unless `stdin` is given. Each stream keeps at most `limit_bytes`.
    Raises OSError when the program cannot be started.
    """
    with subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        streams = [_Drain(child.stdout, limit_bytes), _Drain(child.stderr, limit_bytes)]
        feeder = threading.Thread(target=_feed, args=(child.stdin, stdin), daemon=True)
        feeder.start()
        try:
            code: int | None = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            kill_group(child.pid)
            child.wait()
        out, err = (drain.finish() for drain in streams)
        feeder.join(1)
    return Completed(tuple(argv), code, out, err, any(drain.truncated for drain in streams))


@dataclass(frozen=True, slots=True)
class Streamed:
    """How a program ended that was read line by line; `killed` says why, if we ended it."""

    code: int
    killed: str | None
    stderr: bytes


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: bytes,
    on_line: Callable[[bytes], None],
    silence_s: float,
    limit_bytes: int = 64 * 1024 * 1024,
) -> Streamed:
    """Run a program in a group of its own and hand over its output line by line.

    It is killed when it is silent for `silence_s` or a line is longer than `limit_bytes`. An
    exception of ours (an interrupt, one of `on_line`) is passed on once SIGTERM, or SIGKILL after
    `silence_s`, has ended it. Raises OSError when it cannot be started.
    """
    with subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as child:
        noise = _Drain(child.stderr, 65_536)
        threading.Thread(target=_feed, args=(child.stdin, stdin), daemon=True).start()
        try:
            killed = _read_lines(child, on_line, silence_s, limit_bytes)
            if killed is not None:
                kill_group(child.pid)
        except BaseException:
            kill_group(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(silence_s)
            kill_group(child.pid)
            raise
        finally:
            code = child.wait()
    return Streamed(code, killed, noise.finish())


def _read_lines(
    child: subprocess.Popen[bytes],
    on_line: Callable[[bytes], None],
    silence_s: float,
    limit_bytes: int,
) -> str | None:
    """Read until the end; return why the program must be killed, or None."""
    if child.stdout is None:
        return None
    descriptor = child.stdout.fileno()
    kept = bytearray()
    while True:
        ready, _, _ = select.select([descriptor], [], [], silence_s)
        if not ready:
            return "silent"
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            return None
        kept += chunk
        *lines, kept = kept.split(b"\n")
        for line in lines:
            on_line(bytes(line))
        if len(kept) > limit_bytes:
            return "too-much"


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
    stderr: IO[bytes] | int = subprocess.DEVNULL,
) -> int:
    """Start a program that outlives us, in a session of its own, in `/`; return its pid.

    It inherits no descriptor but `pass_fds` and `stderr` (H-18). Raises OSError.
    """
    child = subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
        close_fds=True,
        pass_fds=tuple(pass_fds),
    )
    child.returncode = 0  # init reaps it; the destructor must not warn about a daemon
    return child.pid


def kill_group(pid: int, signum: int = signal.SIGKILL) -> None:
    """Signal the process group that `pid` leads; a group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


class _Drain:
    """Reads one pipe to its end and keeps the first bytes."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self.truncated = False
        self._pipe = pipe
        self._limit = limit
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        if self._pipe is None:
            return
        with contextlib.suppress(ValueError, OSError):
            while chunk := os.read(self._pipe.fileno(), 65536):
                room = self._limit - len(self._kept)
                self._kept += chunk[:room]
                self.truncated = self.truncated or len(chunk) > room

    def finish(self) -> bytes:
        self._thread.join(2)  # a grandchild that left the group may hold the pipe open
        return bytes(self._kept)


def _feed(pipe: IO[bytes] | None, data: bytes | None) -> None:
    if pipe is None:
        return
    with contextlib.suppress(OSError):
        if data:
            pipe.write(data)
        pipe.close()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Which process this is, told apart from a later one with the same pid (EV-B5)."""

    host: str
    boot_id: str
    pid: int
    start_token: str
    pid_namespace: str


class Liveness(StrEnum):
    """What can be said of a recorded process."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


def identify(pid: int | None = None) -> ProcessIdentity | None:
    """Return the identity of a process (ourselves by default), or None if it is not there."""
    pid = os.getpid() if pid is None else pid
    token = start_token(pid)
    if token is None:
        return None
    return ProcessIdentity(gethostname(), boot_id(), pid, token, pid_namespace())


def liveness(identity: ProcessIdentity) -> Liveness:
    """Say whether a recorded process lives: dead only on proof, never on doubt (EV-B4)."""
    if identity.host != gethostname() or not identity.start_token:
        return Liveness.UNKNOWN
    if identity.boot_id != boot_id():
        return Liveness.DEAD if identity.boot_id and boot_id() else Liveness.UNKNOWN
    if identity.pid_namespace != pid_namespace():
        return Liveness.UNKNOWN
    return Liveness.ALIVE if start_token(identity.pid) == identity.start_token else Liveness.DEAD


def start_token(pid: int) -> str | None:
    """Return the start time of a process as text, or None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _psutil_token(pid)
    return stat.rpartition(b")")[2].split()[_START_TIME_FIELD].decode()


def _psutil_token(pid: int) -> str | None:
    import psutil  # noqa: PLC0415  (only where /proc is absent)

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None


def boot_id() -> str:
    """Return the id of this boot, or an empty string where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


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


def pid_namespace() -> str:
    """Return the pid namespace of this process, or an empty string."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
