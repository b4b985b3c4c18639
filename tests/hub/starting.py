"""What tests of starting a hub share: commands in a HOME, and ports that others hold."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support import Ran, bare_env, tfx
from tfx.core.paths import Paths
from tfx.hub.places import HubFiles


def hub_in(home: Path, env: dict[str, str], *arguments: str) -> Ran:
    return tfx(home, "hub", *arguments, env=env)


def files_of(home: Path) -> HubFiles:
    return HubFiles.of(Paths.resolve(bare_env(home)))


def quiet(home: Path) -> dict[str, str]:
    """An environment whose wanted port nobody can be listening on."""
    return bare_env(home, TFX_HUB_PORT="0")


@contextlib.contextmanager
def held_default_port() -> Iterator[None]:
    """Hold port 27888; where somebody else on this machine keeps it, that is as good."""
    with contextlib.ExitStack() as stack:
        deadline = time.monotonic() + 60  # hubs of other tests are on it for a while
        while time.monotonic() < deadline:
            try:
                stack.enter_context(_on_default_port())
                break
            except OSError:
                time.sleep(0.02)
        yield


def _on_default_port() -> socket.socket:
    holding = socket.socket()
    try:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 27888))
        holding.listen()
    except OSError:
        holding.close()
        raise
    return holding
