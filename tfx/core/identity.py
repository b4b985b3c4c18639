"""Tell a process apart from a later one with its pid, and say whether it lives.

Starts and signals nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from socket import gethostname

_STATE_FIELD = 0  # of /proc/<pid>/stat, counted behind the command name
_START_TIME_FIELD = 19
_ENDED = (b"Z", b"X")


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


class Proof(StrEnum):
    """Why a recorded process is certainly gone (EV-B4)."""

    PID_GONE = "pid-gone"
    TOKEN_DIFFERS = "token-differs"  # noqa: S105  (the start token of a process)
    BOOT_DIFFERS = "boot-differs"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at a recorded process showed; a dead one comes with its proof."""

    liveness: Liveness
    proof: Proof | None = None


def identify(pid: int | None = None) -> ProcessIdentity | None:
    """Return the identity of a process (ourselves by default), or None if it is not there."""
    pid = os.getpid() if pid is None else pid
    token = start_token(pid)
    if token is None:
        return None
    return ProcessIdentity(gethostname(), boot_id(), pid, token, pid_namespace())


def liveness(identity: ProcessIdentity) -> Liveness:
    """Say whether a recorded process lives: dead only on proof, never on doubt (EV-B4)."""
    return examine(identity).liveness


def examine(identity: ProcessIdentity) -> Finding:
    """Say whether a recorded process lives and, where it does not, what proves it (EV-B4).

    Another host, another pid namespace and a process that may not be looked at prove nothing.
    """
    unknown = Finding(Liveness.UNKNOWN)
    if identity.host != gethostname() or not identity.start_token:
        return unknown
    if identity.boot_id != boot_id():
        proven = identity.boot_id and boot_id()
        return Finding(Liveness.DEAD, Proof.BOOT_DIFFERS) if proven else unknown
    if identity.pid_namespace != pid_namespace():
        return unknown
    try:
        token = start_token(identity.pid)
    except OSError:
        return unknown
    if token == identity.start_token:
        return Finding(Liveness.ALIVE)
    return Finding(Liveness.DEAD, Proof.PID_GONE if token is None else Proof.TOKEN_DIFFERS)


def start_token(pid: int) -> str | None:
    """Return the start time of a process as text, or None if there is no such process.

    One that has ended and waits for its parent is gone: where nobody reaps, it would stay for ever.
    Raises OSError for one that may not be looked at.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _psutil_token(pid)
    fields = stat.rpartition(b")")[2].split()
    return None if fields[_STATE_FIELD] in _ENDED else fields[_START_TIME_FIELD].decode()


def _psutil_token(pid: int) -> str | None:
    import psutil  # noqa: PLC0415  (only where /proc is absent)

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.Error as error:
        raise PermissionError(f"process {pid} cannot be looked at") from error


def boot_id() -> str:
    """Return the id of this boot, or an empty string where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the pid namespace of this process, or an empty string."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
