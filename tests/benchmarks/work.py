"""Measure tasks and leases, without HTTP: `python -m tests.benchmarks.work [--quick]`.

Claim, beat and release stand beside a bare publish of the same run, and the ready queue at 100
tasks beside the same at 100 000. Nothing here is a test: what counts are the ratios (K-32).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import msgspec

from tests.benchmarks.store import CALLER, Cost, bare_hub, measure, prepare, publishing
from tfx.hub.core import HubCore
from tfx.hub.operations import OPERATIONS

ROOM = "/bench"
CALLERS = (1, 8, 32)
FILLERS = 256
LOOKS = 300
READY = 100
"""So many tasks are ready on the boards whose other tasks are closed or blocked."""

Call = Callable[..., Awaitable[msgspec.Struct]]


def caller_of(core: HubCore) -> Call:
    """Return a function that calls an operation with named fields."""
    handlers = dict(core.handlers)

    async def call(name: str, **fields: object) -> msgspec.Struct:
        request = msgspec.convert(fields, OPERATIONS[name].request)
        return await handlers[name](CALLER, request)

    return call


async def hire(call: Call, name: str, room: str = ROOM) -> str:
    """Register an agent of a room and return its session."""
    given = await call(
        "register",
        agent_id=name,
        cli="codex",
        capabilities=["code"],
        topics=[],
        heartbeat_ttl_ms=7_200_000,
        workspace=room,
    )
    return str(getattr(given, "lease_id"))  # noqa: B009  (the type is the table's)


async def fill(call: Call, room: str, count: int, **fields: object) -> None:
    """Add so many accepted tasks to a room."""
    left = count

    async def add() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await call("work_add", room=room, title="do it", accept=True, **fields)

    await asyncio.gather(*(add() for _ in range(FILLERS)))


async def leases(path: Path, operations: int) -> list[Cost]:
    """Return the cost of claim, beat and release, each of another task, beside a publish."""
    found: list[Cost] = []
    for callers in CALLERS:
        async with bare_hub(path.with_name(f"leases-{callers}.db")) as core:
            call = caller_of(core)
            await prepare(core, callers)
            who = [
                {"agent_id": f"worker-{n}", "session": await hire(call, f"worker-{n}")}
                for n in range(callers)
            ]
            await fill(call, ROOM, operations + 2 * callers)
            found.append(await measure("publish", callers, operations, publishing(core)))
            verbs = _verbs(call, who)
            await asyncio.gather(*(verbs["work_claim"](n) for n in range(callers)))
            for name, one in verbs.items():
                found.append(await measure(name, callers, operations, one))
    return found


def _verbs(call: Call, who: list[dict[str, str]]) -> dict[str, Callable[[int], Awaitable[int]]]:
    """Return one beat, one claim of the next task, one release of what the caller has.

    Beats come first, when each caller holds one lease: a beat tells all that its session holds.
    """
    numbers = itertools.count(1)
    beats = itertools.count(1)
    held: list[list[int]] = [[] for _ in who]

    async def claim(caller: int) -> int:
        task = next(numbers)
        await call("work_claim", **who[caller], task=task)
        held[caller].append(task)
        return 1

    async def beat(caller: int) -> int:
        number = next(beats)
        await call("work_beat", **who[caller], sequence=number, observed_at_ms=number)
        return 1

    async def release(caller: int) -> int:
        if not held[caller]:
            await asyncio.sleep(0)
            return 0
        await call("work_release", **who[caller], task=held[caller].pop())
        return 1

    return {"work_beat": beat, "work_claim": claim, "work_release": release}


async def ready_queue(path: Path, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Return what it costs to find work on boards of several sizes, each beside the smallest.

    `ready` boards hold ready tasks only; on the others 100 are ready behind so many that are
    closed, or that are more urgent and blocked.
    """
    rows: list[dict[str, object]] = []
    for kind in ("ready", "closed", "blocked"):
        smallest: dict[str, float] = {}
        async with bare_hub(path.with_name(f"{kind}.db")) as core:
            call = caller_of(core)
            for size in sizes:
                room = f"{ROOM}/{size}"
                await _board(call, room, kind, size)
                costs = await _looking(call, room, size)
                smallest = smallest or costs
                ratios = {f"{name}_ratio": round(costs[name] / smallest[name], 2) for name in costs}
                rows.append({"board": kind, "tasks": size, **costs, **ratios})
    return rows


async def _board(call: Call, room: str, kind: str, size: int) -> None:
    if kind == "ready":
        await fill(call, room, size)
        return
    await call("work_add", room=room, title="the blocker")
    blocked = {"blocked_by": [1], "priority": 9} if kind == "blocked" else {}
    await fill(call, room, size, **blocked)
    if kind == "closed":
        numbers = iter(range(2, size + 2))

        async def cancel() -> None:
            for number in numbers:
                await call("work_update", room=room, task=number, status="cancelled")

        await asyncio.gather(*(cancel() for _ in range(FILLERS)))
    await fill(call, room, READY)


async def _looking(call: Call, room: str, size: int) -> dict[str, float]:
    name = f"finder-{size}"
    who = {"agent_id": name, "session": await hire(call, name, room)}

    async def look(_caller: int) -> int:
        await call("work_list", room=room, ready=True, limit=20)
        return 1

    async def take(_caller: int) -> int:
        taken = await call("work_next", **who)
        task = getattr(getattr(taken, "task"), "task")  # noqa: B009  (the type is the table's)
        await call("work_release", **who, task=task)
        return 1

    listed = await measure("work_list --ready", 1, LOOKS, look)
    took = await measure("work_next and release", 1, LOOKS, take)
    return {"list_cpu_us": listed.cpu_us, "next_and_release_cpu_us": took.cpu_us}


def beside_publish(rows: list[Cost]) -> list[dict[str, object]]:
    """Return the costs with the rate, and CPU and rate as ratios to the publish before them."""
    bare = rows[0]
    told: list[dict[str, object]] = []
    for row in rows:
        bare = row if row.what == "publish" else bare
        told.append(
            {
                **asdict(row),
                "per_second": round(1e6 / row.wall_us),
                "cpu_to_publish": round(row.cpu_us / bare.cpu_us, 2),
                "rate_to_publish": round(bare.wall_us / row.wall_us, 2),
            }
        )
    return told


def main() -> None:
    """Print one JSON document."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--operations", type=int, default=3_000)
    options.add_argument("--quick", action="store_true", help="boards of 10 000 tasks at most")
    chosen = options.parse_args()
    sizes = (100, 1_000, 10_000, *(() if chosen.quick else (100_000,)))
    with tempfile.TemporaryDirectory() as directory:
        rows = asyncio.run(leases(Path(directory) / "leases.db", chosen.operations))
        boards = asyncio.run(ready_queue(Path(directory) / "boards.db", sizes))
    print(json.dumps({"leases": beside_publish(rows), "ready_queue": boards}, indent=1))


if __name__ == "__main__":
    main()
