"""`tfx hub start`, `stop`, `status`, `ensure`, `restart` as a user runs them (hub.md §2, §3)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, free_port, start
from tests.support import Ran, bare_env, tfx
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.daemon.probe import State, probe
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

KEYS = {"state", "url", "pid", "port", "instance", "version", "database", "schema"}


@pytest.fixture
def env(home: Path) -> Iterator[dict[str, str]]:
    """An environment whose preferred port is free; its hub is stopped at the end."""
    given = bare_env(home)
    yield given
    tfx(home, "hub", "stop", env=given)


def _hub(home: Path, env: dict[str, str], *arguments: str) -> Ran:
    return tfx(home, "hub", *arguments, env=env)


def _files(home: Path) -> HubFiles:
    return HubFiles.of(Paths.resolve(bare_env(home)))


def test_h_1_start_in_an_empty_home_tells_where_the_hub_is(home: Path, env: dict[str, str]) -> None:
    ran = _hub(home, env, "start", "--port", "0", "--json")
    assert ran.code == 0, ran.err
    assert set(ran.data) >= KEYS
    assert ran.data["state"] == "running"
    assert ran.data["started"] is True
    assert set(ran.data["schema"]) >= {"version", "hash"}
    assert ran.data["database"] == str(home / ".local/state/tfx/hub/hub.db")
    assert ran.data["url"] == f"http://127.0.0.1:{ran.data['port']}"
    status = _hub(home, env, "status", "--json")
    assert (status.code, status.data["instance"]) == (0, ran.data["instance"])


def test_h_1_start_tells_people_url_paths_and_the_next_step(
    home: Path, env: dict[str, str]
) -> None:
    ran = _hub(home, env, "start", "--port", "0")
    assert ran.code == 0
    for word in ("http://127.0.0.1:", "pid", "hub.db", "hub.log", "tfx hub publish"):
        assert word in ran.out


def test_h_1_a_second_start_does_nothing_and_says_so(home: Path, env: dict[str, str]) -> None:
    first = _hub(home, env, "start", "--port", "0", "--json")
    second = _hub(home, env, "start", "--json")
    assert (second.code, second.data["instance"]) == (0, first.data["instance"])
    assert second.data["started"] is False
    assert "already running" in second.data["notes"][0]
    assert "already running" in _hub(home, env, "start").err


def test_h_97_start_on_another_port_than_it_runs_on_is_refused_with_the_url(
    home: Path, env: dict[str, str]
) -> None:
    first = _hub(home, env, "start", "--port", "0", "--json")
    other = _hub(home, env, "start", "--port", str(free_port()), "--json")
    assert other.code == 5
    assert other.document["problems"][0]["code"] == "other-port"
    assert first.data["url"] in other.document["problems"][0]["message"]
    assert _hub(home, env, "start", "--port", str(first.data["port"])).code == 0


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
    left = {path.name for path in _files(home).directory.iterdir()}
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


def test_h_8_the_preferred_port_gives_way_and_own_clients_follow(
    home: Path, env: dict[str, str]
) -> None:
    with _held_default_port():
        ran = _hub(home, env, "start", "--json")
        assert ran.code == 0, ran.err
        assert ran.data["port"] != 27888
        assert "27888" in ran.data["notes"][0]
        assert _hub(home, env, "status", "--json").data["url"] == ran.data["url"]
        assert _hub(home, env, "agents", "--json").code == 0
    assert not (home / ".config").exists()  # K-29: nothing of it goes into any config


def test_k_29_two_homes_have_two_hubs_at_once(tmp_path: Path) -> None:
    hubs: list[RunningHub] = []
    try:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            hubs.append(start(tmp_path / name))
        assert hubs[0].port != hubs[1].port
        assert hubs[0].token != hubs[1].token
    finally:
        for hub in hubs:
            hub.end()


def test_h_3_status_of_a_stopped_hub_exits_4_and_has_a_state(home: Path) -> None:
    ran = tfx(home, "hub", "status", "--json", env=_quiet(home))
    assert ran.code == 4
    assert ran.data["state"] == "stopped"
    assert ran.document["problems"][0]["hint"] == "tfx hub start"
    assert list(home.iterdir()) == []


def test_h_2_stop_without_a_hub_is_fine(home: Path) -> None:
    ran = tfx(home, "hub", "stop", "--json")
    assert (ran.code, ran.data["stopped_by"]) == (0, "nothing-running")


def test_h_2_stop_returns_when_the_lock_is_free(home: Path, env: dict[str, str]) -> None:
    started = _hub(home, env, "start", "--port", "0", "--json")
    ran = _hub(home, env, "stop", "--json")
    assert (ran.code, ran.data["stopped_by"]) == (0, "request")
    files = _files(home)
    assert not locks.is_held(files.lock)
    assert files.lock.exists()
    assert not files.state.exists()
    _await_end(started.data["pid"])


def test_h_4_restart_keeps_the_wishes(home: Path, env: dict[str, str]) -> None:
    port = free_port()
    first = _hub(home, env, "start", "--port", str(port), "--idle-exit", "900", "--json")
    again = _hub(home, env, "restart", "--json")
    assert (again.code, again.data["port"]) == (0, port)
    assert again.data["instance"] != first.data["instance"]
    recorded = probe(Paths.resolve(env)).recorded
    assert recorded is not None
    assert recorded.wishes == RunWishes(port, 900)


def test_h_4_h_96_five_starts_at_once_are_one_hub(env: dict[str, str]) -> None:
    _starts_at_once(env, 5)


@pytest.mark.faults
def test_h_4_h_96_twenty_starts_at_once_are_one_hub(env: dict[str, str]) -> None:
    _starts_at_once(env, 20)


def _starts_at_once(env: dict[str, str], count: int) -> None:
    argv = [sys.executable, "-m", "tfx", "hub", "ensure", "--json"]
    children = [
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    answers = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0] * count, answers
    documents = [json.loads(out) for out, _err in answers]
    assert len({document["data"]["instance"] for document in documents}) == 1
    assert sum(document["data"]["started"] for document in documents) == 1


def test_h_10_one_database_has_one_hub_by_whatever_path(home: Path, tmp_path: Path) -> None:
    hub = start(home)
    try:
        (tmp_path / "link.db").symlink_to(hub.files.database)
        (tmp_path / "linked").symlink_to(hub.files.directory)
        for path in (tmp_path / "link.db", tmp_path / "linked" / "hub.db"):
            paths = Paths.resolve({**hub.env, "TFX_HUB_DB": str(path)})
            assert HubFiles.of(paths).lock == hub.files.lock
            second = launch.start(paths, RunWishes())
            assert not second.by_us
            assert second.probe.recorded is not None
            assert second.probe.recorded.instance == hub.instance
    finally:
        hub.end()


def test_h_9_another_database_has_a_hub_of_its_own(hub: RunningHub, tmp_path: Path) -> None:
    other = start(hub.home, {**hub.env, "TFX_HUB_DB": str(tmp_path / "x" / "other.db")})
    try:
        assert other.instance != hub.instance
        assert other.files.state != hub.files.state
        assert other.token == hub.token
        assert probe(hub.paths).state is probe(other.paths).state is State.RUNNING
    finally:
        other.end()


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
    files = _files(home)
    files.directory.mkdir(parents=True)
    files.state.write_bytes(content)
    assert _hub(home, _quiet(home), "status", "--json").data["state"] == "stopped-stale"
    assert _hub(home, env, "start", "--port", "0", "--json").data["state"] == "running"


def test_h_10_after_sigkill_start_works(hub: RunningHub) -> None:
    hub.kill()
    assert hub.files.lock.exists()
    assert probe(hub.paths, port=0).state is State.STALE
    again = hub.again()
    assert again.instance != hub.instance
    assert probe(hub.paths).state is State.RUNNING


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
    assert not locks.is_held(_files(home).lock)
    left = {path.name for path in _files(home).directory.iterdir()}
    assert left == {"hub.db.lock"}


def test_h_18_the_daemon_has_a_session_of_its_own_and_little_else(
    home: Path, env: dict[str, str]
) -> None:
    env |= {"SECRET_OF_THE_SHELL": "canary", "TFX_X": "1", "XDG_DATA_HOME": str(home / "d")}
    env |= {"PYTHONPATH": "/nonexistent"}
    pid = _hub(home, env, "start", "--port", "0", "--json").data["pid"]
    root = Path(f"/proc/{pid}")
    assert os.getsid(pid) == pid
    assert (root / "cwd").readlink() == Path("/")
    names = {
        entry.partition(b"=")[0].decode() for entry in (root / "environ").read_bytes().split(b"\0")
    } - {""}
    assert names <= {"HOME", "PATH", "LANG", "TMPDIR"} | {
        n for n in names if n[:4] in {"XDG_", "TFX_"}
    }
    assert {"TFX_X", "XDG_DATA_HOME"} <= names
    assert b"\0-I\0" in (root / "cmdline").read_bytes()
    assert (root / "fd/0").readlink() == Path("/dev/null")
    kinds = [str(name.readlink()) for name in (root / "fd").iterdir()]
    assert not [kind for kind in kinds if kind.startswith("/dev/pts")]
    # a pipe from outside would have one end here; those of the event loop have both
    assert not [kind for kind in kinds if kind.startswith("pipe:") and kinds.count(kind) != 2]


def test_h_18_killing_the_starters_process_group_leaves_the_hub(
    home: Path, env: dict[str, str]
) -> None:
    script = f"{sys.executable} -m tfx hub start --port 0; sleep 100"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], env=env, stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        assert b"runs at" in shell.stdout.readline()
        os.killpg(shell.pid, signal.SIGKILL)
    assert _hub(home, env, "status").code == 0


def test_h_103_start_and_status_write_only_the_hubs_own_files(
    home: Path, env: dict[str, str]
) -> None:
    _hub(home, env, "start", "--port", "0")
    _hub(home, env, "status")
    assert [path.name for path in home.iterdir()] == [".local"]
    names = {path.name for path in _files(home).directory.iterdir()}
    assert names - {"hub.db-wal", "hub.db-shm"} == {
        "hub.db",
        "hub.db.lock",
        "hub.log",
        "operator",
        "state.json",
        "token",
    }


def _await_end(pid: int) -> None:
    for _ in range(200):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} still runs")


def _quiet(home: Path) -> dict[str, str]:
    """An environment whose wanted port nobody can be listening on."""
    return bare_env(home, TFX_HUB_PORT="0")


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


@contextlib.contextmanager
def _held_default_port() -> Iterator[None]:
    """Hold port 27888; where somebody else on this machine keeps it, that is as good."""
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for _ in range(500):  # a hub of another test may be on it for a moment
            with contextlib.suppress(OSError):
                holding.bind(("127.0.0.1", 27888))
                holding.listen()
                break
            time.sleep(0.02)
        yield


def mounted(options: str, where: Path, *command: str) -> tuple[str, ...]:
    """Return the words that run a command with an empty file system over a directory (K-44)."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a mount namespace needs root and unshare")
    mount = f'mount -t tmpfs {options} none "$0" && exec "$@"'
    return ("unshare", "--mount", "/bin/sh", "-c", mount, str(where), *command)


