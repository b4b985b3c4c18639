"""Measure `/mcp` beside plain JSON in one run: `python -m tests.benchmarks.mcp`.

Both eras and the bridge, beside a tool that does nothing on the same stack. Ratios within the run
are the result (K-32); the aim is MCP within 1.5 times of JSON by server CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.hub import Row, cpu_ms, load, rss_mb
from tests.benchmarks.load import TEXT
from tests.conformance.stack import TOKEN, serving
from tests.hub.bridging import BridgeClient
from tests.hub.running import RunningHub, start
from tests.hub.speaking import LEGACY, MODERN

CONNECTIONS = (1, 8)
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=3000)
    parser.add_argument("--serve-empty", metavar="DIRECTORY", help="be the server of empty tools")
    chosen = parser.parse_args()
    if chosen.serve_empty:
        with serving(Path(chosen.serve_empty)) as port:
            print(port, flush=True)
            sys.stdin.read()
        return
    print("| what | connections | per second | server CPU ms | p50 ms | p99 ms | to JSON |")
    print("|---|---|---|---|---|---|---|")
    with _empty() as (pid, port):
        for era in ("modern", "legacy"):
            for count in CONNECTIONS:
                what = f"mcp empty tool, {era}"
                _show(load(pid, port, TOKEN, what, count, chosen.operations), None)
    with _hub() as hub:
        for kind in ("publish", "poll"):
            for count in CONNECTIONS:
                names = (kind, f"mcp {kind}, modern", f"mcp {kind}, legacy")
                rows = _medians(hub, names, count, chosen.operations)
                for row in rows:
                    _show(row, rows[0].cpu_ms)
        for version in (MODERN, LEGACY[-1]):
            _bridge(hub, version, chosen.operations // 3)
        print(f"\nHub: {rss_mb(hub.pid):.0f} MB")


def _medians(
    hub: RunningHub, names: tuple[str, ...], connections: int, operations: int
) -> list[Row]:
    """Run each scenario several times in turn, so that a busy moment hits all alike."""
    seen: dict[str, list[Row]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name in names:
            seen[name].append(load(hub.pid, hub.port, hub.token, name, connections, operations))
    return [sorted(rows, key=lambda row: row.cpu_ms)[len(rows) // 2] for rows in seen.values()]


def _bridge(hub: RunningHub, version: str, operations: int) -> None:
    """Publish through one bridge, one call after the other."""
    client = BridgeClient.start(hub.env, cwd=hub.home, version=version)
    try:
        client.open()
        hub.register("bridged")
        pid, before = client.process.pid, cpu_ms(hub.pid)
        first = cpu_ms(pid)
        times: list[float] = []
        for turn in range(operations):
            if turn % 500 == 0:
                hub.register(f"bridged-{version}-{turn}")
            since = time.perf_counter()
            sink = f"bridged-{version}-{turn // 500 * 500}"
            client.tool("publish", to=sink, topic="load", payload={"text": TEXT})
            times.append((time.perf_counter() - since) * 1000)
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        used = (cpu_ms(hub.pid) - before) / operations
        own = (cpu_ms(pid) - first) / operations
        rate = 1000 / statistics.mean(times)
        _show(Row(f"bridge publish, {version}", 1, rate, used, cuts[49], cuts[98]), None)
        print(
            f"| the bridge itself: {own:.3f} ms CPU a call, {first:.0f} ms to its first answer, "
            f"{rss_mb(pid):.0f} MB | | | | | | |"
        )
    finally:
        client.kill()


def _show(row: Row, json_cpu_ms: float | None) -> None:
    ratio = "" if json_cpu_ms is None else f"{row.cpu_ms / json_cpu_ms:.2f}"
    cells = [row.what, str(row.connections), f"{row.rate:.0f}", f"{row.cpu_ms:.3f}"]
    cells += [f"{value or 0:.2f}" for value in (row.p50_ms, row.p99_ms)]
    print("| " + " | ".join([*cells, ratio]) + " |", flush=True)


@contextlib.contextmanager
def _hub() -> Iterator[RunningHub]:
    with tempfile.TemporaryDirectory() as name:
        hub = start(Path(name))
        try:
            yield hub
        finally:
            hub.end()


@contextlib.contextmanager
def _empty() -> Iterator[tuple[int, int]]:
    with tempfile.TemporaryDirectory() as name:
        argv = [sys.executable, "-m", "tests.benchmarks.mcp", "--serve-empty", name]
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        ) as child:
            if child.stdout is None or child.stdin is None:
                raise SystemExit("no pipes")
            try:
                yield child.pid, int(child.stdout.readline())
            finally:
                child.stdin.close()
                child.wait()


if __name__ == "__main__":
    main()
