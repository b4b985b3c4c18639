"""assets/hud/tfx-hud.py as Claude Code starts it: JSON on stdin, one line, never an error."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hub.running import RunningHub, start
from tests.route.fakes import Bench, benching, wait_until
from tests.support import bare_env

HUD = Path(__file__).resolve().parents[2] / "assets" / "hud" / "tfx-hud.py"
SESSION = b'{"model":{"display_name":"M"},"cwd":"/a/b"}'


@pytest.fixture
def patient(tmp_path: Path) -> Path:
    """The same script, which waits for a hub on a busy machine for as long as it takes."""
    text, patience = HUD.read_text("utf-8"), "HUB_LIMIT_S = 0.15 "
    assert patience in text
    script = tmp_path / "tfx-hud.py"
    script.write_text(text.replace(patience, "HUB_LIMIT_S = 60 "), "utf-8")
    return script


def line(
    stdin: bytes,
    columns: str = "80",
    env: Mapping[str, str] | None = None,
    script: Path = HUD,
) -> str:
    done = subprocess.run(
        [sys.executable, "-I", script],
        input=stdin,
        env={"COLUMNS": columns, **(env or {})},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    return done.stdout.decode().rstrip("\n")


FULL = {
    "model": {"id": "claude-x", "display_name": "Opus 가"},
    "context_window": {"used_percentage": 41.7},
    "cost": {"total_cost_usd": 1.239},
    "workspace": {"current_dir": "/home/me/my project/"},
}


def test_r11_the_line_shows_what_is_known() -> None:
    assert line(json.dumps(FULL).encode()) == "Opus 가 · context 42% · $1.24 · my project"
    assert line(b'{"model":{"id":"m"},"cwd":"/a/b"}') == "m · b"
    assert line(b'{"model":{"id":"m"},"cost":{"total_cost_usd":0}}') == "m"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ("42", "Opus 가 · context 42% · $1.24 · my project"),
        ("41", "Opus 가 · context 42% · my project"),
        ("33", "Opus 가 · context 42%"),
        ("20", "Opus 가"),
        ("7", "Opus 가"),
        ("6", ""),
        ("0", ""),
        ("not a number", "Opus 가 · context 42% · $1.24 · my project"),
        ("99999999999999", "Opus 가 · context 42% · $1.24 · my project"),
    ],
)
def test_r11_the_line_adapts_to_the_columns_that_its_characters_take(
    columns: str, shown: str
) -> None:
    assert line(json.dumps(FULL).encode(), columns) == shown


@pytest.mark.parametrize(
    "stdin",
    [
        *(b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"model":7}', b"[" * 100_000),
        *(b'{"model":null}', b'{"context_window":{"used_percentage":1e999}}'),
        *(b'{"cost":{"total_cost_usd":NaN}}', b'{"cwd":{"a":1}}'),
    ],
)
def test_r11_the_line_never_shows_an_error(stdin: bytes) -> None:
    assert line(stdin) == ""


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert line(b'{"model":{"display_name":"a\\u001b[31mb\\n"}}') == "a[31mb"


# --- jobs -----------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benching(tmp_path) as made:
        yield made


def test_r11_running_jobs_are_counted_by_the_identity_of_their_workers(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('echo x >>"$FAKE_DIR/up"; [ "$(cat "$note.stdin")" = short ] || sleep 300')
    env = {"HOME": str(bench.home)}
    assert line(SESSION, env=env) == "M · b"
    jobs = [bench.route("executor", "long", "--background").out.strip() for _ in range(2)]
    bench.route("executor", "short")
    assert wait_until(lambda: (bench.notes / "up").read_text().count("x") == 3)
    assert line(SESSION, env=env) == "M · b · 2 jobs"
    bench.tfx("jobs", "cancel", jobs[0])
    assert line(SESSION, env=env) == "M · b · 1 job"
    record = bench.jobs / jobs[1] / "job.json"
    document = json.loads(record.read_bytes())
    for broken in ({"start_token": "1"}, {"boot_id": "another"}, {"pid": "x"}, {"pid": None}):
        record.write_text(json.dumps({**document, "worker": document["worker"] | broken}))
        assert line(SESSION, env=env) == "M · b"
    for text in ("{", "[]", '{"status": "running", "worker": 7}'):
        record.write_text(text)
        assert line(SESSION, env=env) == "M · b"
    record.write_text(json.dumps(document))


# --- hub ------------------------------------------------------------------------------------


@pytest.fixture
def hub(home: Path) -> Iterator[RunningHub]:
    running = start(home)
    try:
        yield running
    finally:
        running.end()


def test_r11_the_hub_and_what_waits_for_this_agent_are_shown(
    hub: RunningHub, patient: Path
) -> None:
    env = {"HOME": str(hub.home), "TFX_AGENT_ID": "claude.b"}
    assert line(SESSION, env=env, script=patient) == "M · b · hub"
    hub.register("claude.b", "ann")
    assert line(SESSION, env=env, script=patient) == "M · b · hub"
    for _ in range(3):
        hub.call("publish", from_="ann", to="claude.b", topic="t", payload={})
    assert line(SESSION, env=env, script=patient) == "M · b · hub · 3 unread"
    assert line(SESSION, env={"HOME": str(hub.home)}, script=patient) == "M · b · hub"


def test_r11_k27_the_agent_is_found_by_the_nearest_claude_process(
    hub: RunningHub, patient: Path
) -> None:
    """A copy of a shell called `claude` stands for the client; the hub knows it by pid."""
    claude = hub.home / "claude"
    shutil.copy(shutil.which("bash") or "/bin/bash", claude)
    script = 'echo $$; read -r go; "$1" -I "$2" <<<"$3"; read -r go; "$1" -I "$2" <<<"$3"; exit 0'
    with subprocess.Popen(
        [str(claude), "-c", script, "claude", sys.executable, str(patient), SESSION.decode()],
        env=bare_env(hub.home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        client.stdin.write("go\n")
        client.stdin.flush()
        assert client.stdout.readline() == "M · b · hub\n"
        name = _attached(hub, pid)
        hub.register("ann")
        hub.call("publish", from_="ann", to=name, topic="t", payload={})
        client.stdin.write("go\n")
        client.stdin.flush()
        assert client.stdout.readline() == "M · b · hub · 1 unread\n"


def _attached(hub: RunningHub, pid: int) -> str:
    from tfx.core.identity import identify  # noqa: PLC0415

    process = identify(pid)
    assert process is not None
    facts = {name: getattr(process, name) for name in process.__slots__}
    found = hub.call("attach", cli="claude", workspace="/a/b", process=facts)
    return str(found["agent_id"])


def test_r11_a_hub_that_was_killed_is_off(hub: RunningHub, patient: Path) -> None:
    hub.kill()
    with socket.socket() as nobody:  # so that no other program takes its port meanwhile
        nobody.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        nobody.bind(("127.0.0.1", hub.port))
        shown = line(SESSION, env={"HOME": str(hub.home)}, script=patient)
    assert shown == "M · b · hub off"


def test_r11_a_wrong_token_gives_a_shorter_line(hub: RunningHub) -> None:
    env = {"HOME": str(hub.home), "TFX_AGENT_ID": "claude.b", "TFX_HUB_TOKEN": "wrong" * 8}
    assert line(SESSION, env=env).startswith("M · b")


@contextmanager
def answering(home: Path, *answers: bytes, after: threading.Event | None = None) -> Iterator[None]:
    """Something on loopback that the state file calls a hub; it answers `after` something."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        state = home / ".local/state/tfx/hub/state.json"
        state.parent.mkdir(parents=True, exist_ok=True)
        port = server.getsockname()[1]
        state.write_text(json.dumps({"url": f"http://127.0.0.1:{port}"}))

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                for answer in answers:
                    connection.recv(65536)
                    if after is not None:
                        after.wait()
                    try:
                        connection.sendall(answer)
                    except OSError:
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            if after is not None:
                after.set()
            socket.create_connection(("127.0.0.1", port)).close()  # should nobody have come
            thread.join()


