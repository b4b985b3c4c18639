"""The hub's log: private, rotating, without payloads; read while the hub is down (H-3, H-21)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from tests.hub.running import RunningHub
from tests.support import bare_env, tfx
from tfx.core.paths import Paths
from tfx.hub.daemon import logs
from tfx.hub.places import HubFiles


def test_h_3_logs_works_with_the_hub_down(hub: RunningHub) -> None:
    hub.end()
    ran = tfx(hub.home, "hub", "logs", env=hub.env)
    assert ran.code == 0
    assert f"serves {hub.url}" in ran.out
    assert "stopping: shutdown request" in ran.out
    assert len(tfx(hub.home, "hub", "logs", "-n", "1", "--json", env=hub.env).data["lines"]) == 1


def test_h_3_logs_without_a_log_is_fine(home: Path) -> None:
    assert tfx(home, "hub", "logs").code == 0


def test_k_7_logs_f_prints_ndjson_and_follows_a_restart(hub: RunningHub) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "hub", "logs", "-f", "--json"],
        env=hub.env,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert hub.url in json.loads(child.stdout.readline())["line"]
            hub.end()
            assert "stopping" in json.loads(child.stdout.readline())["line"]
            again = hub.again()
            assert again.url in json.loads(child.stdout.readline())["line"]
        finally:
            child.kill()


def test_h_3_no_line_falls_between_the_last_ones_and_the_next(tmp_path: Path) -> None:
    path = tmp_path / "hub.log"
    path.write_text("one\ntwo\n")
    lines = logs.follow(path, 1, pause_s=0.005)
    assert next(lines) == "two"
    with path.open("a") as file:
        file.write("three\n")
    assert next(lines) == "three"


def test_h_3_follow_reads_through_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "hub.log"
    path.write_text("before\n")
    lines = logs.follow(path, 1, pause_s=0.005)
    assert next(lines) == "before"  # from here on it follows
    with path.open("a") as file:
        file.write("old 1\nold 2\n")
    assert next(lines) == "old 1"
    with path.open("a") as file:
        file.write("old 3\n")
    path.rename(tmp_path / "hub.log.1")
    path.write_text("new 1\nla")
    assert [next(lines) for _ in range(3)] == ["old 2", "old 3", "new 1"]
    with path.open("a") as file:
        file.write("st\n")
    assert next(lines) == "last"


def test_h_21_the_last_lines_reach_into_the_rotated_file(tmp_path: Path) -> None:
    (tmp_path / "hub.log.1").write_text("a\nb\nc\n")
    (tmp_path / "hub.log").write_text("d\n")
    assert logs.last_lines(tmp_path / "hub.log", 3) == ["b", "c", "d"]
    assert logs.last_lines(tmp_path / "hub.log", 1) == ["d"]
    assert logs.last_lines(tmp_path / "hub.log", 0) == []
    assert logs.last_lines(tmp_path / "none.log", 9) == []


def test_h_21_the_log_rotates_at_five_files_and_takes_standard_error_along(
    tmp_path: Path,
) -> None:
    code = (
        "import logging, os, sys; from pathlib import Path; from tfx.hub.daemon import logs;"
        "logs.MAX_BYTES = 2000; os.umask(0o077); logs.to_file(Path(sys.argv[1]));"
        "[logging.getLogger('tfx.x').info('line %d %s', n, 'x' * 80) for n in range(200)];"
        "print('to the newest', file=sys.stderr)"
    )
    path = tmp_path / "hub.log"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["hub.log", "hub.log.1", "hub.log.2", "hub.log.3", "hub.log.4"]
    assert "to the newest" in path.read_text()
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_h_21_ten_thousand_requests_add_fewer_than_ten_lines(hub: RunningHub) -> None:
    before = len(hub.files.log.read_text().splitlines())
    for _ in range(500):  # the same few code paths; the number is scaled down
        assert hub.get("/status").status == 200
        assert hub.post("/v1/publish", b"{}").status == 400
        assert hub.request("GET", "/status", None, [("Host", "evil")]).status == 421
        with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as connection:
            connection.sendall(b"no such protocol\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert len(hub.files.log.read_text().splitlines()) - before < 10


def test_h_3_a_log_that_cannot_be_read_is_an_error_and_no_bug(home: Path) -> None:
    log = HubFiles.of(Paths.resolve(bare_env(home))).log
    log.mkdir(parents=True)
    for words in (("logs",), ("logs", "-f")):
        ran = tfx(home, "hub", *words, "--json")
        assert (ran.code, ran.document["problems"][0]["code"]) == (1, "log-unreadable")
