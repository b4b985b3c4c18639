from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import bare_env, listing, tfx


def write(home: Path, text: str) -> Path:
    file = home / ".config" / "tfx" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def test_config_path_names_the_file_and_creates_nothing(home: Path) -> None:
    ran = tfx(home, "config", "path", "--json")
    assert ran.code == 0
    assert ran.data == {"path": str(home / ".config/tfx/config.toml"), "exists": False}
    assert tfx(home, "config", "path").out == f"{home}/.config/tfx/config.toml\n"
    assert listing(home) == {}


def test_k19_config_show_gives_each_value_its_origin(home: Path) -> None:
    write(home, "[hub]\ndurability = 'full'\n")
    ran = tfx(home, "config", "show", "--json", env=bare_env(home, TFX_HUB_PORT="5"))
    assert ran.code == 0
    shown = {row["key"]: row for row in ran.data["settings"]}
    assert (shown["hub.port"]["value"], shown["hub.port"]["source"]) == (5, "TFX_HUB_PORT")
    assert shown["hub.durability"]["value"] == "full"
    assert shown["hub.durability"]["source"] == "line 2"
    assert shown["setup.skip"]["origin"] == "default"
    text = tfx(home, "config", "show").out
    assert '"full"  (file, line 2)' in text
    assert "survives" not in text
    assert "survives" in tfx(home, "config", "show", "-v").out


def test_k19_config_check_names_every_error(home: Path) -> None:
    file = write(home, "[hub]\nprot = 1\nport = 'x'\n")
    ran = tfx(home, "config", "check", "--json")
    assert (ran.code, ran.document["status"]) == (2, "failed")
    assert ran.data == {"path": str(file), "exists": True, "errors": 2}
    problems = ran.document["problems"]
    assert [(p["details"]["line"], p["details"]["column"]) for p in problems] == [(2, 1), (3, 8)]
    assert problems[0]["hint"] == "did you mean hub.port?"
    ran = tfx(home, "config", "check")
    assert (ran.code, "errors found: 2" in ran.out) == (2, True)
    assert "line 3, column 8" in ran.err


def test_config_check_is_content_with_a_right_or_a_missing_file(home: Path) -> None:
    assert tfx(home, "config", "check").code == 0
    write(home, "[hub]\nport = 1\n")
    ran = tfx(home, "config", "check")
    assert (ran.code, ran.err) == (0, "")
    assert "~/.config/tfx/config.toml" in ran.out


def test_config_show_of_a_broken_file_is_a_usage_error(home: Path) -> None:
    write(home, "[hub\n")
    ran = tfx(home, "config", "show")
    assert (ran.code, ran.out) == (2, "")
    assert "line 1, column 5" in ran.err
    assert "tfx config check" in ran.err


@pytest.mark.parametrize("name", ["agent:nope", "skill:nope"])
def test_check_names_what_setup_would_refuse(tmp_path: Path, name: str) -> None:
    file = tmp_path / ".config/tfx/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[setup]\nskip = ["{name}"]\n', "utf-8")
    checked = tfx(tmp_path, "config", "check", "--json")
    refused = tfx(tmp_path, "setup", "--json")
    assert checked.code == refused.code == 2
    assert checked.document["problems"] == refused.document["problems"]
