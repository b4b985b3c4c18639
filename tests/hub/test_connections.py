"""What a stranger may cost the hub before the doors see a request (H-49)."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.hub.waiting import pass_time, until_in_loop
from tests.support import bare_env, tfx
from tfx.hub.daemon import limits, ports
from tfx.hub.transport import connection
from tfx.hub.transport.replies import Receive, Scope, Send, reply
from tfx.hub.transport.serving import Serving


async def _answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await reply(send, 200, b"{}")


def served(most: int, story: Callable[[int], Awaitable[None]]) -> None:
    """Serve an application that always answers, on a real socket, for the time of a story."""

    async def play() -> None:
        listening = ports.listen(0, strict=True)
        serving = Serving(_answer, most)
        await serving.start(listening.socket)
        try:
            await story(listening.port)
        finally:
            serving.stop_accepting()
            await serving.finish(5)

    asyncio.run(play())


@pytest.mark.parametrize("piece", [b"X-Long: " + b"a" * 4096, b"X-%d: 1\r\n" * 512])
def test_h_49_a_head_that_does_not_end_is_cut_off(hub: RunningHub, piece: bytes) -> None:
    before = _rss_kb(hub.pid)
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as stranger:
        stranger.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with pytest.raises(OSError, match=r"reset|Broken"):
            stranger.sendall(piece * 10_000)  # 40 MB
    assert hub.get("/health").status == 200
    assert _rss_kb(hub.pid) - before < 8_000


def test_h_49_a_long_head_is_told_why(hub: RunningHub) -> None:
    filler = ("X", "a" * 1_000_000)
    reply = hub.request("GET", "/health", None, [("Host", "127.0.0.1"), filler])
    assert (reply.status, reply.code) == (431, "head-too-large")
    large = ("X", "a" * 30_000)
    assert hub.request("GET", "/health", None, [("Host", "127.0.0.1"), large]).status == 200


def test_h_49_a_large_body_behind_a_head_is_no_large_head(hub: RunningHub) -> None:
    assert hub.post("/v1/wait", b'{"agent_id":"bob","wait_ms":0}' + b" " * 900_000).status == 200


def test_h_49_a_slow_head_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.05)

    async def story(port: int) -> None:
        for begun in (b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            with contextlib.suppress(ConnectionError):  # it closed before it had read
                await asyncio.wait_for(reader.read(), 60)  # until the hub closes
            writer.close()

    served(100, story)


def test_h_49_a_call_that_waits_is_not_a_slow_head() -> None:
    async def story(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await reader.readuntil(b"{}")
            pass_time(connection.HEAD_S + 1)
            await asyncio.sleep(0.01)  # what was due is done
        writer.close()

    served(100, story)


def test_h_49_connections_are_bounded_and_come_back() -> None:
    async def story(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        for _reader, each in held:
            each.close()
            await each.wait_closed()
        for _ in range(200):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            with contextlib.suppress(ConnectionError):  # refused once more
                answer = await reader.read()
            writer.close()
            if answer:
                return
        pytest.fail("the places did not come back")

    served(3, story)


def test_h_17_the_time_in_which_the_hub_stood_still_cuts_no_call_off() -> None:
    async def story() -> None:
        may_end = asyncio.Event()

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await may_end.wait()
            await _answer(scope, receive, send)

        listening = ports.listen(0, strict=True)
        serving = Serving(answer, 3)
        await serving.start(listening.socket)
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until_in_loop(lambda: serving._state.tasks)
        serving.stop_accepting()
        finishing = asyncio.create_task(serving.finish(60))
        await asyncio.sleep(0)
        pass_time(120)
        await asyncio.sleep(0.01)  # what is over is told
        may_end.set()
        assert await finishing == 0
        assert b"200" in await reader.read()
        writer.close()

    asyncio.run(story())


def test_h_49_the_hub_asks_for_the_descriptors_it_may_have(home: Path) -> None:
    script = f"ulimit -Sn 256; exec {sys.executable} -m tfx hub start --port 0 --json"
    ran = tfx(home, command=("/bin/sh", "-c", script))
    try:
        found = _limits(ran.data["pid"])
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = limits.WANTED_FILES if hard == resource.RLIM_INFINITY else hard
        assert int(found["Max open files"]) >= min(limits.WANTED_FILES, most)
    finally:
        tfx(home, "hub", "stop")


def test_h_46_no_core_dump_holds_a_credential(home: Path) -> None:
    script = f"ulimit -Sc unlimited; exec {sys.executable} -m tfx hub start --port 0 --json"
    ran = tfx(home, command=("/bin/sh", "-c", script))
    try:
        assert _limits(ran.data["pid"])["Max core file size"] == "0"
    finally:
        tfx(home, "hub", "stop")


def test_h_49_few_descriptors_leave_a_few_connections(home: Path) -> None:
    code = (
        "import resource; from tfx.hub.daemon import limits;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100));"
        "print(limits.most_connections())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare_env(home), capture_output=True, check=True
    )
    assert int(done.stdout) == 100 - limits.KEPT_FILES


def _limits(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()[1:]
    return {line[:26].strip(): line[26:].split()[0] for line in lines}


def _rss_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
