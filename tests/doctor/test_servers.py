"""`mcp.servers` (--deep): servers of others, started for one answer in a scratch home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clock import late_at_each_line
from tests.doctor.world import Clinic, by_target, commands, texts
from tests.support import gone, listing
from tfx.agents.catalogue import AGENTS
from tfx.doctor.checks import servers
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options

SERVER = """#!{python}
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "seen.%d" % os.getpid()), "w") as file:
    json.dump({{"env": dict(os.environ), "argv": sys.argv[1:], "cwd": os.getcwd(),
               "pid": os.getpid()}}, file)
os.replace(file.name, os.path.join(here, "seen.json"))
{body}
"""
ANSWER = """
request = json.loads(sys.stdin.readline())
assert request["method"] == "initialize"
result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x"}}
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
STAY = "\nsys.stdin.read()\ntime.sleep(600)\n"
LATE = "\nwith open(os.path.join(here, 'late'), 'a') as late:\n    print(file=late)\n"


@pytest.fixture
def claude(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path, "claude").everywhere()


def program(clinic: Clinic, body: str, name: str = "server") -> Path:
    text = SERVER.format(python=sys.executable, body=body)
    return clinic.write(f"tools/{name}", text, 0o755)


def registered(clinic: Clinic, **servers: object) -> None:
    clinic.write(".claude.json", json.dumps({"mcpServers": servers}))


def seen(clinic: Clinic) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((clinic.home / "tools/seen.json").read_text())
    return found


def look(clinic: Clinic, **options: Any) -> Any:  # noqa: ANN401
    return clinic.rows("mcp.servers", **options)["claude github"]


def test_d12_d92_no_server_of_others_is_started_without_deep(claude: Clinic) -> None:
    registered(claude, github={"command": str(program(claude, ANSWER + STAY))})
    assert by_target(claude.doctor("agents"), "mcp.servers") == {}
    assert not (claude.home / "tools/seen.json").exists()
    assert set(by_target(claude.doctor("agents", "--deep"), "mcp.servers")) == {"claude github"}
    assert (claude.home / "tools/seen.json").exists()


def test_d12_a_server_that_answers_is_ok_and_ended_with_its_children(claude: Clinic) -> None:
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
    child += f"open({str(claude.home / 'tools/child')!r}, 'w').write(str(child.pid))\n"
    registered(claude, github={"command": str(program(claude, child + ANSWER + STAY))})
    assert look(claude).status is Status.OK
    assert gone(seen(claude)["pid"])
    assert gone(int((claude.home / "tools/child").read_text()))


def test_d91_it_gets_a_scratch_home_its_own_variables_and_nothing_of_ours(claude: Clinic) -> None:
    claude.env |= {"TFX_CANARY": "4711", "GITHUB_TOKEN": "canary-token-1", "WHO": "me"}
    entry = {
        "command": str(program(claude, ANSWER + STAY)),
        "args": ["--who", "${WHO}", "--more", "${NONE:-else}", "${HOME}/x"],
        "env": {"API_KEY": "${GITHUB_TOKEN}"},
    }
    registered(claude, github=entry)
    before = listing(claude.home)
    found = look(claude)
    told = seen(claude)
    assert told["argv"] == ["--who", "me", "--more", "else", f"{claude.home}/x"]
    assert told["env"]["API_KEY"] == "canary-token-1"
    assert told["env"]["HOME"] != str(claude.home)
    assert told["cwd"] == told["env"]["HOME"]
    assert not {"TFX_CANARY", "GITHUB_TOKEN"} & told["env"].keys()
    assert not Path(told["env"]["HOME"]).exists()
    (claude.home / "tools/seen.json").unlink()
    after = listing(claude.home)
    assert {name for name in before if before[name] != after.get(name)} <= {"tools"}
    assert "canary-token-1" not in texts(found)
    assert found.details["variables"] == ["API_KEY"]


def test_a_token_in_its_last_words_is_not_told(claude: Clinic) -> None:
    body = "print('no access with', os.environ['KEY'], sys.argv[1], file=sys.stderr)\nsys.exit(3)"
    entry = {
        "command": str(program(claude, body)),
        "args": ["canary-argument"],
        "env": {"KEY": "canary-value"},
    }
    registered(claude, github=entry)
    found = look(claude)
    assert (found.status, found.details["code"]) == (Status.UNKNOWN, 3)
    assert "no access with *** ***" in texts(found)
    assert "canary" not in texts(found)


