"""CPU of starting tfx beside a bare interpreter, in one run.

    python -m tests.benchmarks.start [ROUNDS]

Prints the median CPU milliseconds of each command and its ratio to `python -c pass`.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.support import Machine


def cpu_ms(command: list[str], env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL, check=True)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        machine = Machine(Path(place), "claude", "codex", "gemini", "copilot", "opencode")
        machine.setup("--mcp-transport", "stdio")
        script = str(Path(sysconfig.get_path("scripts")) / "tfx")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "tfx --version": [script, "--version"],
            "tfx --help": [script, "--help"],
            "tfx setup --check": [script, "setup", "--check"],
            "tfx setup (nothing to do)": [script, "setup"],
            "tfx list": [script, "list"],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(rounds + 1):
            for name, command in commands.items():
                used = cpu_ms(command, machine.env)
                if turn:  # the first round warms the caches
                    spent[name].append(used)
    bare = statistics.median(spent["python -c pass"])
    print(f"| command | CPU ms (median of {rounds}) | ratio |\n|---|---|---|")
    for name, values in spent.items():
        median = statistics.median(values)
        print(f"| `{name}` | {median:.1f} | {median / bare:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
