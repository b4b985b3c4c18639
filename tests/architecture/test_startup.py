"""What a command imports decides how fast it answers; counted, never timed."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEAVY = ("rich", "httpx", "asyncio", "apsw", "pydantic", "tomlkit", "ruamel", "msgspec", "psutil",
         "starlette", "uvicorn")  # fmt: skip

PROBE = """
import json, sys
sys.argv = ["tfx", *json.loads(sys.argv[1])]
from tfx.__main__ import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules_after(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_d181_typer_stays_below_the_version_that_costs_more() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "typer>=0.27,<0.29" in document["project"]["dependencies"]


def test_version_imports_nothing_but_the_version() -> None:
    loaded = modules_after("--version")
    assert not loaded & {*HEAVY, "typer"}
    assert {name for name in loaded if name.startswith("tfx")} == {"tfx", "tfx.__main__"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("config", "--help"),
        ("setup", "--help"),
        ("route", "--help"),
        ("jobs", "wait", "--help"),
    ],
)
def test_help_imports_no_feature(arguments: tuple[str, ...]) -> None:
    loaded = modules_after(*arguments)
    assert not loaded & set(HEAVY)
    assert not {
        name
        for name in loaded
        if name.startswith(("tfx.setup", "tfx.plan", "tfx.hub", "tfx.route"))
    }


@pytest.mark.parametrize("arguments", [("--list",), ("--explain", "locale"), ("--only", "locale")])
def test_d184_a_cheap_look_of_doctor_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = modules_after("doctor", *arguments, "--json")
    assert not loaded & {*HEAVY, "mcp", "importlib.metadata"}
    assert not {name for name in loaded if name.startswith(("tfx.setup", "tfx.plan", "tfx.hub"))}


def test_d185_the_shell_matrix_needs_nothing_heavy() -> None:
    script = "import sys, tfx.shells.matrix, tfx.shells.installations, tfx.shells.columns; "
    done = subprocess.run(
        [sys.executable, "-c", f"{script} print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(done.stdout.split()) & (set(HEAVY) - {"subprocess"})
