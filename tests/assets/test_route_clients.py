"""The route script with the real CLIs: a model on loopback sees what they make of its flags.

The binaries are those of tests/clients, at their pinned versions; TFX_TEST_CLIENTS names a
directory with others (itself, its `bin` or `node_modules/.bin`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.assets.model_stub import ANSWER, Model, model
from tests.clients.installation import Unavailable, installation

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.clients

SCRIPT = Path(__file__).parents[2] / "assets" / "scripts" / "tfx-route.sh"
PROMPT = "--help \"q\" 'q' $(touch pwned) `touch pwned` $HOME \\n\n\n  second\t*?[a]  \U0001f600 é"
CLIS = ("codex", "gemini", "claude", "copilot", "opencode")
# A role of each effort class, and what the class is called in each CLI's request.
CLASSES = {
    "spark": ("light", "low", "flash-lite"),
    "build-fixer": ("fast", "low", "flash"),
    "executor": ("high", "high", "pro"),
    "architect": ("deep", "xhigh", "pro"),
    "explore": ("normal", None, None),
}


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


@pytest.fixture
def served() -> Iterator[Model]:
    with model() as running:
        yield running


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git repository outside the HOME under test (S-112); Codex runs nowhere else."""
    where = tmp_path / "checkout"
    where.mkdir()
    subprocess.run(["git", "init", "-q", str(where)], check=True)
    return where


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME per CLI for the module: some unpack themselves at their first start."""
    return tmp_path_factory.mktemp("homes")


def home_of(cli: str, homes: Path) -> Path:
    home = homes / cli
    home.mkdir(exist_ok=True)
    return home


def point_at(cli: str, home: Path, url: str) -> dict[str, str]:
    """Return the environment, and write the settings, that make a CLI ask the model at `url`."""
    if cli == "codex":
        (home / ".codex").mkdir(exist_ok=True)
        (home / ".codex" / "config.toml").write_text(
            'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
            f'base_url = "{url}/v1"\nenv_key = "MOCK_KEY"\nwire_api = "responses"\n'
        )
        return {"MOCK_KEY": "x"}
    if cli == "gemini":
        (home / ".gemini").mkdir(exist_ok=True)
        (home / ".gemini" / "settings.json").write_text(
            '{"security": {"auth": {"selectedType": "gemini-api-key"},'
            ' "folderTrust": {"enabled": false}}, "model": {"name": "gemini-mock"}}'
        )
        return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url}
    if cli == "claude":
        return {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": url}
    if cli == "copilot":
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_MODEL": "mock",
        }
    options = {"baseURL": f"{url}/v1", "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mock": {}}}
    config = {"model": "mock/mock", "provider": {"mock": provider}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


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
    place = home / "only-this-cli"
    place.mkdir(exist_ok=True)
    if not (place / cli).is_symlink():
        (place / cli).symlink_to(binary(cli))
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    env = {
        "HOME": str(home),
        "PATH": f"{node}:/usr/bin:/bin",
        "TFX_ROUTE_DIRS": str(place),
        "TFX_CLI_MODE": cli,
    }
    return subprocess.run(
        [str(SCRIPT), role, prompt, "auto", "90"],
        env=env | extra,
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def strings(value: Any) -> Iterator[str]:  # noqa: ANN401  (any JSON)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def effort_seen(cli: str, served: Model) -> object:
    last = served.requests[-1]
    if cli == "codex":
        return last.body["reasoning"]["effort"]
    if cli == "claude":
        return last.body["output_config"]["effort"]
    if cli == "copilot":
        return last.body.get("reasoning_effort")
    return last.path


@pytest.mark.timeout(240)
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


@pytest.mark.timeout(240)
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


@pytest.mark.timeout(240)
def test_r4_claude_takes_a_megabyte(served: Model, homes: Path, checkout: Path) -> None:
    """Which is above what one argument of a program can hold."""
    home = home_of("claude", homes)
    prompt = "x" * (1 << 20)
    extra = point_at("claude", home, served.url)
    ended = route("claude", "explore", "-", home=home, cwd=checkout, extra=extra, text=prompt)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert any(prompt in text for request in served.requests for text in strings(request.body))


@pytest.mark.timeout(240)
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
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
