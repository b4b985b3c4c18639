"""The wheel as pip builds it: installed in a virtual environment of its own, run from there."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support import tfx

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-q", "-w", out, ROOT], check=True, capture_output=True)
    return next(out.glob("tfx_cli-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    prefix = tmp_path_factory.mktemp("installed") / "a venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    site = next((prefix / "lib").glob("python3*")) / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", "utf-8")
    return str(prefix / "bin" / "python")


def test_wheel_holds_the_program_its_types_and_all_assets(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"tfx/py.typed", "tfx/__main__.py", "tfx/cli/help.txt"} <= names
    tracked = subprocess.run(
        ["git", "ls-files", "assets"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {f"tfx/_{name}" for name in tracked} <= names
    assert not {name for name in names if name.startswith(("tests/", "assets/"))}


def test_installed_program_runs_the_main_job(python: str, home: Path) -> None:
    first = tfx(home, "setup", "--json", command=(python, "-I", "-m", "tfx"))
    assert first.code == 0, first.err
    again = tfx(home, "setup", "--json", command=(python, "-I", "-m", "tfx"))
    assert again.data["counts"]["changed"] == 0
