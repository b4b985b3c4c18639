"""README is a promise: each console block runs here, or says why it does not.

A block stands behind `<!-- run -->` (run in order, in one HOME, its output compared; `…` stands
for any text) or behind `<!-- not run: REASON -->`; the develop block is run by `.ci/run`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import bare_env, stand_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```console\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
KNOWN = re.compile(r"run|not run: .+|test: develop")


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    output: str


def steps(body: str) -> list[Step]:
    found: list[Step] = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command += "\n" + more
        found.append(Step(command, output))
    return found


def as_pattern(expected: str) -> str:
    parts = [re.escape(part) for part in expected.strip().split("…")]
    return r"[\s\S]*?".join(parts)


def test_every_console_block_is_run_or_says_why_not() -> None:
    blocks = list(BLOCK.finditer(README))
    assert len(blocks) == README.count("```console")
    unmarked = [b["body"] for b in blocks if not KNOWN.fullmatch(b["mark"] or "")]
    assert unmarked == []
    assert sum(b["mark"] == "test: develop" for b in blocks) == 1


@pytest.mark.timeout(600)
def test_console_blocks_print_what_readme_says(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    agents = tmp_path / "agents"
    stand_in(agents, "claude", "codex")
    path = f"{Path(sys.executable).parent}:{agents}/bin:/usr/bin:/bin"
    wrong: list[str] = []
    for block in BLOCK.finditer(README):
        if block["mark"] != "run":
            continue
        for step in steps(block["body"]):
            done = subprocess.run(
                ["bash", "-c", step.command],
                env=bare_env(home, PATH=path, COLUMNS="100"),
                cwd=home,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            shown = done.stdout + re.sub(r"^tfx: .*\n", "", done.stderr, flags=re.MULTILINE)
            if not re.fullmatch(as_pattern(step.output), shown.strip()):
                wrong.append(f"$ {step.command}\n{shown}\n--- README says:\n{step.output}")
    assert not wrong, "\n\n".join(wrong)
