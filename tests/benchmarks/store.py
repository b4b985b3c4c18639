"""Measure the bare store, without HTTP: `python -m tests.benchmarks.store [--million]`.

CPU is the process's own, loop and writer thread together. Nothing here is a test: the figures
are the ceiling that the hub's are held against (K-32).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tfx.core.clock import SystemClock
from tfx.hub.core import HubCore
from tfx.hub.models import AgentId, Caller, Limits, RunFacts
from tfx.hub.wire.agents import RegisterRequest
from tfx.hub.wire.messages import PollRequest, PublishRequest
from tfx.hub.wire.views import StatusRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CALLER = Caller()
PAYLOAD = msgspec.Raw(msgspec.json.encode({"text": "x" * 300}))
PLENTY = Limits(lane_open=10**9, inbox_open=10**9, hub_open=10**9)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation costs: CPU and wall in microseconds."""

    what: str
    callers: int
    operations: int
    cpu_us: float
    wall_us: float


@asynccontextmanager
async def bare_hub(path: Path) -> AsyncIterator[HubCore]:
    """Open a hub without transports that refuses nothing for being full."""
    facts = RunFacts(
        instance="bench",
        version="0",
        pid=1,
        host="bench",
        port=1,
        url="bench",
        started_at_ms=1,
        database=str(path),
        log="",
    )
    core = HubCore.open(path, facts, clock=SystemClock(), limits=PLENTY)
    await core.start()
    try:
        yield core
    finally:
        await core.close()


async def measure(
    what: str, callers: int, operations: int, one: Callable[[int], Awaitable[int]]
) -> Cost:
    """Run `one(caller)` until so many operations are done; it returns how many it did."""
    left = operations

    async def run(caller: int) -> None:
        nonlocal left
        while left > 0:
            done = await one(caller)  # `left -= await …` would read before it waits
            left -= done

    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(run(caller) for caller in range(callers)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    done = operations - left
    return Cost(what, callers, done, round(cpu / done * 1e6, 1), round(wall / done * 1e6, 1))


def publishing(core: HubCore) -> Callable[[int], Awaitable[int]]:
    """Return one publish to the caller's own receiver."""

    async def one(caller: int) -> int:
        request = PublishRequest(
            sender=AgentId("operator"), to=f"sink-{caller}", topic="load", payload=PAYLOAD
        )
        await core.bus.publish(CALLER, request)
        return 1

    return one


def draining(core: HubCore, size: int) -> Callable[[int], Awaitable[int]]:
    """Return one poll that acks what the poll before it claimed; counts messages."""
    held: dict[int, tuple[str, ...]] = {}

    async def one(caller: int) -> int:
        request = PollRequest(
            agent_id=AgentId(f"sink-{caller}"),
            wait_ms=0,
            max_messages=size,
            ack_ids=held.get(caller, ()),
            max_bytes=262_144,
        )
        result = await core.inbox.poll_messages(CALLER, request)
        held[caller] = tuple(message.message_id for message in result.messages)
        return max(1, len(result.messages))

    return one


async def prepare(core: HubCore, callers: int) -> None:
    """Register the receivers."""
    for caller in range(callers):
        await core.agents.register(
            CALLER,
            RegisterRequest(
                agent_id=AgentId(f"sink-{caller}"),
                cli="codex",
                capabilities=("code",),
                topics=(),
                heartbeat_ttl_ms=7_200_000,
            ),
        )


async def costs(path: Path, operations: int) -> list[Cost]:
    """Return the cost of publish, and of poll with ack, at 1, 8 and 32 callers."""
    found = []
    async with bare_hub(path) as core:
        await prepare(core, 32)
        for callers in (1, 8, 32):
            found.append(await measure("publish", callers, operations, publishing(core)))
            found.append(await measure("poll+ack", callers, operations, draining(core, 20)))
    return found


async def flatness(path: Path, sizes: tuple[int, ...]) -> dict[str, object]:
    """Return the cost of publish, poll and status with so many messages in the file (H-117)."""
    rows: list[dict[str, object]] = []
    async with bare_hub(path) as core:
        await prepare(core, 256)
        stored = 0
        for size in sizes:
            await measure("fill", 256, size - stored, publishing(core))
            await measure("fill", 256, size - stored, draining(core, 100))
            stored = size

            async def status(_caller: int) -> int:
                await core.views.status(CALLER, StatusRequest())
                return 1

            publish = await measure("publish", 1, 2_000, publishing(core))
            poll = await measure("poll+ack", 1, 2_000, draining(core, 20))
            look = await measure("status", 1, 1_000, status)
            stored += 2_000
            rows.append(
                {
                    "messages": size,
                    "publish_cpu_us": publish.cpu_us,
                    "poll_ack_cpu_us": poll.cpu_us,
                    "status_cpu_us": look.cpu_us,
                    "bytes_per_message": round(core.store.file_sizes()[0] / stored),
                }
            )
    return {"flatness": rows}


def main() -> None:
    """Print one JSON document."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--operations", type=int, default=6_000)
    options.add_argument("--million", action="store_true", help="fill up to a million messages")
    chosen = options.parse_args()
    sizes = (1_000, 10_000, 100_000, *((1_000_000,) if chosen.million else ()))
    with tempfile.TemporaryDirectory() as directory:
        rows = asyncio.run(costs(Path(directory) / "costs.db", chosen.operations))
        flat = asyncio.run(flatness(Path(directory) / "flat.db", sizes))
    print(json.dumps({"costs": [asdict(row) for row in rows], **flat}, indent=1))


if __name__ == "__main__":
    main()
