"""Installations as installers leave them: real virtual environments, real records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support import Ran, bare_env, tfx

HERE = Path(__file__).resolve().parents[1]


class Installed:
    """A virtual environment that sees this program and holds its own record of it."""

    def __init__(self, prefix: Path, *, installer: str = "pip", direct_url: str = "") -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
        self.python = prefix / "bin" / "python"
        site = next((prefix / "lib").glob("python3*")) / "site-packages"
        here = sysconfig.get_paths()["purelib"]
        (site / "program.pth").write_text(f"{HERE}\n{here}\n", "utf-8")
        record = site / "tfx_cli-0.0.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text("Name: tfx-cli\nVersion: 0.0.0\n", "utf-8")
        (record / "INSTALLER").write_text(installer, "utf-8")
        if direct_url:
            (record / "direct_url.json").write_text(direct_url, "utf-8")

    def update(self, home: Path, *arguments: str, path: Path | None = None) -> Ran:
        env = bare_env(home)
        if path is not None:
            env["PATH"] = f"{path}{os.pathsep}{env['PATH']}"
        command = (str(self.python), "-m", "tfx")
        return tfx(home, "update", *arguments, env=env, command=command)


@pytest.mark.parametrize(
    ("marker", "installer", "method", "tool"),
    [
        ("pipx_metadata.json", "pip", "pipx", "pipx upgrade tfx-cli"),
        ("uv-receipt.toml", "uv", "uv tool", "uv tool upgrade tfx-cli"),
        (None, "uv", "uv pip", "uv pip install --python"),
        (None, "pip", "pip in a virtual environment", "-m pip install --upgrade tfx-cli"),
    ],
)
def test_method_is_read_from_what_the_installer_left(
    tmp_path: Path, home: Path, marker: str | None, installer: str, method: str, tool: str
) -> None:
    installed = Installed(tmp_path / "v", installer=installer)
    if marker:
        (tmp_path / "v" / marker).touch()
    ran = installed.update(home, "--json")
    assert ran.code == 0
    assert ran.data["method"] == method
    assert tool in " ".join(ran.data["commands"][0])
    assert ran.data["ran"] is False
    assert "://" not in ran.out


def test_checkout_is_updated_with_git(tmp_path: Path, home: Path) -> None:
    source = tmp_path / "my clone"
    (source / ".git").mkdir(parents=True)
    origin = {"url": f"file://{str(source).replace(' ', '%20')}", "dir_info": {"editable": True}}
    ran = Installed(tmp_path / "v", direct_url=json.dumps(origin)).update(home)
    assert ran.code == 0
    assert f"git -C '{source}' pull --ff-only" in ran.out


@pytest.mark.parametrize(
    ("marker", "tool"),
    [
        ("pipx_metadata.json", "pipx upgrade tfx-cli"),
        ("uv-receipt.toml", "uv tool upgrade tfx-cli"),
    ],
)
def test_tool_that_installed_a_clone_updates_it(
    tmp_path: Path, home: Path, marker: str, tool: str
) -> None:
    """As README says: `pipx install .` or `uv tool install .`, whose environment has no pip."""
    source = tmp_path / "src"
    (source / ".git").mkdir(parents=True)
    origin = json.dumps({"url": f"file://{source}", "dir_info": {}})
    installed = Installed(tmp_path / "v", direct_url=origin)
    (tmp_path / "v" / marker).touch()
    commands = [" ".join(words) for words in installed.update(home, "--json").data["commands"]]
    assert commands == [f"git -C {source} pull --ff-only", tool]


def test_local_directory_is_installed_again(tmp_path: Path, home: Path) -> None:
    origin = json.dumps({"url": f"file://{tmp_path}/src", "dir_info": {}})
    ran = Installed(tmp_path / "v", direct_url=origin).update(home, "--json")
    assert ran.data["method"] == "local directory"
    assert ran.data["commands"][0][-1] == f"{tmp_path}/src"


def test_yes_runs_the_tool_and_names_the_next_step(tmp_path: Path, home: Path) -> None:
    installed = Installed(tmp_path / "v")
    (tmp_path / "v" / "pipx_metadata.json").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "log"
    (tools / "pipx").write_text(f'#!/bin/sh\necho "$@" > "{log}"\necho noise\n', "utf-8")
    (tools / "pipx").chmod(0o755)
    ran = installed.update(home, "--yes", "--json", path=tools)
    assert ran.code == 0
    assert log.read_text("utf-8") == "upgrade tfx-cli\n"
    assert ran.data["ran"] is True
    assert "tfx setup" in ran.err


def test_failing_tool_is_reported_with_its_status(tmp_path: Path, home: Path) -> None:
    installed = Installed(tmp_path / "v")
    (tmp_path / "v" / "pipx_metadata.json").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pipx").write_text("#!/bin/sh\nexit 9\n", "utf-8")
    (tools / "pipx").chmod(0o755)
    ran = installed.update(home, "--yes", "--json", path=tools)
    assert ran.code == 1
    assert "status 9" in ran.document["problems"][0]["message"]


def test_missing_tool_is_named(tmp_path: Path, home: Path) -> None:
    installed = Installed(tmp_path / "v")
    (tmp_path / "v" / "uv-receipt.toml").touch()
    env = bare_env(home, PATH="/nonexistent")
    ran = tfx(home, "update", "--yes", env=env, command=(str(installed.python), "-m", "tfx"))
    assert ran.code == 1
    assert "uv is needed" in ran.err
