"""Two users on one machine, and what belongs to another (H-8, H-22, K-29, K-44)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.hub.starting import held_default_port
from tests.support import Ran, bare_env, tfx

NOBODY = 65534
READING = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""So that another uid can run an interpreter in somebody's HOME; it cannot write there."""
SPAWN = "import subprocess, sys; subprocess.check_call([sys.executable, '-c', 'import tfx'])"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def other_home(tmp_path: Path) -> Iterator[Path]:
    """The HOME of another user; its hub is stopped by that user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("being another user needs root and setpriv")
    probe = subprocess.run(
        [*_as_nobody(*READING), sys.executable, "-c", SPAWN],
        cwd=ROOT,
        env=bare_env(tmp_path),
        capture_output=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip("another uid may not read this checkout")
    home = tmp_path / "other"
    home.mkdir()
    for path in (home, *home.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):  # noqa: S108  (of pytest's own)
            path.chmod(path.stat().st_mode | 0o055)
    os.chown(home, NOBODY, NOBODY)
    yield home
    _other(home, "hub", "stop")


def _as_nobody(*options: str) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *options)


def _other(home: Path, *arguments: str, **extra: str) -> Ran:
    return tfx(
        home,
        *arguments,
        command=(*_as_nobody(*READING), sys.executable, "-m", "tfx"),
        env=bare_env(home, **extra),
    )


def test_h_8_k_29_two_users_on_one_default_port_have_a_hub_each(
    home: Path, other_home: Path
) -> None:
    try:
        with held_default_port():
            pass  # nobody else's test is on it now; whoever comes first below has it
        first = tfx(home, "hub", "start", "--json")
        second = _other(other_home, "hub", "start", "--json")
        assert (first.code, second.code) == (0, 0), second.err
        assert first.data["port"] != second.data["port"]
        assert second.data["port"] != 27888 or first.data["notes"]
        assert "27888" in (second.data["notes"] or first.data["notes"])[0]
        for ran, here in (
            (tfx(home, "hub", "status", "--json"), first),
            (_other(other_home, "hub", "status", "--json"), second),
        ):
            assert ran.code == 0
            assert ran.data["instance"] == here.data["instance"]
        assert _other(other_home, "hub", "agents", "--json").code == 0
        assert not (other_home / ".config").exists()
    finally:
        tfx(home, "hub", "stop")


def test_k_28_another_user_reaches_nothing_of_a_hub(hub: RunningHub, other_home: Path) -> None:
    ran = _other(other_home, "hub", "agents", "--json", TFX_HUB_URL=hub.url)
    assert ran.code != 0
    assert ran.document["problems"][0]["kind"] == "authentication-required"
    for path in hub.files.directory.iterdir():
        done = subprocess.run(
            [*_as_nobody(), "cat", str(path)], capture_output=True, check=False, env={}
        )
        assert done.returncode != 0, path


def test_h_22_a_database_of_another_user_is_refused_and_untouched(
    hub: RunningHub, other_home: Path, tmp_path: Path
) -> None:
    hub.end()
    shared = tmp_path / "shared"
    shutil.copytree(hub.files.directory, shared)
    for path in (shared, *shared.iterdir()):
        path.chmod(0o777)
    before = {path: _seen(path) for path in shared.iterdir()}
    ran = _other(
        other_home, "hub", "start", "--port", "0", "--json", TFX_HUB_DB=str(shared / "hub.db")
    )
    assert ran.code == 5
    assert ran.document["problems"][0]["code"] == "wrong-owner"
    assert {path: _seen(path) for path in shared.iterdir()} == before


def test_h_22_a_directory_of_another_owner_keeps_its_mode(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another owner")
    directory = home / ".local/state/tfx/hub"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    os.chown(directory, NOBODY, NOBODY)
    assert tfx(home, "hub", "start").code == 5
    assert directory.stat().st_mode & 0o777 == 0o755


def _seen(path: Path) -> tuple[int, int, int, bytes]:
    found = path.stat()
    return found.st_mode, found.st_uid, found.st_mtime_ns, path.read_bytes()
