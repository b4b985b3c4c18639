"""The service manager's protocol: sd_notify messages and sockets passed by LISTEN_FDS (H-5).

Knows nothing of the hub; without a service manager every call does nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

_FIRST_PASSED = 3
_USEC_PER_S = 1_000_000


def notify(env: Mapping[str, str], message: str) -> None:
    """Send one message (`READY=1`, `STOPPING=1`, `WATCHDOG=1`) if NOTIFY_SOCKET is set."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect(name)
        channel.send(message.encode())


def watchdog_s(env: Mapping[str, str]) -> float | None:
    """Return the interval in which the service manager wants a sign of life, or None."""
    usec = env.get("WATCHDOG_USEC", "")
    if not usec.isdecimal() or int(usec) == 0:
        return None
    if env.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(usec) / _USEC_PER_S / 2


def passed_socket(env: Mapping[str, str]) -> int | None:
    """Return the descriptor of the one socket passed to this very process, or None."""
    if env.get("LISTEN_PID") != str(os.getpid()) or env.get("LISTEN_FDS") != "1":
        return None
    return _FIRST_PASSED
