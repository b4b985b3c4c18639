"""The real CLIs pointed at a model on loopback, and what that model saw of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clients.model_stub import Model

PROMPT = "--help \"q\" 'q' $(touch pwned) `touch pwned` $HOME \\n\n\n  second\t*?[a]  \U0001f600 é"
# A role of each effort class, and what the class is called in each CLI's request.
CLASSES = {
    "spark": ("light", "low", "flash-lite"),
    "build-fixer": ("fast", "low", "flash"),
    "executor": ("high", "high", "pro"),
    "architect": ("deep", "xhigh", "pro"),
    "explore": ("normal", None, None),
}


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


def only(cli: str, home: Path, program: Path) -> Path:
    """Return a directory that holds this CLI and no other."""
    place = home / "only-this-cli"
    place.mkdir(exist_ok=True)
    if not (place / cli).is_symlink():
        (place / cli).symlink_to(program)
    return place


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
