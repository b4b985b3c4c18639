"""What `tfx route` and the status line cost, beside the bare programs, in one run.

    python -m tests.benchmarks.route [ROUNDS]

Prints median wall and CPU milliseconds: of a fake CLI that copies its input, run directly, through
the route script on its own, through `tfx route`; and of the status line beside a bare interpreter,
without a hub and with a real one.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.hub.running import start
from tests.route.fakes import Bench, benching

ASSETS = Path(__file__).parents[2] / "assets"
SESSION = (
    b'{"model":{"display_name":"Opus"},"context_window":{"used_percentage":41.7},'
    b'"cost":{"total_cost_usd":1.2},"workspace":{"current_dir":"/home/me/project"}}'
)
TFX = str(Path(sysconfig.get_path("scripts")) / "tfx")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    argv: list[str]
    env: dict[str, str]
    stdin: bytes
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, cwd: Path) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(
            self.argv, env=self.env, input=self.stdin, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=True, cwd=cwd,
        )  # fmt: skip
        self.wall.append((time.perf_counter() - began) * 1000)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.cpu.append(spent * 1000)


def table(rounds: int, cwd: Path, cases: list[Case]) -> None:
    for turn in range(rounds + 1):
        for case in cases:
            case.run(cwd)
            if not turn:  # the first round warms the caches
                case.wall.clear()
                case.cpu.clear()
    median: Callable[[list[float]], float] = statistics.median
    bare = cases[0]
    print(f"| {rounds} rounds, medians | wall ms | CPU ms | CPU ratio | wall over the first |")
    print("|---|---|---|---|---|")
    for case in cases:
        ratio = median(case.cpu) / max(median(bare.cpu), 0.1)
        over = median(case.wall) - median(bare.wall)
        print(
            f"| {case.name} | {median(case.wall):.1f} | {median(case.cpu):.1f} | {ratio:.1f}"
            f" | {over:+.1f} |"
        )
    print()


def routes(bench: Bench) -> list[Case]:
    bench.install("codex")
    env = bench.env
    alone = env | {"TFX_BIN": ""}
    script = str(ASSETS / "scripts" / "tfx-route.sh")
    rendered = bench.root / "tfx-route.sh"
    rendered.write_bytes(Path(script).read_bytes().replace(b"@TFX@", os.fsencode(TFX)))
    prompt = b"a prompt\n" * 50
    return [
        Case("the fake CLI itself", [str(bench.bin / "codex"), "exec", "-"], env, prompt),
        Case("the script on its own", ["sh", script, "executor", "-"], alone, prompt),
        Case("`tfx route`", [TFX, "route", "executor", "-"], env, prompt),
        Case("the script through tfx", ["sh", str(rendered), "executor", "-"], env, prompt),
    ]


def status_lines(bench: Bench, env: dict[str, str]) -> list[Case]:
    hud = [sys.executable, "-I", str(ASSETS / "hud" / "tfx-hud.py")]
    bare = [sys.executable, "-I", "-c", "pass"]
    nobody = env | {"HOME": str(bench.cwd)}
    return [
        Case("python -c pass", bare, nobody, b""),
        Case("status line, no hub", hud, nobody, SESSION),
        Case("status line, hub and agent", hud, env | {"TFX_AGENT_ID": "me.x"}, SESSION),
    ]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place, benching(Path(place)) as bench:
        table(rounds, bench.cwd, routes(bench))
        hub = start(bench.home, bench.env)
        try:
            hub.register("me.x")
            for _ in range(20):
                bench.route("executor", "p")  # runs on record for the status line to pass over
            table(rounds, bench.cwd, status_lines(bench, bench.env))
        finally:
            hub.end()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
