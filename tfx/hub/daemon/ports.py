"""The listening socket: bind, choose a free port, name who holds a taken one.

Knows nothing of HTTP.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from tfx.errors import JsonValue, OperationFailed

HOST = "127.0.0.1"
_BACKLOG = 1024
_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class Listening:
    """A bound and listening socket, and whether it is on another port than preferred."""

    socket: socket.socket
    port: int
    instead_of: int | None = None


def listen(port: int, *, strict: bool) -> Listening:
    """Bind to the loopback address and listen.

    A port that was asked for (`strict`) is taken or refused, never exchanged; the preferred one
    is exchanged for a free one when a stranger holds it (H-8). Raises OperationFailed that
    names the holder (`port-taken`) or the reason (`port-refused`).
    """
    try:
        return _bound(port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise OperationFailed(
                f"port {port} on {HOST} cannot be used: {error.strerror}",
                code="port-refused",
                hint="tfx hub start --port 0",
                details={"port": port},
            ) from error
        if strict:
            raise taken(port) from error
    free = _bound(0)
    return Listening(free.socket, free.port, instead_of=port)


def adopt(descriptor: int) -> Listening:
    """Take over a listening socket that the service manager opened (H-5).

    Raises OperationFailed unless it is a TCP socket that listens on a loopback address.
    """
    given = socket.socket(fileno=descriptor)
    with contextlib.suppress(OSError):
        if (
            given.type == socket.SOCK_STREAM
            and given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            and given.family == socket.AF_INET
            and given.getsockname()[0].startswith("127.")
        ):
            given.setblocking(False)  # noqa: FBT003  (the socket API has no keyword)
            given.set_inheritable(False)
            return Listening(given, given.getsockname()[1])
    given.close()
    raise OperationFailed(
        "the socket passed in LISTEN_FDS is not a listening TCP socket on a loopback address",
        code="bad-socket",
        hint=f"ListenStream={HOST}:27888 in the socket unit",
    )


def is_listening(port: int) -> bool:
    """Say whether anything accepts connections on the loopback port."""
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def taken(port: int) -> OperationFailed:
    """Return the error of an asked port that somebody holds."""
    holder = holder_of(port)
    details: dict[str, JsonValue] = {"port": port}
    if holder:
        details |= {"pid": holder[0], "name": holder[1]}
    who = f"{holder[1]} (pid {holder[0]})" if holder else "another process"
    return OperationFailed(
        f"port {port} on {HOST} is held by {who}; nothing was started",
        code="port-taken",
        hint="tfx hub start --port 0",
        details=details,
    )


def holder_of(port: int) -> tuple[int, str] | None:
    """Return pid and name of the process that listens on a port, where they are readable."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
            if any(_target(entry.path) in wanted for entry in entries):
                return int(process.name), (process / "comm").read_text("utf-8").strip()
    return None


def _bound(port: int) -> Listening:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # a port in TIME_WAIT of our last run is free; one that is listened on still refuses
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)  # noqa: FBT003  (the socket API has no keyword)
    except BaseException:
        listener.close()
        raise
    return Listening(listener, listener.getsockname()[1])


def _listening_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _target(link: str) -> str:
    with contextlib.suppress(OSError):
        return str(Path(link).readlink())
    return ""
