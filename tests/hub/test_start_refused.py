"""What keeps a hub from starting: ports, owners, broken files, a child that dies (H-8, H-22)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, free_port
from tests.hub.starting import files_of, hub_in, quiet
from tests.support import bare_env, tfx
from tfx.core import locks
from tfx.hub.daemon import launch
from tfx.hub.state import RunWishes


def test_h_97_start_on_another_port_than_it_runs_on_is_refused_with_the_url(
    home: Path, env: dict[str, str]
) -> None:
    first = hub_in(home, env, "start", "--port", "0", "--json")
    other = hub_in(home, env, "start", "--port", str(free_port()), "--json")
    assert other.code == 5
    assert other.document["problems"][0]["code"] == "other-port"
    assert first.data["url"] in other.document["problems"][0]["message"]
    assert hub_in(home, env, "start", "--port", str(first.data["port"])).code == 0


@pytest.mark.parametrize("port", ["abc", "99999", "-1", "65536", "1.5", ""])
def test_h_98_a_port_that_is_none_is_a_usage_error_and_starts_nothing(
    home: Path, port: str
) -> None:
    ran = tfx(home, "hub", "start", "--port", port)
    assert ran.code == 2
    assert "port" in ran.err
    assert list(home.iterdir()) == []


def test_h_9_a_port_variable_that_is_none_is_a_usage_error(home: Path) -> None:
    ran = tfx(home, "hub", "start", env=bare_env(home, TFX_HUB_PORT="27888x"))
    assert ran.code == 2
    assert "TFX_HUB_PORT" in ran.err
    assert list(home.iterdir()) == []


def test_h_8_h_95_an_asked_port_that_is_taken_names_its_holder_and_leaves_nothing(
    home: Path,
) -> None:
    with _listener() as taken:
        port = taken.getsockname()[1]
        for arguments, env in (
            (("--port", str(port)), bare_env(home)),
            ((), bare_env(home, TFX_HUB_PORT=str(port))),
        ):
            ran = tfx(home, "hub", "start", *arguments, env=env)
            assert ran.code == 1
            assert f"port {port}" in ran.err
            assert f"pid {os.getpid()}" in ran.err
            assert list(home.iterdir()) == []


def test_h_11_a_bind_that_fails_in_the_child_opens_and_makes_nothing(home: Path) -> None:
    with _listener() as taken:
        port = taken.getsockname()[1]
        argv = launch.daemon_argv(RunWishes(port=port))
        done = subprocess.run(argv, env=bare_env(home), capture_output=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stderr)["code"] == "port-taken"
    left = {path.name for path in files_of(home).directory.iterdir()}
    assert left == {"hub.db.lock"}


def test_h_42_h_78_a_failed_start_leaves_the_running_hubs_files_alone(
    hub: RunningHub,
) -> None:
    before = {path: path.read_bytes() for path in (hub.files.token, hub.files.operator)}
    inodes = {path: path.stat().st_ino for path in before}
    ran = tfx(hub.home, "hub", "start", "--port", str(free_port()), env=hub.env)
    assert ran.code == 5
    assert {path: path.read_bytes() for path in before} == before
    assert {path: path.stat().st_ino for path in before} == inodes


def test_h_105_a_directory_that_cannot_be_written_is_named(home: Path) -> None:
    state = home / ".local" / "state"
    state.mkdir(parents=True)
    ran = tfx(home, "hub", "start", command=mounted("-o ro", state, sys.executable, "-m", "tfx"))
    assert ran.code == 1
    assert "/.local/state" in ran.err
    assert "Traceback" not in ran.err
    assert list(state.iterdir()) == []


@pytest.mark.faults
@pytest.mark.parametrize("size_k", [4, 16, 32, 64, 100, 160])
def test_h_105_a_full_disk_is_told_and_leaves_nothing_but_the_lock(home: Path, size_k: int) -> None:
    state = home / ".local" / "state"
    state.mkdir(parents=True)
    command = (
        f"{sys.executable} -m tfx hub start --port 0 --json; code=$?;"
        f" ls -A {state}/tfx/hub >&2; exit $code"
    )
    ran = tfx(home, command=mounted(f"-o size={size_k}k", state, "/bin/sh", "-c", command))
    assert ran.code == 1, ran.err
    assert ran.document["problems"][0]["code"] == "disk-full"
    assert set(ran.err.split()) <= {"hub.db.lock"}


def test_h_22_a_directory_of_another_owner_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another owner")
    home = tmp_path / "home"
    directory = home / ".local/state/tfx/hub"
    directory.mkdir(parents=True)
    os.chown(directory, 12345, 12345)
    ran = tfx(home, "hub", "start", "--json")
    assert ran.code == 5
    assert ran.document["problems"][0]["code"] == "wrong-owner"
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"4711\n", b"{}", b'{"format":1,"wishes":{}}', b"\xff"])
def test_h_99_a_broken_state_file_is_no_hub_and_the_next_start_clears_it(
    home: Path, env: dict[str, str], content: bytes
) -> None:
    files = files_of(home)
    files.directory.mkdir(parents=True)
    files.state.write_bytes(content)
    assert hub_in(home, quiet(home), "status", "--json").data["state"] == "stopped-stale"
    assert hub_in(home, env, "start", "--port", "0", "--json").data["state"] == "running"


def test_h_12_a_child_that_dies_is_told_with_its_last_words(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    shutil.copytree(Path(launch.__file__).parents[2], broken / "tfx")
    (broken / "tfx/hub/daemon/live.py").write_text("raise SystemError('no luck today')\n")
    env = bare_env(home, PYTHONPATH=str(broken))
    code = (
        "import sys; from tfx.core.paths import Paths; from tfx.hub.daemon import launch;"
        "from tfx.hub.state import RunWishes;"
        "launch.isolation_flags = list;"
        f"launch.daemon_environment = lambda env: {env!r};"
        "launch.start(Paths.resolve(), RunWishes(port=0))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert b"SystemError" in done.stderr
    assert not locks.is_held(files_of(home).lock)
    left = {path.name for path in files_of(home).directory.iterdir()}
    assert left == {"hub.db.lock"}


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def mounted(options: str, where: Path, *command: str) -> tuple[str, ...]:
    """Return the words that run a command with an empty file system over a directory (K-44)."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a mount namespace needs root and unshare")
    mount = f'mount -t tmpfs {options} none "$0" && exec "$@"'
    return ("unshare", "--mount", "/bin/sh", "-c", mount, str(where), *command)


