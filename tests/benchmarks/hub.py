"""Measure the hub and print a Markdown table: `python -m tests.benchmarks.hub [--million]`.

Server CPU comes from the scheduler's own count of the daemon's threads; the load generator is a
process of its own. Nothing here is a test: the figures are reported beside the ceilings of the
same run (K-32).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hub.running import RunningHub, start
from tests.support import bare_env
from tfx.core.paths import Paths
from tfx.hub.daemon import launch, stop
from tfx.hub.state import RunWishes

CONNECTIONS = (1, 8, 32)
STARTS = 7
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    connections: int
    rate: float
    cpu_ms: float
    p50_ms: float | None
    p99_ms: float | None
    wake_ms: float | None = None


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process in milliseconds, over all its threads."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / NS_PER_MS


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def load(pid: int, port: int, token: str, scenario: str, connections: int, operations: int) -> Row:
    """Run a scenario from another process and return what it cost the server."""
    argv = [sys.executable, "-m", "tests.benchmarks.load", "--port", str(port)]
    argv += ["--scenario", scenario, "--connections", str(connections)]
    argv += ["--operations", str(operations)]
    before = cpu_ms(pid)
    done = subprocess.run(
        argv, input=token + "\n", capture_output=True, text=True, check=False, cwd=_root()
    )
    used = cpu_ms(pid) - before
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    count = found["operations"]
    return Row(
        scenario,
        connections,
        count / found["seconds"],
        used / count,
        found["p50_ms"],
        found["p99_ms"],
        found["wake_p50_ms"],
    )


def measure(operations: int) -> list[Row]:
    """Measure the ceilings and each scenario at each number of connections."""
    rows: list[Row] = []
    with _empty_server() as (pid, port):
        rows += [load(pid, port, "none", "empty", n, operations * 2) for n in CONNECTIONS]
    rows += [_bare_store(n, operations) for n in CONNECTIONS]
    for scenario, share in (("publish", 1.0), ("publish+poll+ack", 0.4), ("ask→answer", 0.3)):
        for connections in CONNECTIONS:
            with _hub() as hub:
                many = max(2, connections) if scenario == "ask→answer" else connections
                count = int(operations * share)
                load(hub.pid, hub.port, hub.token, scenario, many, min(300, count))  # warm
                row = load(hub.pid, hub.port, hub.token, scenario, many, count)
                rows.append(row)
    return rows


def starts() -> tuple[float, float, float]:
    """Return medians of start-to-ready in seconds, the daemon's CPU and its memory then."""
    walls, cpus, sizes = [], [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as name:
            paths = Paths.resolve(bare_env(Path(name)))
            began = time.perf_counter()
            run = launch.start(paths, RunWishes(port=0)).probe.recorded
            walls.append(time.perf_counter() - began)
            if run is None:
                raise SystemExit("the hub did not start")
            cpus.append(cpu_ms(run.pid) / 1000)
            sizes.append(rss_mb(run.pid))
            stop.stop(paths)
    return statistics.median(walls), statistics.median(cpus), statistics.median(sizes)


def memory_and_bytes(messages: int) -> tuple[float, float]:
    """Return the resident memory after that many messages, and bytes on disk a message."""
    with _hub() as hub:
        load(hub.pid, hub.port, hub.token, "publish", 8, messages)
        memory = rss_mb(hub.pid)
        stop.stop(hub.paths)
        return memory, hub.files.database.stat().st_size / messages


def growth(sizes: tuple[int, ...], operations: int) -> list[tuple[int, str, float]]:
    """Return the cost of publish, poll and status at several sizes of one log."""
    found: list[tuple[int, str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        hub = start(home)
        stored = 0
        try:
            for size in sizes:
                hub.end()
                argv = [sys.executable, "-m", "tests.benchmarks.ceilings", "fill"]
                argv += [str(hub.files.database), str(size - stored)]
                subprocess.run(argv, check=True, cwd=_root())
                stored = size
                hub = hub.again()
                load(hub.pid, hub.port, hub.token, "publish", 8, 1500)  # warm
                for scenario in ("publish", "poll", "status"):
                    row = load(hub.pid, hub.port, hub.token, scenario, 1, operations)
                    found.append((size, scenario, row.cpu_ms))
        finally:
            hub.end()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=6000)
    parser.add_argument("--million", action="store_true", help="also at a million messages")
    chosen = parser.parse_args()
    wall, cpu, fresh = starts()
    rows = measure(chosen.operations)
    memory, size = memory_and_bytes(10_000)
    _print(_table(rows))
    _print(f"\nStart to ready: {wall:.2f} s (CPU {cpu:.2f} s, {fresh:.0f} MB); ")
    _print(f"memory after 10 000 messages: {memory:.0f} MB; {size:.0f} bytes a message on disk.\n")
    sizes = (1_000, 1_000_000) if chosen.million else (1_000, 50_000)
    for messages, what, cost in growth(sizes, 2000):
        _print(f"- {what} at {messages} messages: {cost:.3f} ms CPU")


def _table(rows: list[Row]) -> str:
    lines = [
        "| what | connections | per second | server CPU ms | p50 ms | p99 ms | wake p50 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row.what, str(row.connections), f"{row.rate:.0f}", f"{row.cpu_ms:.3f}"]
        cells += [
            "" if value is None else f"{value:.2f}"
            for value in (row.p50_ms, row.p99_ms, row.wake_ms)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


@contextlib.contextmanager
def _hub() -> Iterator[RunningHub]:
    with tempfile.TemporaryDirectory() as name:
        hub = start(Path(name))
        try:
            yield hub
        finally:
            hub.end()


@contextlib.contextmanager
def _empty_server() -> Iterator[tuple[int, int]]:
    argv = [sys.executable, "-m", "tests.benchmarks.ceilings", "empty"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=_root()) as child:
        if child.stdout is None:
            raise SystemExit("no output")
        port = int(child.stdout.readline())
        try:
            yield child.pid, port
        finally:
            child.kill()


def _bare_store(callers: int, operations: int) -> Row:
    argv = [sys.executable, "-m", "tests.benchmarks.ceilings", "store", str(callers)]
    done = subprocess.run(
        [*argv, str(operations)], capture_output=True, text=True, check=False, cwd=_root()
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    rate = found["operations"] / found["seconds"]
    return Row("store without HTTP", callers, rate, found["cpu_ms"], None, None)


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


def _print(text: str) -> None:
    print(text)


if __name__ == "__main__":
    main()
