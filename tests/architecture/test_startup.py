"""What a command imports decides how fast it answers; counted, never timed."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tfx

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


@pytest.mark.parametrize("argument", ["--version", "--help", "-h"])
def test_d182_d184_version_and_help_import_neither_typer_nor_a_feature(argument: str) -> None:
    loaded = modules_after(argument)
    assert not loaded & {*HEAVY, "typer", "click", "pathlib", "importlib.metadata", "mcp"}
    assert {name for name in loaded if name.startswith("tfx")} == {"tfx", "tfx.__main__"}


def test_d182_the_entry_module_imports_only_sys_until_argv_is_inspected() -> None:
    tree = ast.parse((ROOT / "tfx/__main__.py").read_text("utf-8"))
    imported = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] == [
        *("from __future__ import annotations", "import sys", "from tfx import __version__")
    ]
    package = ast.parse((ROOT / "tfx/__init__.py").read_text("utf-8"))
    assert not [node for node in package.body if isinstance(node, ast.Import | ast.ImportFrom)]


def test_d182_the_help_is_what_the_command_tree_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tfx.cli.entry import run; run(['--help'])"],
        env={"COLUMNS": "100", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    kept = ROOT / "tfx/cli/help.txt"
    wanted = "write it anew: python -c \"from tfx.cli.entry import run; run(['--help'])\" > {}"
    assert kept.read_text("ascii") == done.stdout, wanted.format(kept.relative_to(ROOT))


@pytest.mark.parametrize(("columns", "tree"), [("80", False), ("200", False), ("60", True)])
def test_d182_a_narrow_terminal_gets_lines_that_fit(columns: str, *, tree: bool) -> None:
    script = "import sys; sys.argv = ['tfx', '--help']; from tfx.__main__ import main\n"
    script += "try: main()\nexcept SystemExit: pass\nprint('typer' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"COLUMNS": columns, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    *lines, loaded = done.stdout.splitlines()
    assert loaded == str(tree)
    assert max(map(len, lines)) <= int(columns)


def test_d183_the_version_is_a_constant_that_the_package_metadata_repeats() -> None:
    [line] = [each for each in (ROOT / "tfx/__init__.py").read_text("utf-8").splitlines()
              if each.startswith("__version__")]  # fmt: skip
    assert ast.literal_eval(line.partition(" = ")[2]) == tfx.__version__
    assert importlib.metadata.version("tfx-cli") == tfx.__version__
    sources = [path.read_text("utf-8") for path in (ROOT / "tfx").rglob("*.py")]
    assert not [text for text in sources if "metadata.version(" in text]


@pytest.mark.parametrize(
    "arguments",
    [
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
