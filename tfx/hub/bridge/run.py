"""The life of a bridge: lines in, calls side by side, lines out; it ends with input or parent.

Knows no tool and holds no database; standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import select
import signal
import sys
import threading
from typing import Final

from tfx.core.paths import Paths
from tfx.errors import JsonValue, TfxError
from tfx.hub.bridge import frames
from tfx.hub.bridge.frames import Line
from tfx.hub.bridge.heart import Heart
from tfx.hub.bridge.link import Hub, Link
from tfx.hub.failures import to_wire

MOST_CALLS: Final = 32
LONGEST_LINE: Final = 4 * 1024 * 1024
GRACE_S: Final = 2.0
"""So long what runs at the end of input may go on to its answer."""
_CHUNK: Final = 65_536
_PARENT_EVERY_MS: Final = 2_000
_STDIN, _STDOUT = 0, 1
_USAGE: Final = "usage: tfx hub bridge [--tools NAME[,NAME]]"
_HELP: Final = """Usage: tfx hub bridge [--tools NAME[,NAME]]

  Speak MCP on standard input and output for one agent.

  `tfx setup` writes this command into the agents' settings. It starts the hub
  when needed, survives its restarts, and ends with its input.

Options:
  --tools NAME[,NAME]  Groups of tools: bus for messages, work for tasks.
                       [default: bus]
  -h, --help           Show this message and exit."""


class Bridge:
    """Carries the calls of one client."""

    def __init__(self, paths: Paths, path: str) -> None:
        self._hub = Hub(paths)
        self._heart = Heart(self._hub)
        self._path = path
        self._waiting: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running: dict[JsonValue, Link] = {}
        self._threads = 0
        self._open = 0
        self._idle = threading.Event()
        self._idle.set()

    def take(self, data: bytes) -> None:
        """Take one line of the client."""
        line = frames.read(data)
        if line is None:
            self._say(frames.failure(None, frames.PARSE, "a line that is not JSON"))
        elif line.method == frames.CANCELLED:
            with self._lock:
                link = self._running.get(line.cancels)
            if link is not None:
                link.cancel()
        elif line.ids:
            self._hub.client = self._hub.client or line.client
            self._start(line)
        # any other notification changes nothing at a hub that remembers no client

    def finish(self, limit_s: float) -> None:
        """Wait for what runs, at most so long, and take leave of the hub."""
        self._idle.wait(limit_s)
        self._heart.finish()

    def _start(self, line: Line) -> None:
        with self._lock:
            self._open += 1
            self._idle.clear()
            more = self._open > self._threads and self._threads < MOST_CALLS
            self._threads += more
        self._waiting.put(line)
        if more:
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        link = Link(self._hub)
        while True:
            line = self._waiting.get()
            with self._lock:
                link.begin()
                self._running.update(dict.fromkeys(line.ids, link))
            answer = self._answer(link, line)
            with self._lock:
                for each in line.ids:
                    self._running.pop(each, None)
            if answer:
                self._say(answer)
            self._heart.begin()
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._idle.set()

    def _answer(self, link: Link, line: Line) -> bytes:
        """Return the answer as a line; nothing for a call that the client gave up."""
        headers = {**line.headers(), "Tfx-Op-Id": secrets.token_hex(16)}
        if line.is_batch:
            del headers["Tfx-Op-Id"]  # one key for several calls would make one of them
        try:
            answer = link.call(self._path, line.data, headers)
        except TfxError as error:
            return _failures(line, error.message, to_wire(error))
        if answer is None or not answer.body:
            return b""
        if answer.body.startswith((b'{"jsonrpc"', b"[")):
            return answer.body + b"\n"
        return _failures(line, *_refusal(answer.body))

    def _say(self, data: bytes) -> None:
        """Write a whole line; a client that no longer reads is the end."""
        with _writing:
            try:
                while data:
                    data = data[os.write(_STDOUT, data) :]
            except OSError:
                os._exit(0)


_writing = threading.Lock()


def main(arguments: list[str]) -> int:
    """Run until the end of input or of the parent; return the exit status."""
    path = _path_of(arguments)
    if path is None:
        asked = bool(set(arguments) & {"-h", "--help"})
        print(_HELP if asked else _USAGE, file=sys.stderr)  # noqa: T201  (stdout is the protocol's)
        return 0 if asked else 2
    try:
        paths = Paths.resolve()
    except TfxError as error:
        print(f"tfx hub bridge: {error.message}", file=sys.stderr)  # noqa: T201  (the same)
        return int(error.exit)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    bridge = Bridge(paths, path)
    if _pump(bridge):
        bridge.finish(GRACE_S)
    sys.stdout.flush()
    os._exit(0)  # threads that still wait for the hub must not hold us


def _pump(bridge: Bridge) -> bool:
    """Take lines until the input ends (True) or the parent does (False)."""
    parent = os.getppid()
    watch = select.poll()
    watch.register(_STDIN, select.POLLIN)
    handle = _handle_of(parent)
    if handle is not None:
        watch.register(handle, select.POLLIN)
    rest = b""
    while True:
        ready = watch.poll(None if handle is not None else _PARENT_EVERY_MS)
        if os.getppid() != parent or any(number == handle for number, _ in ready):
            return False
        if not ready:
            continue
        chunk = os.read(_STDIN, _CHUNK)
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop() if chunk else b""
        for line in lines:
            if line.strip():
                bridge.take(line)
        if not chunk:
            return True
        if len(rest) > LONGEST_LINE:
            bridge.take(b"{")  # answered as what it is: no message
            rest = b""


def _handle_of(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends, where the system has one."""
    with contextlib.suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


def _path_of(arguments: list[str]) -> str | None:
    """Return the address that the arguments ask for, or None for what is no use of the bridge."""
    match arguments:
        case []:
            return "/mcp"
        case ["--tools", names] if names.replace(",", "").isalnum():
            return f"/mcp?tools={names}"
        case _:
            return None


def _failures(line: Line, message: str, data: JsonValue) -> bytes:
    return b"".join(frames.failure(each, frames.HUB_FAILED, message, data) for each in line.ids)


def _refusal(body: bytes) -> tuple[str, JsonValue]:
    """Return what the hub says where it does not speak JSON-RPC: doors, sizes, faults."""
    try:
        error = json.loads(body)["error"]
        return str(error["message"]), error
    except (ValueError, LookupError, TypeError):
        return "what answers there is no tfx hub", None
