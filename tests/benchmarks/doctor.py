"""How long the shell matrix takes beside its slowest probe: `python -m tests.benchmarks.doctor`.

Prints one table per kind of HOME, then the CPU of a cheap check and of a whole look beside a bare
interpreter of the same run (D-186). The goal is a wall time of no more than the slowest single
probe of the same run plus 0.3 s, on an idle machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.start import cpu_ms
from tests.shells.world import World, the_shell
from tests.support import Machine
from tfx.shells.flavours import MODES
from tfx.shells.matrix import Matrix, probe_matrix

SHELLS = ("bash", "zsh", "fish", "dash", "ksh")
NAMES = ("claude", "codex", "gemini", "copilot", "opencode", "node")
HOMES = {"empty start-up files": "", "a start that waits 0.4 s": "sleep 0.4\n"}
ROUNDS = 7
GOAL_S = 0.3


@dataclass(frozen=True, slots=True)
class Round:
    """One matrix, then each of its probes alone; seconds."""

    wall: float
    slowest_inside: float
    slowest_alone: float
    one_by_one: float
    own_cpu: float
    probes_cpu: float


def measure(world: World) -> Round:
    cpu = os.times()
    started = time.perf_counter()
    matrix = asked(world, SHELLS)
    wall = time.perf_counter() - started
    spent = os.times()
    alone = [
        asked(world, (shell,), mode).duration_ms / 1000 for shell in SHELLS for mode in range(4)
    ]
    return Round(
        wall=wall,
        slowest_inside=max(cell.duration_ms for cell in matrix.cells) / 1000,
        slowest_alone=max(alone),
        one_by_one=sum(alone),
        own_cpu=spent.user + spent.system - cpu.user - cpu.system,
        probes_cpu=spent.children_user + spent.children_system
        - cpu.children_user - cpu.children_system,
    )  # fmt: skip


def asked(world: World, shells: Sequence[str], mode: int | None = None) -> Matrix:
    modes = MODES if mode is None else MODES[mode : mode + 1]
    chosen = [the_shell(name, modes) for name in shells]
    return probe_matrix(world.paths, NAMES, timeout_s=60, shells=chosen)


def report(title: str, rounds: Sequence[Round]) -> None:
    def median(measured: Callable[[Round], float]) -> float:
        return statistics.median(measured(one) for one in rounds)

    over = median(lambda one: one.wall - one.slowest_inside)
    to_alone = median(lambda one: one.wall / one.slowest_alone)
    to_serial = median(lambda one: one.one_by_one / one.wall)
    rows = (
        ("matrix, wall", median(lambda one: one.wall), ""),
        ("slowest probe of the same matrix", median(lambda one: one.slowest_inside), ""),
        ("matrix above it", over, f"goal: at most {GOAL_S} s"),
        ("slowest probe run alone", median(lambda one: one.slowest_alone), f"1 : {to_alone:.1f}"),
        ("all probes in turn", median(lambda one: one.one_by_one), f"{to_serial:.1f} : 1"),
        ("CPU of tfx", median(lambda one: one.own_cpu), ""),
        ("CPU of the probes", median(lambda one: one.probes_cpu), ""),
    )
    told = [f"{title}: {len(SHELLS) * len(MODES)} probes, median of {len(rounds)} rounds"]
    told += [f"  {what:34}{value:7.3f} s   {note}".rstrip() for what, value, note in rows]
    sys.stdout.write("\n".join(told) + "\n")


def looks() -> None:
    """Print the CPU of looks of different size, children included, as ratios to bare Python."""
    with tempfile.TemporaryDirectory(prefix="tfx-bench-") as scratch:
        machine = Machine(Path(scratch), "claude", "codex")
        machine.env["SHELL"] = "/bin/bash"
        machine.setup()
        script = str(Path(sysconfig.get_path("scripts"), "tfx"))
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "tfx --version": [script, "--version"],
            "tfx doctor --list": [script, "doctor", "--list"],
            "tfx doctor --only locale": [script, "doctor", "--only", "locale", "--json"],
            "tfx doctor": [script, "doctor", "--json"],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(ROUNDS + 1):
            for name, command in commands.items():
                used = cpu_ms(command, machine.env)
                if turn:  # the first round warms the caches
                    spent[name].append(used)
    bare = statistics.median(spent["python -c pass"])
    told = [f"CPU with children, median of {ROUNDS} rounds"]
    for name, values in spent.items():
        median = statistics.median(values)
        told.append(f"  {name:34}{median:7.0f} ms  {median / bare:5.1f} x bare")
    sys.stdout.write("\n".join(told) + "\n")


def main() -> None:
    for title, line in HOMES.items():
        with tempfile.TemporaryDirectory(prefix="tfx-bench-") as scratch:
            world = World.at(Path(scratch))
            for shell in SHELLS:
                world.startup(shell, line)
            report(title, [measure(world) for _ in range(ROUNDS)])
    looks()


if __name__ == "__main__":
    main()
