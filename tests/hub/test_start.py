"""`tfx hub start`, `stop`, `status`, `ensure`, `restart` as a user runs them (hub.md §2, §3)."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, free_port, start
from tests.hub.starting import files_of, held_default_port, hub_in, quiet
from tests.support import gone, tfx
from tfx.core import locks
from tfx.core.paths import Paths
from tfx.hub.daemon import launch
from tfx.hub.daemon.probe import State, probe
from tfx.hub.places import HubFiles
from tfx.hub.state import RunWishes

KEYS = {"state", "url", "pid", "port", "instance", "version", "database", "schema"}


def test_h_1_start_in_an_empty_home_tells_where_the_hub_is(home: Path, env: dict[str, str]) -> None:
    ran = hub_in(home, env, "start", "--port", "0", "--json")
    assert ran.code == 0, ran.err
    assert set(ran.data) >= KEYS
    assert ran.data["state"] == "running"
    assert ran.data["started"] is True
    assert set(ran.data["schema"]) >= {"version", "hash"}
    assert ran.data["database"] == str(home / ".local/state/tfx/hub/hub.db")
    assert ran.data["url"] == f"http://127.0.0.1:{ran.data['port']}"
    status = hub_in(home, env, "status", "--json")
    assert (status.code, status.data["instance"]) == (0, ran.data["instance"])


def test_h_1_start_tells_people_url_paths_and_the_next_step(
    home: Path, env: dict[str, str]
) -> None:
    ran = hub_in(home, env, "start", "--port", "0")
    assert ran.code == 0
    for word in ("http://127.0.0.1:", "pid", "hub.db", "hub.log", "tfx hub publish"):
        assert word in ran.out


def test_h_1_a_second_start_does_nothing_and_says_so(home: Path, env: dict[str, str]) -> None:
    first = hub_in(home, env, "start", "--port", "0", "--json")
    second = hub_in(home, env, "start", "--json")
    assert (second.code, second.data["instance"]) == (0, first.data["instance"])
    assert second.data["started"] is False
    assert "already running" in second.data["notes"][0]
    assert "already running" in hub_in(home, env, "start").err


def test_h_8_the_preferred_port_gives_way_and_own_clients_follow(
    home: Path, env: dict[str, str]
) -> None:
    with held_default_port():
        ran = hub_in(home, env, "start", "--json")
        assert ran.code == 0, ran.err
        assert ran.data["port"] != 27888
        assert "27888" in ran.data["notes"][0]
        assert hub_in(home, env, "status", "--json").data["url"] == ran.data["url"]
        assert hub_in(home, env, "agents", "--json").code == 0
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
    ran = tfx(home, "hub", "status", "--json", env=quiet(home))
    assert ran.code == 4
    assert ran.data["state"] == "stopped"
    assert ran.document["problems"][0]["hint"] == "tfx hub start"
    assert list(home.iterdir()) == []


def test_h_2_stop_without_a_hub_is_fine(home: Path) -> None:
    ran = tfx(home, "hub", "stop", "--json")
    assert (ran.code, ran.data["stopped_by"]) == (0, "nothing-running")


def test_h_2_stop_returns_when_the_lock_is_free(home: Path, env: dict[str, str]) -> None:
    started = hub_in(home, env, "start", "--port", "0", "--json")
    ran = hub_in(home, env, "stop", "--json")
    assert (ran.code, ran.data["stopped_by"]) == (0, "request")
    files = files_of(home)
    assert not locks.is_held(files.lock)
    assert files.lock.exists()
    assert not files.state.exists()
    assert gone(started.data["pid"], within_s=60)


def test_h_4_restart_keeps_the_wishes(home: Path, env: dict[str, str]) -> None:
    port = free_port()
    first = hub_in(home, env, "start", "--port", str(port), "--idle-exit", "900", "--json")
    again = hub_in(home, env, "restart", "--json")
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
        assert {probe(each.paths, answer_s=60).state for each in (hub, other)} == {State.RUNNING}
    finally:
        other.end()


def test_h_10_after_sigkill_start_works(hub: RunningHub) -> None:
    hub.kill()
    assert hub.files.lock.exists()
    assert probe(hub.paths, port=0).state is State.STALE
    again = hub.again()
    assert again.instance != hub.instance
    assert probe(hub.paths, answer_s=60).state is State.RUNNING


def test_h_18_the_daemon_has_a_session_of_its_own_and_little_else(
    home: Path, env: dict[str, str]
) -> None:
    env |= {"SECRET_OF_THE_SHELL": "canary", "TFX_X": "1", "XDG_DATA_HOME": str(home / "d")}
    env |= {"PYTHONPATH": "/nonexistent"}
    pid = hub_in(home, env, "start", "--port", "0", "--json").data["pid"]
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
    kinds = [kind for name in (root / "fd").iterdir() if (kind := _target(name))]
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
    assert hub_in(home, env, "status").code == 0


def test_h_103_start_and_status_write_only_the_hubs_own_files(
    home: Path, env: dict[str, str]
) -> None:
    hub_in(home, env, "start", "--port", "0")
    hub_in(home, env, "status")
    assert [path.name for path in home.iterdir()] == [".local"]
    names = {path.name for path in files_of(home).directory.iterdir()}
    assert names - {"hub.db-wal", "hub.db-shm"} == {
        "hub.db",
        "hub.db.lock",
        "hub.log",
        "operator",
        "state.json",
        "token",
    }


def _target(descriptor: Path) -> str:
    """What a descriptor is, or nothing for one that was closed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return str(descriptor.readlink())
    return ""


def test_k_34_a_triflux_database_that_is_seen_is_mentioned_with_the_command(
    home: Path, env: dict[str, str]
) -> None:
    seen = home / ".claude/cache/tfx-hub/state.db"
    seen.parent.mkdir(parents=True)
    seen.write_bytes(b"whatever it holds")
    ran = hub_in(home, env, "start", "--port", "0")
    assert "tfx upgrade --adopt auto" in ran.err
    assert seen.read_bytes() == b"whatever it holds"


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
    message = {"from": "ann", "to": "bob", "topic": "x", "payload": {}}
    with contextlib.suppress(OSError, http.client.HTTPException):
        # A chore of the hub's own may have found it first, and the hub be ending.
        reply = hub.post("/v1/publish", message)
        assert (reply.status, reply.code) == (500, "database-gone")
    assert locks.wait_until_free(hub.files.lock, 60)
    assert "database-gone" in hub.files.log.read_text("utf-8")
    assert hub_in(hub.home, hub.env, "start", "--port", "0").code == 0
