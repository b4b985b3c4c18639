"""A loopback MCP endpoint that notes which headers clients really send (S-114).

It answers just enough for a client to call itself connected; no token is kept, only its
fingerprint.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.clients.running import fingerprint

_TOOL = {
    "name": "ping",
    "description": "Answer.",
    "inputSchema": {"type": "object", "properties": {}},
}


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    authorization: str | None
    client: str


@dataclass(slots=True)
class Endpoint:
    """`requests` holds what came to `/mcp` since the last `take`."""

    port: int
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def model_url(self) -> str:
        """A model provider that always fails, for clients that start MCP only for a prompt."""
        return f"http://127.0.0.1:{self.port}/v1"

    def take(self) -> list[Request]:
        with self.lock:
            taken, self.requests = self.requests, []
        return taken

    def note(self, request: Request) -> None:
        with self.lock:
            self.requests.append(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: ClassVar[Endpoint]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._note()
        self._answer(405)

    def do_DELETE(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/mcp":
            self._answer(400, {"error": {"message": "no model here"}})
            return
        self._note()
        message = json.loads(body)
        if "id" not in message:
            self._answer(202)
            return
        self._answer(200, {"jsonrpc": "2.0", "id": message["id"]} | _reply(message))

    def _note(self) -> None:
        authorization = self.headers.get("Authorization")
        self.endpoint.note(
            Request(
                self.path,
                None if authorization is None else fingerprint(authorization),
                self.headers.get("User-Agent", ""),
            )
        )

    def _answer(self, status: int, document: object = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)


def _reply(message: dict[str, object]) -> dict[str, object]:
    parameters = message.get("params")
    asked = parameters if isinstance(parameters, dict) else {}
    results: dict[object, object] = {
        "initialize": {
            "protocolVersion": asked.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "endpoint", "version": "1"},
        },
        "tools/list": {"tools": [_TOOL]},
        "ping": {},
    }
    method = message.get("method")
    if method in results:
        return {"result": results[method]}
    return {"error": {"code": -32601, "message": "Method not found"}}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Serve on a free loopback port until the block ends."""

    class Handler(_Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(server.server_port)
        Handler.endpoint = endpoint
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
