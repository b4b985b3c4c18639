"""`[hub]` of config.toml, the environment and the flags (K-19, H-8, H-9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import bare_env, tfx
from tfx.core.paths import Paths
from tfx.errors import BadSettings, InvalidRequest
from tfx.hub import settings
from tfx.hub.models import Durability


def _paths(home: Path, text: str | None = None, **env: str) -> Paths:
    paths = Paths.resolve(bare_env(home, **env))
    if text is not None:
        paths.config_dir.mkdir(parents=True)
        paths.config_file.write_text(text)
    return paths


def test_k_19_without_anything_the_port_is_preferred_not_asked(home: Path) -> None:
    found = settings.resolve(_paths(home))
    assert (found.port, found.port_asked) == (27888, False)
    assert found.durability is Durability.NORMAL


def test_k_19_flag_over_environment_over_file(home: Path) -> None:
    paths = _paths(home, "[hub]\nport = 1001\n")
    assert (settings.resolve(paths).port, settings.resolve(paths).port_asked) == (1001, True)
    env = Paths.resolve({**paths.env, "TFX_HUB_PORT": "1002"})
    assert settings.resolve(env).port == 1002
    assert settings.resolve(env, port=0).port == 0
    assert settings.resolve(env, port=0).port_asked


def test_k_19_every_key_of_the_table(home: Path) -> None:
    text = """
[hub]
allow_hosts = ["devbox.local"]
durability = "full"
notify = ["notify-send", "tfx"]
review_rounds = 0
turns = 9
[hub.retention]
messages_days = 0
agents_days = 3
tasks_days = 4
"""
    found = settings.resolve(_paths(home, text))
    assert found.allow_hosts == ("devbox.local",)
    assert found.durability is Durability.FULL
    assert found.notify == ("notify-send", "tfx")
    day_ms = 86_400_000
    assert (found.retention.messages_ms, found.retention.agents_ms) == (0, 3 * day_ms)
    assert (found.retention.dead_letters_ms, found.retention.tasks_ms) == (30 * day_ms, 4 * day_ms)
    assert (found.limits.review_rounds, found.limits.turns) == (0, 9)


def test_wk_k8_the_policy_limits_hold_without_a_word_of_them(home: Path) -> None:
    found = settings.resolve(_paths(home))
    assert (found.limits.review_rounds, found.limits.turns) == (5, 50)
    assert found.retention.tasks_ms == 90 * 86_400_000


def test_k_19_what_is_wrong_is_told_with_line_and_column(home: Path) -> None:
    with pytest.raises(BadSettings) as caught:
        settings.resolve(_paths(home, "[hub]\n  prot = 1\n"))
    assert (caught.value.details["line"], caught.value.details["column"]) == (2, 3)


def test_k_19_a_broken_file_stops_the_start_with_exit_2(home: Path) -> None:
    _paths(home, "[hub\n")
    ran = tfx(home, "hub", "start", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (2, "bad-settings")
    assert "line 1" in ran.document["problems"][0]["message"]


@pytest.mark.parametrize("seconds", [0, -1])
def test_an_idle_exit_must_be_a_time(home: Path, seconds: int) -> None:
    with pytest.raises(InvalidRequest):
        settings.resolve(_paths(home), idle_exit_s=seconds)