@pytest.mark.parametrize("name", ["hub.db", "state.json", "hub.log", "token", "operator"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_h_22_what_is_no_file_is_in_the_way_and_stays(
    home: Path, name: str, make: Callable[[Path], None]
) -> None:
    directory = files_of(home).directory
    directory.mkdir(parents=True, mode=0o700)
    make(directory / name)
    ran = hub_in(home, bare_env(home), "start", "--port", "0", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "not-a-file")
    assert [path.name for path in directory.iterdir()] == [name]


def test_h_22_a_file_where_a_directory_must_be_is_told(home: Path) -> None:
    (home / ".local").write_bytes(b"mine")
    ran = hub_in(home, bare_env(home), "start", "--port", "0", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "io")
    assert (home / ".local").read_bytes() == b"mine"


def test_h_45_files_that_others_could_read_are_narrowed_and_links_left_alone(
    home: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    files = files_of(home)
    files.directory.mkdir(parents=True)
    files.token.write_text("0123456789abcdef0123456789abcdef")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("fedcba9876543210fedcba9876543210")
    elsewhere.chmod(0o644)
    files.operator.symlink_to(elsewhere)
    for path in (files.directory, files.token):
        path.chmod(0o755)
    assert hub_in(home, env, "start", "--port", "0").code == 0
    assert files.token.stat().st_mode & 0o777 == 0o600
    assert files.directory.stat().st_mode & 0o777 == 0o700
    assert elsewhere.stat().st_mode & 0o777 == 0o644
