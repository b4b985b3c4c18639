"""`mcp.registration`: our entry as written, and how far a connection to the hub gets."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.world import Clinic, commands, hurried, texts
from tests.hub.running import RunningHub, free_port, start
from tfx.doctor.checks import registration
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options

STATE = ".claude.json"


@pytest.fixture
def claude(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path, "claude").everywhere()


def entry(clinic: Clinic, agent: str = "claude") -> Any:  # noqa: ANN401
    return clinic.rows("mcp.registration")[agent]


def test_d105_k20_without_an_entry_setup_is_named(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude", "gemini").everywhere()
    assert entry(clinic).status is Status.SKIP
    clinic.setup("--agent", "claude")
    assert entry(clinic).status is Status.OK
    found = entry(clinic, "gemini")
    assert (found.status, commands(found)) == (Status.INFO, ["tfx setup"])


def test_d105_a_stdio_entry_whose_command_runs_is_ok(claude: Clinic) -> None:
    claude.setup("--mcp-transport", "stdio")
    found = entry(claude)
    assert found.status is Status.OK
    assert "its command runs" in found.summary


@pytest.mark.parametrize("fault", ["gone", "relative"])
def test_d105_d135_d136_an_edited_entry_is_named_with_the_options(
    claude: Clinic, fault: str
) -> None:
    claude.setup("--mcp-transport", "stdio")
    state = json.loads((claude.home / STATE).read_text())
    command = "tfx" if fault == "relative" else "/no/such/tfx"
    state["mcpServers"]["tfx-hub"]["command"] = command
    claude.write(STATE, json.dumps(state))
    found = entry(claude)
    assert found.status is Status.WARN
    assert found.details["state"] == "edited"
    assert commands(found) == ["tfx setup --take-new", "tfx setup --keep-mine"]
    assert found.fix == {"class": "M"}


def test_d105_d135_our_entry_names_an_absolute_command(claude: Clinic) -> None:
    claude.setup("--mcp-transport", "stdio")
    state = json.loads((claude.home / STATE).read_text())
    assert state["mcpServers"]["tfx-hub"]["command"].startswith("/")


def test_d105_s84_an_entry_that_vanished_is_told(claude: Clinic) -> None:
    claude.setup("--mcp-transport", "stdio")
    claude.write(STATE, "{}")
    found = entry(claude)
    assert found.details["state"] == "deleted"
    assert "tfx setup --restore" in commands(found)


def test_d105_an_entry_of_triflux_is_named(claude: Clinic) -> None:
    server = {"type": "http", "url": "http://127.0.0.1:27888/mcp"}
    claude.write(STATE, json.dumps({"mcpServers": {"tfx-hub": server}}))
    claude.setup()
    found = entry(claude)
    assert (found.status, "triflux" in found.summary) == (Status.WARN, True)


def test_d105_our_entry_stays_ours_when_the_token_is_gone(claude: Clinic) -> None:
    http_entry(claude, free_port())
    (claude.home / ".local/state/tfx/hub/token").unlink()
    found = entry(claude)
    assert "not of tfx" not in found.summary
    assert "nothing listens" in found.summary


def test_d105_two_files_with_the_entry_are_told(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "opencode").everywhere()
    server = {"mcp": {"tfx-hub": {"type": "local", "command": ["/bin/true"]}}}
    for name in ("opencode.json", "opencode.jsonc"):
        clinic.write(f".config/opencode/{name}", json.dumps(server))
    found = entry(clinic, "opencode")
    assert (found.status, "2 files" in found.summary) == (Status.WARN, True)


def http_entry(claude: Clinic, port: int) -> None:
    claude.write(".config/tfx/config.toml", f"[hub]\nport = {port}\n")
    ran = claude.setup("--mcp-transport", "http")
    assert ran.code == 0, ran.out


def test_d105_d162_a_dead_port_is_configured_and_not_listening(claude: Clinic) -> None:
    http_entry(claude, free_port())
    found = entry(claude)
    assert found.status is Status.WARN
    assert (found.details["configured"], found.details["listening"]) == (True, False)
    assert commands(found) == ["tfx hub start"]


@contextmanager
def stranger() -> Iterator[tuple[int, list[bytes]]]:
    """A server of somebody else, and what it was sent."""
    sent: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port, sent
        server.shutdown()
        thread.join()


def test_d1_d105_a_stranger_on_the_port_is_sent_nothing(claude: Clinic) -> None:
    with stranger() as (port, sent):
        http_entry(claude, port)
        found = entry(claude)
    assert found.status is Status.WARN
    assert found.details["listening"] is True
    assert "another program" in found.summary
    assert sent == []


@pytest.fixture
def served(claude: Clinic) -> Iterator[RunningHub]:
    """A running hub, and an HTTP entry in Claude that names its port."""
    hub = start(claude.home, claude.env)
    try:
        http_entry(claude, hub.port)
        yield hub
    finally:
        hub.end()


def test_d105_d162_d180_a_running_hub_answers_initialize(
    claude: Clinic, served: RunningHub
) -> None:
    found = entry(claude)
    assert (found.status, found.summary) == (Status.OK, "http, answers `initialize`")
    assert {
        name: found.details[name] for name in ("configured", "listening", "http", "status")
    } == {
        "configured": True,
        "listening": True,
        "http": True,
        "status": 200,
    }
    assert served.token not in texts(found)
    ran = claude.doctor("mcp.registration", "hub.health")
    assert (ran.code, ran.data["verdict"]) == (0, "ok")


def test_d105_d162_the_look_registers_nobody_with_the_hub(
    claude: Clinic, served: RunningHub
) -> None:
    entry(claude)
    assert served.call("agents")["agents"] == []


def test_must_show_d105_d162_a_hub_that_died_leaves_a_dead_port(
    claude: Clinic, served: RunningHub
) -> None:
    served.kill()
    before = (claude.home / STATE).read_bytes()
    ran = claude.doctor("mcp.registration", "--fix", "--yes")
    [found] = [each for each in ran.data["rows"] if each["target"] == "claude"]
    assert (ran.code, found["status"]) == (0, "warn")
    assert (found["details"]["configured"], found["details"]["listening"]) == (True, False)
    assert "nothing listens" in found["summary"]
    assert found["remediation"][0]["command"] == "tfx hub start"
    assert (claude.home / STATE).read_bytes() == before
    claude.env["TFX_HUB_PORT"] = str(served.port)
    again = claude.tfx("hub", "start", "--json")
    assert again.code == 0, again.out
    assert entry(claude).status is Status.OK


def test_d105_d162_a_refused_initialize_is_a_failure() -> None:
    found = registration._initialised("claude", 401, b"", {})
    assert (found.status, commands(found)) == (Status.FAIL, ["tfx setup"])


def test_d105_d162_a_hub_that_hangs_is_no_stranger(claude: Clinic, served: RunningHub) -> None:
    os.kill(served.pid, signal.SIGSTOP)
    try:
        found = hurried(claude, "mcp.registration", 2.0)["claude"]
    finally:
        os.kill(served.pid, signal.SIGCONT)
    assert (found.status, commands(found)) == (Status.WARN, ["tfx doctor hub.health"])
    assert "another program" not in found.summary


def test_d105_d162_a_path_without_an_endpoint_is_told(claude: Clinic, served: RunningHub) -> None:
    found = registration._http(
        Facts(claude.paths, Options()), "claude", f"http://127.0.0.1:{served.port}/nowhere"
    )
    assert (found.status, found.details["status"]) == (Status.WARN, 404)
    assert found.details["http"] is True


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}', Status.OK),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}', Status.FAIL),
        (b"protocolVersion", Status.FAIL),
        (b"", Status.FAIL),
        (b"event: message\ndata: {}\n\n", Status.FAIL),
    ],
)
def test_d162_only_a_result_with_a_version_counts_as_initialised(
    answer: bytes, status: Status
) -> None:
    assert registration._initialised("claude", 200, answer, {}).status is status


def test_d105_k29_a_substitute_port_is_told_never_written(claude: Clinic) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        hub = start(claude.home, claude.env)
        try:
            http_entry(claude, other.getsockname()[1])
            before = (claude.home / STATE).read_bytes()
            found = entry(claude)
        finally:
            hub.end()
    assert f"the hub runs on {hub.port}" in found.summary
    assert (claude.home / STATE).read_bytes() == before


# an entry of one project ------------------------------------------------------------------


def of_project(clinic: Clinic, value: dict[str, object], directory: str = "work") -> str:
    """Give one project a hub entry of its own, which there beats the one of tfx."""
    (clinic.home / "work").mkdir(exist_ok=True)
    state = json.loads((clinic.home / STATE).read_text())
    place = str(clinic.home / directory)
    state["projects"] = {place: {"mcpServers": {"tfx-hub": value}}}
    clinic.write(STATE, json.dumps(state))
    return f"claude in ~/{directory}"


@pytest.mark.parametrize(
    ("value", "words", "status"),
    [
        ({"url": "http://127.0.0.1:1/mcp?key=canary4711"}, "nothing listens", Status.WARN),
        ({"url": "http://example.org:9/canary4711"}, "not of this machine", Status.WARN),
        ({"url": "http://h:canary4711"}, "its address is none", Status.FAIL),
        ({"command": "/opt/canary4711", "args": ["canary4711"]}, "did not write", Status.WARN),
    ],
)
def test_d105_an_entry_of_a_project_that_beats_ours_is_told_and_not_started(
    claude: Clinic, value: dict[str, object], words: str, status: Status
) -> None:
    claude.setup("--mcp-transport", "stdio")
    target = of_project(claude, value)
    found = entry(claude, target)
    assert (found.status, words in found.summary) == (status, True)
    assert "beats the one of tfx" in found.summary
    assert "by hand" in texts(found)
    assert "canary4711" not in texts(found)
    assert entry(claude).status is Status.OK


def test_d105_an_entry_of_a_directory_that_is_gone_is_no_finding(claude: Clinic) -> None:
    claude.setup("--mcp-transport", "stdio")
    of_project(claude, {"url": "http://127.0.0.1:1/mcp"}, "gone")
    assert set(claude.rows("mcp.registration")) == {"claude"}


@pytest.mark.parametrize("text", ['{"mcpServers": "x"}', "[1]", '{"projects": []}'])
def test_d23_d105_a_file_of_another_shape_breaks_no_check(claude: Clinic, text: str) -> None:
    claude.write(STATE, text)
    for check in ("mcp.registration", "mcp.servers"):
        rows = claude.rows(check)
        assert not any("check broke" in row.summary for row in rows.values())
