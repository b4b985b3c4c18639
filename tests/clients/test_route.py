"""`tfx route` with the real CLIs: every flag of the table is taken, and the prompt arrives.

A model on loopback answers those that are pointed at it; without one nobody is logged in.
"""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.model_stub import ANSWER, Model
from tests.clients.pointing import CLASSES, PROMPT, effort_seen, home_of, only, point_at, strings
from tests.clients.running import Clients
from tests.support import Ran, tfx
from tfx.route.table import bundled

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

TABLE = bundled()
PLAYWRIGHT = {"type": "local", "command": "/bin/false", "args": [], "tools": ["*"]}
# Servers that the profile `implement` has no use for, as each CLI writes them down.
UNWANTED = {
    "codex": (".codex/config.toml", '\n[mcp_servers.playwright]\ncommand = "/bin/false"\n'),
    "gemini": (".gemini/settings.json", None),
    "copilot": (".copilot/mcp-config.json", json.dumps({"mcpServers": {"playwright": PLAYWRIGHT}})),
}


def route(
    clients: Clients,
    cli: str,
    *arguments: str,
    home: Path,
    cwd: Path,
    extra: dict[str, str] | None = None,
    stdin: str = PROMPT,
) -> Ran:
    place = only(cli, home, clients.installed.program(cli))
    env = {
        "HOME": str(home),
        "PATH": f"{clients.installed.node_dir}:/usr/bin:/bin",
        "TFX_ROUTE_DIRS": str(place),
    }
    return tfx(
        home,
        *("route", *arguments, "--cli", cli, "--cwd", str(cwd), "--timeout", "180", "--json"),
        env=env | (extra or {}),
        stdin=stdin,
        timeout_s=240,
    )


@pytest.mark.parametrize(
    ("cli", "role"),
    # opencode is slow to start and gets the same flags for every class
    [
        (cli, role)
        for cli in TABLE.order
        for role in CLASSES
        if cli != "opencode" or role == "spark"
    ],
)
def test_r1_r4_the_real_cli_takes_every_flag_and_the_prompt_reaches_the_model(
    cli: str, role: str, served: Model, clients: Clients, homes: Path, checkout: Path
) -> None:
    _, level, alias = CLASSES[role]
    home = home_of(cli, homes)
    extra = point_at(cli, home, served.url)
    ran = route(clients, cli, role, home=home, cwd=checkout, extra=extra)
    assert ran.code == 0, ran.out + ran.err
    assert ran.data["output"].strip() == ANSWER
    assert ran.data["version"]
    assert [issue["code"] for issue in ran.data["issues"]] == []
    assert any(PROMPT in text for request in served.requests for text in strings(request.body))
    assert list(checkout.iterdir()) == [checkout / ".git"]
    if cli == "codex":
        assert ran.data["tokens"] is not None
        assert ran.data["tokens"] > 0
    if cli == "gemini":
        assert (alias or "gemini-mock") in str(effort_seen(cli, served))
    elif level is not None and cli != "opencode":
        assert effort_seen(cli, served) == level


def test_r1_a_review_role_runs_the_review_of_codex(
    served: Model, clients: Clients, homes: Path, checkout: Path
) -> None:
    home = home_of("codex", homes)
    extra = point_at("codex", home, served.url)
    ran = route(clients, "codex", "code-reviewer", home=home, cwd=checkout, extra=extra)
    assert ran.code == 0, ran.out + ran.err
    (request,) = served.requests
    assert request.body["client_metadata"]["x-openai-subagent"] == "review"
    assert any(PROMPT in text for text in strings(request.body))


@pytest.mark.parametrize("cli", UNWANTED)
def test_section_2_the_real_cli_takes_the_flags_that_leave_servers_out(
    cli: str, served: Model, clients: Clients, tmp_path: Path, checkout: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    extra = point_at(cli, home, served.url)
    name, text = UNWANTED[cli]
    file = home / name
    file.parent.mkdir(exist_ok=True)
    if text is None:
        settings = json.loads(file.read_text())
        servers = {"playwright": {"command": "/bin/false"}, "mine": {"command": "/bin/false"}}
        file.write_text(json.dumps(settings | {"mcpServers": servers}))
    else:
        with file.open("a") as out:
            out.write(text)
    ran = route(clients, cli, "executor", home=home, cwd=checkout, extra=extra)
    assert ran.code == 0, ran.out + ran.err
    record = json.loads((home / ".local/state/tfx/jobs" / ran.data["job"] / "job.json").read_text())
    row = TABLE.clis[cli]
    flags = row.server_off or row.servers_only
    assert flags[0] in record["argv"]
    assert ran.data["output"].strip() == ANSWER


@pytest.mark.parametrize("cli", TABLE.order)
def test_r3_the_flag_that_skips_approvals_is_one_of_the_real_cli(
    cli: str, served: Model, clients: Clients, homes: Path, checkout: Path
) -> None:
    home = home_of(cli, homes)
    config = home / ".config" / "tfx" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[route]\nallow_skip_approvals = true\n")
    extra = point_at(cli, home, served.url)
    if cli == "claude":  # it refuses to do so as root, unless it is told to be in a sandbox
        extra["IS_SANDBOX"] = "1"
    ran = route(
        *(clients, cli, "executor", "--dangerously-skip-approvals"),
        home=home, cwd=checkout, extra=extra,
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    assert ran.data["approvals_skipped"] is True


@contextmanager
def refusing() -> Iterator[str]:
    """What a provider answers a client without a key."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = b'{"error": {"message": "Missing bearer authentication in header"}}'
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815  (the name that the server asks for)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("cli", ["claude", "gemini", "copilot", "codex"])
def test_r10_a_cli_that_is_not_logged_in_fails_with_that_reason(
    cli: str, clients: Clients, tmp_path: Path, checkout: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with refusing() as url:
        if cli == "codex":  # the others say so without asking anybody
            point_at("codex", home, url)
            config = home / ".codex" / "config.toml"
            config.write_text(config.read_text().replace('env_key = "MOCK_KEY"\n', ""))
        ran = route(clients, cli, "executor", home=home, cwd=checkout)
    assert ran.code == 1, ran.out + ran.err
    assert ran.data["status"] == "failed"
    assert "not-logged-in" in [issue["code"] for issue in ran.data["issues"]], ran.out
    assert "Traceback" not in ran.err


def test_r12_claude_accepts_every_bundled_skill(clients: Clients, tmp_path: Path) -> None:
    """As a plugin, which is what its own validator looks at."""
    plugin = tmp_path / "plugin"
    assets = Path(__file__).parents[2] / "assets" / "skills"
    shutil.copytree(assets, plugin / "skills")
    (plugin / ".claude-plugin").mkdir()
    manifest: dict[str, object] = {"name": "tfx", "version": "1.0.0", "description": "d"}
    manifest |= {"author": {"name": "tfx"}, "license": "MIT"}
    (plugin / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))
    (tmp_path / "home").mkdir()
    output, _ = clients.run(["claude", "plugin", "validate", str(plugin)], tmp_path / "home")
    assert output.code == 0, output.shown
    for skill in (path.name for path in assets.iterdir()):
        assert f"skills: tfx:{skill}\n" in output.out, output.shown
    assert "Validation passed" in output.out, output.shown
    assert "SKILL.md" not in output.out, output.shown  # it names what it has something to say of
