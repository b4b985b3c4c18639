"""One HTTP connection with bounds: how large and how slow a request's head may be (H-49).

Knows nothing of what is asked. Anybody on this machine can connect, and the doors see a request
only when its head is whole: without these bounds a stranger could fill memory and descriptors.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

MOST_HEAD_BYTES: Final = 65_536
"""More than that and what one read brings (uvloop: 256 KB) is refused with 431."""
HEAD_S: Final = 15.0
"""A head must be whole so soon after the connection was made or its first byte came."""
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
)
_BODY: Final = (
    b'{"ok":false,"error":{"code":"head-too-large","kind":"invalid-request",'
    b'"message":"the head of the request is too large","hint":null,"details":{}}}'
)


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's protocol, closed on whom it would wait for or read from without end."""

    def __init__(self, config: Config, state: ServerState, *, most: int) -> None:
        super().__init__(config, state, {})
        self._most = most
        self._head_bytes = 0
        self._in_head = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or close it at once when so many are open."""
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.close()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that does not end is cut off."""
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.transport.write(_TOO_LARGE % (len(_BODY), _BODY))
                self.transport.close()
            elif self._patience is None:
                self._wait_for_head()

    def on_message_begin(self) -> None:
        """Start to count a head."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting: from here on the doors decide."""
        self._in_head = False
        self._wait_no_more()
        super().on_headers_complete()

    def _wait_for_head(self) -> None:
        self._patience = self.loop.call_later(HEAD_S, self._lose_patience)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        self.transport.close()
