"""One HTTP exchange with a hub on this machine, over the standard library.

Knows nothing of operations; an import of 20 ms instead of the 90 ms of a full client, and no
proxy variable of the environment can send a token elsewhere.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from tfx.errors import AgentUnavailable, InvalidRequest

CUT: Final = (ConnectionResetError, BrokenPipeError)
"""What is raised when a hub that was there goes away; http.client's RemoteDisconnected is one."""
_PORT_OF_HTTP: Final = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of a response."""

    status: int
    body: bytes


class Exchange:
    """A connection that is opened on first use and kept for the next request."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise InvalidRequest(f"not an http address of a hub: {url}", code="bad-url")
        try:
            self._port = parts.port or _PORT_OF_HTTP
        except ValueError as error:
            raise InvalidRequest(f"not an http address of a hub: {url}", code="bad-url") from error
        self._host = parts.hostname
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> Answer:
        """Send one request and return its answer.

        A kept connection that the hub is seen to have closed is opened again. One that breaks
        before any byte of an answer is tried again once if the request is `repeatable`: the hub
        may have done what it asks. Raises OSError or http.client.HTTPException otherwise.
        """
        if self._is_closed_by_peer():
            self.close()
        reused = self._connection is not None
        try:
            return self._once(method, path, body, timeout_s, headers or {})
        except CUT:
            self.close()
            if not (reused and repeatable):
                raise
        return self._once(method, path, body, timeout_s, headers or {})

    def abort(self) -> None:
        """End the request that another thread waits for; it raises OSError or HTTPException."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _is_closed_by_peer(self) -> bool:
        """Say whether an idle connection has something to read: nothing but its end is due."""
        connection = self._connection
        if connection is None or connection.sock is None:
            return False
        watch = select.poll()
        watch.register(connection.sock, select.POLLIN)
        return bool(watch.poll(0))

    def open_stream(
        self, path: str, *, headers: dict[str, str], timeout_s: float
    ) -> http.client.HTTPResponse:
        """Return an open GET response to read lines from; the caller closes it."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        connection.request("GET", path, headers={**self._headers, **headers})
        return connection.getresponse()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> Answer:
        connection = self._connection
        if connection is None:
            connection = http.client.HTTPConnection(self._host, self._port)
            self._connection = connection
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        kind = {} if body is None else _JSON
        try:
            connection.request(
                method, path, body=body, headers={**self._headers, **kind, **headers}
            )
            response = connection.getresponse()
            answer = Answer(response.status, response.read())
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        return answer


_JSON = {"Content-Type": "application/json"}


def unreachable(url: str, error: Exception) -> AgentUnavailable:
    """Return the error of a hub that cannot be reached at its address."""
    return AgentUnavailable(
        f"the hub at {url} does not answer: {str(error) or type(error).__name__}",
        code="hub-unreachable",
        hint="tfx hub status",
        details={"url": url},
    )
