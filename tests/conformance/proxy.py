"""A byte pipe in front of a hub that adds the bearer token the conformance suite cannot send."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator

_END = b"\r\n\r\n"


@contextlib.contextmanager
def with_token(port: int, token: str) -> Iterator[int]:
    """Serve on a free port; every request head gets the token and closes its connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, port, token), daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def _accept(listener: socket.socket, port: int, token: str) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_carry, args=(client, port, token), daemon=True).start()


def _carry(client: socket.socket, port: int, token: str) -> None:
    with client, contextlib.suppress(OSError):
        head = b""
        while _END not in head:
            chunk = client.recv(65_536)
            if not chunk:
                return
            head += chunk
        head, _, body = head.partition(_END)
        head = re.sub(rb"(?im)^connection:[^\r\n]*\r\n", b"", head)
        head += b"\r\nConnection: close\r\nAuthorization: Bearer " + token.encode()
        with socket.create_connection(("127.0.0.1", port)) as hub:
            hub.sendall(head + _END + body)
            threading.Thread(target=_pump, args=(client, hub), daemon=True).start()
            _pump(hub, client)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