def test_k_34_a_triflux_database_that_is_seen_is_mentioned_with_the_command(
    home: Path, env: dict[str, str]
) -> None:
    seen = home / ".claude/cache/tfx-hub/state.db"
    seen.parent.mkdir(parents=True)
    seen.write_bytes(b"whatever it holds")
    ran = _hub(home, env, "start", "--port", "0")
    assert "tfx upgrade --adopt auto" in ran.err
    assert seen.read_bytes() == b"whatever it holds"


@pytest.mark.parametrize("name", ["hub.db", "state.json", "hub.log", "token", "operator"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_h_22_what_is_no_file_is_in_the_way_and_stays(
    home: Path, name: str, make: Callable[[Path], None]
) -> None:
    directory = _files(home).directory
    directory.mkdir(parents=True, mode=0o700)
    make(directory / name)
    ran = _hub(home, bare_env(home), "start", "--port", "0", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "not-a-file")
    assert [path.name for path in directory.iterdir()] == [name]


def test_h_22_a_file_where_a_directory_must_be_is_told(home: Path) -> None:
    (home / ".local").write_bytes(b"mine")
    ran = _hub(home, bare_env(home), "start", "--port", "0", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "io")
    assert (home / ".local").read_bytes() == b"mine"


def test_h_45_files_that_others_could_read_are_narrowed_and_links_left_alone(
    home: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    files = _files(home)
    files.directory.mkdir(parents=True)
    files.token.write_text("0123456789abcdef0123456789abcdef")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("fedcba9876543210fedcba9876543210")
    elsewhere.chmod(0o644)
    files.operator.symlink_to(elsewhere)
    for path in (files.directory, files.token):
        path.chmod(0o755)
    assert _hub(home, env, "start", "--port", "0").code == 0
    assert files.token.stat().st_mode & 0o777 == 0o600
    assert files.directory.stat().st_mode & 0o777 == 0o700
    assert elsewhere.stat().st_mode & 0o777 == 0o644


def test_h_14_people_are_not_told_that_an_unresponsive_hub_runs(hub: RunningHub) -> None:
    state = hub.files.state.read_text("utf-8")
    hub.files.state.write_text(state.replace(hub.instance, "0" * 32))
    ran = tfx(hub.home, "hub", "status", env=hub.env)
    assert ran.code == 4
    assert "unresponsive: other-instance" in ran.out
    assert "running at" not in ran.out
    hub.files.state.write_text(state)


def test_h_51_a_database_that_is_removed_ends_the_hub_instead_of_losing_mail(
    hub: RunningHub,
) -> None:
    hub.register("bob")
    for path in (hub.files.database, *hub.files.directory.glob("hub.db-*")):
        path.unlink()
    reply = hub.post("/v1/publish", {"from": "ann", "to": "bob", "topic": "x", "payload": {}})
    assert (reply.status, reply.code) == (500, "database-gone")
    assert locks.wait_until_free(hub.files.lock, 20)
    assert "database-gone" in hub.files.log.read_text("utf-8")
    assert _hub(hub.home, hub.env, "start", "--port", "0").code == 0
