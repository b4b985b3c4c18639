"""The route script with the real CLIs: a model on loopback sees what they make of its flags.

The binaries are those of installation.py, at their pinned versions; TFX_TEST_CLIENTS names a
directory with others (itself, its `bin` or `node_modules/.bin`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.installation import installation
from tests.clients.model_stub import ANSWER, Model
from tests.clients.pointing import CLASSES, PROMPT, effort_seen, home_of, only, point_at, strings
from tests.npm import Unavailable

pytestmark = pytest.mark.clients

SCRIPT = Path(__file__).parents[2] / "assets" / "scripts" / "tfx-route.sh"
CLIS = ("codex", "gemini", "claude", "copilot", "opencode")


def binary(name: str) -> Path:
    given = os.environ.get("TFX_TEST_CLIENTS", "")
    if given:
        places = (Path(given), Path(given, "bin"), Path(given, "node_modules", ".bin"))
        found = shutil.which(name, path=os.pathsep.join(map(str, places)))
        if found is None:
            pytest.skip(f"{name} is not in TFX_TEST_CLIENTS={given}")
        return Path(found)
    try:
        return installation().program(name)
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no clients in CI: {reason}")
        pytest.skip(str(reason))


def route(
    cli: str,
    role: str,
    prompt: str,
    *,
    home: Path,
    cwd: Path,
    extra: dict[str, str],
    text: str = "",
) -> subprocess.CompletedProcess[str]:
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    env = {
        "HOME": str(home),
        "PATH": f"{node}:/usr/bin:/bin",
        "TFX_ROUTE_DIRS": str(only(cli, home, binary(cli))),
        "TFX_CLI_MODE": cli,
    }
    return subprocess.run(
        [str(SCRIPT), role, prompt, "auto", "180"],
        env=env | extra,
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("cli", "role"),
    # opencode is slow to start and gets the same flags for every class
    [(cli, role) for cli in CLIS for role in CLASSES if cli != "opencode" or role == "executor"],
)
def test_r1_r4_the_real_cli_takes_every_flag_and_the_prompt_reaches_the_model(
    cli: str, role: str, served: Model, homes: Path, checkout: Path
) -> None:
    _, level, alias = CLASSES[role]
    home = home_of(cli, homes)
    extra = point_at(cli, home, served.url)
    ended = route(cli, role, PROMPT, home=home, cwd=checkout, extra=extra)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.partition("=== OUTPUT ===\n")[2].strip() == ANSWER
    assert any(PROMPT in text for request in served.requests for text in strings(request.body))
    assert list(checkout.iterdir()) == [checkout / ".git"]
    if cli == "gemini":
        assert (alias or "gemini-mock") in str(effort_seen(cli, served))
    elif level is not None and cli != "opencode":
        assert effort_seen(cli, served) == level


@pytest.mark.timeout(300)
def test_r1_a_review_role_runs_the_review_of_codex(
    served: Model, homes: Path, checkout: Path
) -> None:
    home = home_of("codex", homes)
    extra = point_at("codex", home, served.url)
    ended = route("codex", "code-reviewer", PROMPT, home=home, cwd=checkout, extra=extra)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (request,) = served.requests
    assert any(PROMPT in text for text in strings(request.body))
    assert request.body["client_metadata"]["x-openai-subagent"] == "review"
    assert effort_seen("codex", served) == "xhigh"


@pytest.mark.timeout(300)
def test_r4_claude_takes_a_megabyte(served: Model, homes: Path, checkout: Path) -> None:
    """Which is above what one argument of a program can hold."""
    home = home_of("claude", homes)
    prompt = "x" * (1 << 20)
    extra = point_at("claude", home, served.url)
    ended = route("claude", "explore", "-", home=home, cwd=checkout, extra=extra, text=prompt)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert any(prompt in text for request in served.requests for text in strings(request.body))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cli", ["claude", "gemini", "copilot"])
def test_a_cli_that_is_not_logged_in_fails_with_its_own_words(
    cli: str, tmp_path: Path, checkout: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ended = route(cli, "executor", "hello", home=home, cwd=checkout, extra={})
    assert ended.returncode == 1
    assert "\nstatus: failed\n" in ended.stdout
    said = (ended.stdout.partition("=== OUTPUT ===\n")[2] + ended.stderr).lower()
    assert "log" in said or "auth" in said


@pytest.mark.parametrize("cli", CLIS)
def test_r1_each_real_parser_refuses_an_option_that_it_does_not_know(
    cli: str, homes: Path, checkout: Path
) -> None:
    """So a pass above means that the parser looked."""
    home = home_of(cli, homes)
    ended = subprocess.run(
        [str(binary(cli)), *(["exec"] if cli == "codex" else []), "--tfx-no-such-option"],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode != 0