def ok(document: object) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


STATUS = {"hub": {"state": "degraded"}, "queues": {"pending_human_requests": 2}}


def test_r11_pending_human_requests_and_the_state_are_shown(home: Path, patient: Path) -> None:
    env = {"HOME": str(home), "TFX_AGENT_ID": "me"}
    agent = {"ok": True, "data": {"agent": {"unread": 7}}}
    with answering(home, ok({"data": STATUS}), ok(agent)):
        shown = line(SESSION, env=env, script=patient)
    assert shown == "M · b · hub degraded · 2 ask you · 7 unread"


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"nonsense", b"HTTP/1.1 500 no\r\ncontent-length: 2\r\n\r\n{}"),
        *(b"HTTP/1.1 200 OK\r\n\r\n{}", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[1, 2, 3]"),
        *(ok([]), ok({"data": {"queues": {"pending_human_requests": "x"}}}), b"x" * 400_000),
    ],
)
def test_r11_whatever_answers_the_line_is_only_shorter(home: Path, answer: bytes) -> None:
    with answering(home, answer):
        shown = line(SESSION, env={"HOME": str(home), "TFX_AGENT_ID": "me"})
    assert shown in {"M · b", "M · b · hub", "M · b · hub slow"}


def test_r11_a_slow_hub_is_not_waited_for(home: Path) -> None:
    with answering(home, ok({"data": STATUS}), after=threading.Event()):
        assert line(SESSION, env={"HOME": str(home)}) == "M · b · hub slow"


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:80", "https://127.0.0.1:1", "file:///etc/passwd", "", 7]
)
def test_r11_the_token_goes_to_this_machine_only(home: Path, url: object) -> None:
    state = home / ".local/state/tfx/hub/state.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"url": url}))
    assert line(SESSION, env={"HOME": str(home)}) == "M · b"


def test_r11_a_hub_on_another_database_is_found_by_its_mark(
    home: Path, tmp_path: Path, patient: Path
) -> None:
    database = tmp_path / "else" / "hub.db"
    database.parent.mkdir()
    running = start(home, None, TFX_HUB_DB=str(database))
    try:
        assert line(SESSION, env=running.env, script=patient) == "M · b · hub"
        assert line(SESSION, env={"HOME": str(home)}) == "M · b"
    finally:
        running.end()


def test_r11_it_imports_nothing_slow() -> None:
    probe = (
        "import sys, io; sys.stdin = io.TextIOWrapper(io.BytesIO(b'{}'));"
        f"exec(compile(open({str(HUD)!r}).read(), 'hud', 'exec')); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe],
        env={"HOME": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    slow = {"asyncio", "http.client", "typing", "urllib.request", "pathlib", "subprocess", "tfx"}
    assert not slow & set(done.stdout.split())
