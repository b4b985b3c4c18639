"""A model on loopback that answers "MOCK OK" in the wire formats of the agent CLIs.

It keeps every request, so that a test sees what a real client sent; it knows no client.
"""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = "MOCK OK"


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: dict[str, Any]


@dataclass(slots=True)
class Model:
    url: str
    requests: list[Request] = field(default_factory=list)


def _messages() -> list[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "mock", "content": []}
    stop: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, **stop, "usage": usage}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": ANSWER},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {**stop, "stop_reason": "end_turn"},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def _responses() -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
    done = {**item, "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "r", "object": "response", "model": "mock"}
    return [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [done], "usage": usage},
        },
    ]


def _completions() -> list[dict[str, Any]]:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    said = {"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}
    stop = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [{**chunk, "choices": [said]}, {**chunk, "choices": [stop], "usage": usage}]


def _gemini() -> list[dict[str, Any]]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": usage}]


def answer(path: str) -> list[dict[str, Any]]:
    """Return the events of the answer in the format that belongs to a path."""
    for end, events in (
        ("/messages", _messages),
        ("/responses", _responses),
        ("/chat/completions", _completions),
        ("GenerateContent", _gemini),
    ):
        if path.endswith(end):
            return events()
    return []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _reply(self, data: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._reply(b'{"object": "list", "data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        path = self.path.partition("?")[0]
        events = answer(path)
        if not events:
            self._reply(b"{}", "application/json")
            return
        self.model.requests.append(Request(path, json.loads(body)))
        lines = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            if "type" in event
            else f"data: {json.dumps(event)}\n\n"
            for event in events
        ]
        if path.endswith("/chat/completions"):
            lines.append("data: [DONE]\n\n")
        self._reply("".join(lines).encode(), "text/event-stream")


@contextmanager
def model() -> Iterator[Model]:
    """Serve on a free loopback port until the block ends."""

    class Handler(_Handler):
        model = Model("")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.model.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Handler.model
        finally:
            server.shutdown()
            thread.join()
