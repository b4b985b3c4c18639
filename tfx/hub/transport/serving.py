"""uvicorn's HTTP protocol on our own loop and socket: start, stop accepting, finish.

Knows nothing of what is served. uvicorn's own server is not used: it binds late, owns the
signals and looks ten times a second whether to stop.
"""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tfx.hub.transport.connection import BoundedConnection
from tfx.hub.transport.http import Asgi

_KEEP_ALIVE_S = 75
_BACKLOG = 1024
_STEPS = 10


class Serving:
    """The served socket, for at most so many connections at once. They live until `finish`."""

    def __init__(self, app: Asgi, most_connections: int) -> None:
        self._most = most_connections
        self._config = Config(
            app=cast("str", app),  # an ASGI callable; its declared type is uvicorn's private one
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        self._config.load()
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept connections of a bound socket; when this returns they are served."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=listener, backlog=_BACKLOG)

    def stop_accepting(self) -> None:
        """Close the socket and the idle connections; running calls go on to their answer."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()

    async def finish(self, limit_s: float) -> int:
        """Wait for the running calls, at most so long; return how many were cut off.

        In steps: time in which this whole process stood still counts as one of them at most.
        """
        for _ in range(_STEPS):
            if not self._state.tasks:
                break
            await asyncio.wait(tuple(self._state.tasks), timeout=limit_s / _STEPS)
        cut = tuple(task for task in self._state.tasks if not task.done())
        for task in cut:
            task.cancel()
        if cut:
            await asyncio.wait(cut, timeout=limit_s)
        for connection in tuple(self._state.connections):
            connection.transport.close()
        return len(cut)

    def _protocol(self) -> asyncio.Protocol:
        return BoundedConnection(self._config, self._state, most=self._most)