def test_d11_a_server_that_is_silent_is_unknown_and_killed(
    claude: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_at_each_line(monkeypatch, claude.home / "tools/late")
    body = "import signal\nfor number in (1, 2, 15):\n    signal.signal(number, signal.SIG_IGN)"
    registered(claude, github={"command": str(program(claude, body + LATE + STAY))})
    found = look(claude, timeout_s=50.0)
    assert (found.status, "within 50 s" in found.summary) == (Status.UNKNOWN, True)
    assert commands(found) == ["tfx doctor mcp.servers --timeout 60"]
    assert gone(seen(claude)["pid"])


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ("sys.exit(0)", Status.UNKNOWN, "ended with 0"),
        ("os.kill(os.getpid(), 9)", Status.UNKNOWN, "ended with -9"),
        ("while True: print('y' * 1000)", Status.UNKNOWN, "flood"),
        ("print('hello', flush=True)" + ANSWER + STAY, Status.WARN, "1 lines that are no message"),
        (ANSWER.replace('"result": result', '"error": {"code": -1}') + STAY, Status.WARN, "error"),
        (
            'print(\'{"jsonrpc": "2.0", "id": 1\', end="", flush=True)' + LATE + STAY,
            Status.UNKNOWN,
            "within",
        ),
    ],
)
def test_d162_what_it_says_first_is_judged(
    claude: Clinic, body: str, status: Status, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_at_each_line(monkeypatch, claude.home / "tools/late")
    registered(claude, github={"command": str(program(claude, body))})
    found = look(claude)
    assert (found.status, word in found.summary) == (status, True), found
    assert gone(seen(claude)["pid"])


@pytest.mark.parametrize("command", ["no-such-program", "/no/such/program"])
def test_d136_a_command_that_is_not_there_is_a_warning(claude: Clinic, command: str) -> None:
    registered(claude, github={"command": command})
    found = look(claude)
    assert (found.status, "not there" in found.summary) == (Status.WARN, True)


def test_d12_what_would_be_fetched_is_started_with_network_only(claude: Clinic) -> None:
    where = program(claude, ANSWER + STAY, "npx")
    registered(claude, github={"command": str(where), "args": ["-y", "some-server"]})
    found = look(claude)
    assert (found.status, "--network" in found.summary) == (Status.SKIP, True)
    assert not (claude.home / "tools/seen.json").exists()
    assert look(claude, network=True).status is Status.OK


def test_d12_a_launcher_behind_a_shell_is_kept_offline(claude: Clinic) -> None:
    registered(claude, github={"command": str(program(claude, ANSWER + STAY))})
    look(claude)
    assert seen(claude)["env"]["npm_config_offline"] == "true"
    look(claude, network=True)
    assert "npm_config_offline" not in seen(claude)["env"]


def test_servers_that_are_off_remote_or_ours_are_left(claude: Clinic) -> None:
    on = {"command": str(program(claude, ANSWER + STAY))}
    registered(
        claude,
        off=on | {"disabled": True},
        remote={"type": "http", "url": "http://127.0.0.1:1/mcp"},
        odd=["no", "entry"],
        **{"tfx-hub": on},
    )
    [found] = claude.rows("mcp.servers").values()
    assert (found.target, found.status) == ("servers", Status.SKIP)
    assert not (claude.home / "tools/seen.json").exists()


def test_each_agents_own_spelling_is_read(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "codex", "opencode", "gemini").everywhere()
    where = str(program(clinic, ANSWER + STAY))
    clinic.write(
        ".codex/config.toml",
        f'[mcp_servers.one]\ncommand = "{where}"\n[mcp_servers.two]\ncommand = "x"\n'
        "enabled = false\n",
    )
    server = {"type": "local", "command": [where, "--x"], "environment": {"A": "1"}}
    clinic.write(".config/opencode/opencode.json", json.dumps({"mcp": {"one": server}}))
    clinic.write(".gemini/settings.json", "{broken")
    rows = clinic.rows("mcp.servers")
    assert {target: row.status for target, row in rows.items()} == {
        "codex one": Status.OK,
        "opencode one": Status.OK,
    }


def test_an_interrupt_leaves_no_server_and_no_folder(claude: Clinic) -> None:
    registered(claude, github={"command": str(program(claude, STAY))})
    temporary = claude.root / "tmp"
    temporary.mkdir()
    argv = [sys.executable, "-m", "tfx", "doctor", "mcp.servers", "--timeout", "60"]
    with subprocess.Popen(
        argv,
        env=claude.env | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        while not (claude.home / "tools/seen.json").exists():
            assert child.poll() is None
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(60) == 130
    assert gone(seen(claude)["pid"])
    assert list(temporary.iterdir()) == []


def test_d69_what_a_server_leaves_in_a_session_of_its_own_is_told(claude: Clinic) -> None:
    mark = claude.home / "tools/child"
    child = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    )
    child += f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
    registered(claude, github={"command": str(program(claude, child + ANSWER + STAY))})
    found = look(claude)
    os.kill(int(mark.read_text()), signal.SIGKILL)
    assert (found.status, "still runs" in found.summary) == (Status.WARN, True)


# servers of a project ---------------------------------------------------------------------


@pytest.fixture
def project(claude: Clinic, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose file asks for a server, and a directory in it to work in."""
    root = claude.home / "work"
    (root / ".git").mkdir(parents=True)
    (root / "deep").mkdir()
    started = {"command": str(program(claude, ANSWER + STAY))}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": started}}))
    monkeypatch.chdir(root / "deep")
    return root


def answered(clinic: Clinic, project: Path, **said: object) -> None:
    clinic.write(".claude.json", json.dumps({"projects": {str(project): said}}))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"enabledMcpjsonServers": ["other"]},
        {"enabledMcpjsonServers": ["theirs"], "disabledMcpjsonServers": ["theirs"]},
    ],
)
def test_d92_a_server_of_a_projects_file_is_not_started_unless_it_was_approved(
    claude: Clinic, project: Path, said: dict[str, object]
) -> None:
    answered(claude, project, **said)
    (project / ".claude").mkdir()  # what the project says of itself approves nothing
    (project / ".claude/settings.json").write_text('{"enableAllProjectMcpServers": true}')
    found = claude.rows("mcp.servers")["claude theirs (.mcp.json)"]
    assert (found.status, "not approved" in found.summary) == (Status.SKIP, True)
    assert not (claude.home / "tools/seen.json").exists()


@pytest.mark.parametrize("where", ["project", "settings"])
def test_d92_an_approved_server_of_a_projects_file_is_started(
    claude: Clinic, project: Path, where: str
) -> None:
    if where == "project":
        answered(claude, project, enabledMcpjsonServers=["theirs"])
    else:
        claude.write(".claude/settings.json", '{"enableAllProjectMcpServers": true}')
    found = claude.rows("mcp.servers")["claude theirs (.mcp.json)"]
    assert found.status is Status.OK


def test_d92_a_server_that_the_user_gave_this_project_is_started(
    claude: Clinic, project: Path
) -> None:
    (project / ".mcp.json").unlink()
    own = {"mine": {"command": str(program(claude, ANSWER + STAY))}}
    answered(claude, project, mcpServers=own)
    assert claude.rows("mcp.servers")["claude mine (this project)"].status is Status.OK


def test_d92_the_servers_of_a_yaml_file_are_read_too(claude: Clinic) -> None:
    command = program(claude, ANSWER + STAY)
    claude.write(
        ".config/goose/config.yaml",
        f"extensions:\n  github:\n    type: stdio\n    cmd: {command}\n    args: [--x]\n"
        "    envs: {KEY: canary-value}\n  off:\n    cmd: /no/such\n    enabled: false\n",
    )
    facts = Facts(claude.paths, Options())
    goose = next(agent for agent in AGENTS if agent.name == "goose")
    one = replace(facts.in_use[0], agent=goose)
    [server] = servers.servers_of(facts, one)
    assert server.target == "goose github"
    assert server.words == (str(command), "--x")
    assert server.variables == {"KEY": "canary-value"}
