"""The hook of Claude Code: new mail once, in its own format, and silence without a hub (H-70)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from tests.architecture.test_startup import HEAVY
from tests.hub.bridging import BRIDGE, BridgeClient, patient_hook
from tests.hub.running import RunningHub
from tests.hub.waiting import until
from tests.support import bare_env

HOOK = Path(__file__).parents[2] / "assets" / "hooks" / "tfx-inbox.py"

# Claude's documented input, with the fields that it always sends.
INPUT = {
    "session_id": "abc123",
    "transcript_path": "/home/u/.claude/projects/p/abc123.jsonl",
    "cwd": "/home/u/project",
    "permission_mode": "default",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "What is new?",
}


def run_hook(home: Path, env: dict[str, str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        patient_hook(HOOK),
        env=env,
        cwd=home,
        input=data,
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_h_70_new_mail_is_told_once_in_claudes_format(hub: RunningHub) -> None:
    env = {**hub.env, "TFX_AGENT_ID": "claude.project"}
    hub.register("claude.project", "sender")
    nothing = run_hook(hub.home, env, json.dumps(INPUT).encode())
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, b"", b"")
    for priority in (5, 9):
        hub.call(
            "publish",
            from_="sender",
            to="claude.project",
            topic="review",
            payload={"secret": "of-the-payload"},
            priority=priority,
        )
    told = run_hook(hub.home, env, json.dumps(INPUT).encode())
    assert (told.returncode, told.stderr) == (0, b"")
    document = json.loads(told.stdout)
    assert set(document) == {"hookSpecificOutput"}
    assert document["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    text = document["hookSpecificOutput"]["additionalContext"]
    assert "2 new for claude.project" in text
    assert text.index("priority 9") < text.rindex("review")
    assert "of-the-payload" not in text
    again = run_hook(hub.home, env, json.dumps(INPUT).encode())
    assert (again.returncode, again.stdout) == (0, b"")
    # nothing was claimed, and the mark outlives the hub
    assert len(hub.call("poll_messages", agent_id="claude.project", wait_ms=0)["messages"]) == 2
    hub.end()
    later = hub.again()
    assert run_hook(hub.home, env, json.dumps(INPUT).encode()).stdout == b""
    later.call("publish", from_="sender", to="claude.project", topic="x", payload={})
    assert b"1 new" in run_hook(hub.home, env, json.dumps(INPUT).encode()).stdout


def test_h_70_without_a_hub_the_hook_is_silent(hub: RunningHub, tmp_path: Path) -> None:
    env = {**hub.env, "TFX_AGENT_ID": "claude.project"}
    hub.kill()
    killed = run_hook(hub.home, env, json.dumps(INPUT).encode())
    assert (killed.returncode, killed.stdout, killed.stderr) == (0, b"", b"")
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    for data in (json.dumps(INPUT).encode(), b"", b"[]", b"{", b"\xff"):
        never = run_hook(fresh, bare_env(fresh), data)
        assert (never.returncode, never.stdout, never.stderr) == (0, b"", b"")


def test_h_70_a_wrong_token_is_one_line_on_standard_error(hub: RunningHub) -> None:
    env = {**hub.env, "TFX_HUB_TOKEN": "not-the-token-of-it", "TFX_AGENT_ID": "claude.project"}
    refused = run_hook(hub.home, env, json.dumps(INPUT).encode())
    assert refused.returncode == 1
    assert refused.stdout == b""
    assert refused.stderr.count(b"\n") == 1
    assert b"token" in refused.stderr


def test_h_70_a_hook_imports_nothing_heavy(hub: RunningHub) -> None:
    probe = (
        "import sys, runpy\n"
        "try:\n    runpy.run_path(sys.argv[1], run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", probe, str(HOOK)],
        env=hub.env,
        input=json.dumps(INPUT).encode(),
        capture_output=True,
        check=True,
    )
    assert not {*HEAVY, "typer"} & set(done.stderr.decode().split())


def test_h_70_k_27_the_bridge_and_the_hook_agree_on_the_agent(hub: RunningHub) -> None:
    program = hub.home / "bin" / "claude"
    program.parent.mkdir()
    hook = shlex.join(patient_hook(HOOK))
    # one process called claude is the parent of both
    program.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys, time, pathlib\n"
        f"bridge = subprocess.Popen({[*BRIDGE]!r})\n"
        "ask, said = pathlib.Path('ask'), pathlib.Path('said')\n"
        "while bridge.poll() is None:\n"
        "    if ask.exists():\n"
        "        data = ask.read_bytes()\n"
        "        ask.unlink()\n"
        f"        done = subprocess.run(['/bin/sh', '-c', {hook!r}], input=data, "
        "capture_output=True)\n"
        "        pathlib.Path('said.new').write_bytes(done.stdout + b'\\n')\n"
        "        pathlib.Path('said.new').rename(said)\n"
        "    time.sleep(0.01)\n",
        "utf-8",
    )
    program.chmod(0o755)
    client = BridgeClient.start(hub.env, cwd=hub.home, argv=[str(program)])
    hub.register("sender")
    instructions = client.open()["instructions"]
    name = instructions.removeprefix("You are the agent ").partition(". ")[0]
    assert name.startswith("claude.")
    hub.call("publish", from_="sender", to=name, topic="x", payload={})
    (hub.home / "ask.new").write_text(json.dumps(INPUT))
    (hub.home / "ask.new").rename(hub.home / "ask")
    until((hub.home / "said").exists)
    assert f"1 new for {name}" in (hub.home / "said").read_text()
    assert client.end() == 0
