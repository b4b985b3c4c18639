"""The bare ceilings of the same stack: an empty handler, and the store without HTTP (K-32)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import uvloop

from tests.benchmarks.load import LANE, TEXT
from tfx.core.clock import SystemClock
from tfx.hub import server
from tfx.hub.daemon import ports
from tfx.hub.daemon.live import SWITCH_S
from tfx.hub.models import AgentId, Caller, RunFacts
from tfx.hub.places import HubFiles
from tfx.hub.settings import HubSettings
from tfx.hub.transport.replies import Receive, Scope, Send, reply
from tfx.hub.transport.serving import Serving
from tfx.hub.wire.agents import RegisterRequest
from tfx.hub.wire.messages import PollRequest, PublishRequest

PAYLOAD = msgspec.Raw(json.dumps({"text": TEXT}).encode())
_LANES = 128
_TAKEN = 60
ANSWER = b'{"ok":true,"data":{"message_id":"m","fanout_count":1,"expires_at_ms":1}}'


async def _empty(_scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await reply(send, 200, ANSWER)


async def serve_empty() -> None:
    """Serve a handler that reads the body and answers a constant; prints its port."""
    listening = ports.listen(0, strict=True)
    await Serving(_empty, 1024).start(listening.socket)
    print(listening.port, flush=True)
    await asyncio.Event().wait()


async def publish_bare(callers: int, operations: int) -> dict[str, object]:
    """Publish through the services without HTTP; return rate and CPU of one operation."""
    with tempfile.TemporaryDirectory() as name:
        files = _files(Path(name))
        clock = SystemClock()
        core = server.open_core(files, HubSettings(), _facts(files), clock)
        await core.start()
        send, register = core.handlers["publish"], core.handlers["register"]
        left = operations

        async def caller(number: int) -> None:
            nonlocal left
            turn = 0
            while left > 0:
                name, turn = f"sink-{number}-{turn}", turn + 1
                await register(Caller(), msgspec.convert(_agent(name), RegisterRequest))
                fields = {"from": "operator", "to": name, "topic": "load", "payload": PAYLOAD}
                request = msgspec.convert(fields, PublishRequest)
                for _ in range(min(LANE, left)):
                    left -= 1
                    await send(Caller(), request)

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(caller(number) for number in range(callers)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        await core.close()
    return {"operations": operations, "seconds": wall, "cpu_ms": cpu / operations * 1000}


async def fill(database: Path, messages: int) -> None:
    """Store that many messages, nearly all of them received and acked, without HTTP."""
    files = _files(database.parent)
    core = server.open_core(files, HubSettings(), _facts(files), SystemClock())
    left = messages

    async def lane(number: int) -> None:
        nonlocal left
        name = f"filled-{number}"
        await core.handlers["register"](Caller(), msgspec.convert(_agent(name), RegisterRequest))
        fields = {"from": "operator", "to": name, "topic": "fill", "payload": PAYLOAD}
        send = msgspec.convert(fields, PublishRequest)
        take = PollRequest(agent_id=AgentId(name), wait_ms=0, max_messages=100, auto_ack=True)
        while left > 0:
            left -= _TAKEN
            for _ in range(_TAKEN):
                await core.handlers["publish"](Caller(), send)
            for _ in range(3):  # answers hold 16 KB at most
                await core.handlers["poll_messages"](Caller(), take)

    await asyncio.gather(*(lane(number) for number in range(_LANES)))
    await core.close()


def _agent(name: str) -> dict[str, object]:
    return {
        "agent_id": name,
        "cli": "codex",
        "capabilities": ["code"],
        "topics": [],
        "heartbeat_ttl_ms": 7_200_000,
    }


def _files(directory: Path) -> HubFiles:
    return HubFiles(
        directory,
        directory / "hub.db",
        directory / "hub.db.lock",
        directory / "state.json",
        directory / "hub.log",
        directory / "token",
        directory / "operator",
    )


def _facts(files: HubFiles) -> RunFacts:
    return RunFacts(
        instance="bench",
        version="0",
        pid=1,
        host="bench",
        port=1,
        url="http://127.0.0.1:1",
        started_at_ms=1,
        database=str(files.database),
        log=str(files.log),
    )


def main() -> None:
    """Run one ceiling: `empty`, `store CALLERS OPERATIONS`, or `fill DATABASE N`."""
    sys.setswitchinterval(SWITCH_S)  # as the daemon has it
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if sys.argv[1] == "empty":
            with contextlib.suppress(KeyboardInterrupt):
                runner.run(serve_empty())
        elif sys.argv[1] == "fill":
            runner.run(fill(Path(sys.argv[2]), int(sys.argv[3])))
        else:
            found = runner.run(publish_bare(int(sys.argv[2]), int(sys.argv[3])))
            print(json.dumps(found))


if __name__ == "__main__":
    main()
