"""The contracts of the house, run as the tools that own them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--check", "--no-cache", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
    ],
    ids=["ruff", "format", "mypy", "layers"],
)
@pytest.mark.timeout(600)
def test_the_house_holds(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_outgrows_a_reader() -> None:
    grown = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "tfx").rglob("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 330
    }
    assert grown == {}
