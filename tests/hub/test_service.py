"""The hub under a service manager: foreground, sd_notify, a passed socket, the unit (H-5)."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.hub.running import free_port
from tests.support import bare_env, tfx
from tfx.core.paths import Paths
from tfx.hub.daemon import service
from tfx.hub.places import HubFiles

FOREGROUND = (sys.executable, "-m", "tfx", "hub", "start", "--foreground")


@contextlib.contextmanager
def _foreground(
    env: Mapping[str, str], *arguments: str, command: tuple[str, ...] = FOREGROUND
) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [*command, *arguments],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=60)
        child.kill()
        child.wait()


def _document(child: subprocess.Popen[str]) -> dict[str, object]:
    """Read the one JSON document that a foreground hub prints when it serves."""
    assert child.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        line = child.stdout.readline()
        assert line, child.stderr.read() if child.stderr else ""
        lines.append(line)
    loaded = json.loads("".join(lines))
    assert isinstance(loaded, dict)
    return loaded


def test_h_1_foreground_serves_prints_once_and_ends_on_a_signal_with_0(home: Path) -> None:
    env = bare_env(home)
    with _foreground(env, "--port", "0", "--json") as child:
        document = _document(child)
        assert document["exit"] == 0
        data = document["data"]
        assert isinstance(data, dict)
        assert (data["state"], data["pid"]) == ("running", child.pid)
        assert tfx(home, "hub", "status", env=env).code == 0
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "")
    assert "serves http://127.0.0.1:" in err  # H-21: the log goes to stderr
    assert not HubFiles.of(Paths.resolve(env)).log.exists()


def test_h_2_stop_ends_a_foreground_hub_too(home: Path) -> None:
    env = bare_env(home)
    with _foreground(env, "--port", "0", "--json") as child:
        _document(child)
        assert tfx(home, "hub", "stop", "--json", env=env).data["stopped_by"] == "request"
        child.communicate(timeout=60)
    assert child.returncode == 0


def test_h_1_foreground_beside_a_running_hub_is_refused(home: Path) -> None:
    env = bare_env(home)
    with _foreground(env, "--port", "0", "--json") as child:
        _document(child)
        ran = tfx(home, "hub", "start", "--foreground", "--port", "0", "--json", env=env)
        assert (ran.code, ran.document["problems"][0]["code"]) == (5, "lock-held")


def test_h_5_readiness_stopping_and_watchdog_are_notified(home: Path) -> None:
    address = home / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(address))
        channel.settimeout(60)
        env = bare_env(home, NOTIFY_SOCKET=str(address), WATCHDOG_USEC="100000")
        with _foreground(env, "--port", "0", "--json") as child:
            said = [channel.recv(100)]
            while said.count(b"WATCHDOG=1") < 2:
                said.append(channel.recv(100))
            child.send_signal(signal.SIGTERM)
            while said[-1] != b"STOPPING=1":
                said.append(channel.recv(100))
            child.communicate(timeout=60)
    assert said[0] == b"READY=1"
    assert child.returncode == 0


@pytest.mark.faults
def test_h_5_a_passed_socket_is_served(home: Path) -> None:
    activate = shutil.which("systemd-socket-activate")
    if activate is None:
        pytest.skip("systemd-socket-activate is not installed")
    port = free_port()
    env = bare_env(home)
    command = (activate, f"--listen=127.0.0.1:{port}", f"--setenv=HOME={home}", *FOREGROUND)
    with _foreground(env, "--json", command=command) as child:
        for _ in range(200):
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
                connection.close()
                break
            time.sleep(0.05)
        data = _document(child)["data"]
        assert isinstance(data, dict)
        assert data["port"] == port
        assert tfx(home, "hub", "stop", env=env).code == 0
        child.communicate(timeout=60)


def test_h_5_a_passed_socket_that_does_not_listen_on_loopback_is_refused(home: Path) -> None:
    code = (
        "import os, sys; os.dup2(0, 3); os.environ['LISTEN_PID'] = str(os.getpid());"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))  # bound, not listening
        done = subprocess.run(
            [sys.executable, "-c", code, *FOREGROUND, "--json"],
            env=bare_env(home, LISTEN_FDS="1"),
            stdin=given.fileno(),
            capture_output=True,
            check=False,
        )
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"][0]["code"] == "bad-socket"


def test_h_5_the_unit_is_ready_by_notification_and_restarts_on_failure_only(home: Path) -> None:
    env = bare_env(home, XDG_STATE_HOME=str(home / "with space"), TFX_HUB_TOKEN="c" * 40)
    ran = tfx(home, "hub", "install-service", "--dry-run", "--port", "4711", "--json", env=env)
    assert ran.code == 0
    unit = ran.data["unit"]
    for line in ("Type=notify", "Restart=on-failure", "UMask=0077"):
        assert line in unit.splitlines()
    assert f"ExecStart={sys.executable} -I -m tfx hub start --foreground --port 4711" in unit
    assert f'Environment="XDG_STATE_HOME={home}/with space"' in unit
    assert "c" * 40 not in unit
    assert list(home.iterdir()) == []


def test_h_5_the_unit_is_valid_for_systemd(home: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = home / service.UNIT
    unit.write_text(service.unit_text(Paths.resolve(bare_env(home)), None))
    done = subprocess.run(
        [analyze, "--user", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    if "Failed to" in done.stderr:
        pytest.skip(f"systemd-analyze cannot work here: {done.stderr.strip()[:100]}")
    assert service.UNIT not in done.stderr


def test_h_5_install_and_remove_drive_the_service_manager(home: Path) -> None:
    env = _with_systemctl(home, 0)
    ran = tfx(home, "hub", "install-service", "--json", env=env)
    assert ran.code == 0, ran.err
    unit = home / ".config/systemd/user" / service.UNIT
    assert unit.read_text() == ran.data["unit"]
    assert tfx(home, "hub", "install-service", "--json", env=env).code == 0
    assert tfx(home, "hub", "install-service", "--remove", "--json", env=env).code == 0
    assert not unit.exists()
    calls = (home / "calls").read_text().splitlines()
    assert f"--user enable --now {service.UNIT}" in calls
    assert f"--user disable --now {service.UNIT}" in calls
    again = tfx(home, "hub", "install-service", "--remove", "--json", env=env)
    assert (again.code, again.data["done"]) == (0, "nothing: no unit is installed")


def test_h_5_without_a_service_manager_nothing_is_written(home: Path) -> None:
    ran = tfx(home, "hub", "install-service", "--json", env=_with_systemctl(home, 1))
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "no-service-manager")
    assert not (home / ".config").exists()


def test_h_5_a_unit_of_somebody_else_is_left_alone(home: Path) -> None:
    unit = home / ".config/systemd/user" / service.UNIT
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    for words in ((), ("--remove",)):
        ran = tfx(home, "hub", "install-service", *words, "--json", env=_with_systemctl(home, 0))
        assert (ran.code, ran.document["problems"][0]["code"]) == (5, "foreign-unit")
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"


def _with_systemctl(home: Path, code: int) -> dict[str, str]:
    """An environment whose systemctl notes its arguments: no test may touch the real one."""
    tools = home / "bin"
    tools.mkdir(exist_ok=True)
    script = tools / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$@" >> {home}/calls\necho no bus >&2\nexit {code}\n')
    script.chmod(0o755)
    return bare_env(home) | {"PATH": f"{tools}:{os.environ['PATH']}"}
