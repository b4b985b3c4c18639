from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HUD = Path(__file__).resolve().parents[2] / "assets" / "hud" / "tfx-hud.py"


def line(stdin: bytes, columns: str = "80") -> str:
    done = subprocess.run(
        [sys.executable, "-I", HUD],
        input=stdin,
        env={"COLUMNS": columns},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    return done.stdout.decode().rstrip("\n")


FULL = {
    "model": {"id": "claude-x", "display_name": "Opus 가"},
    "context_window": {"used_percentage": 41.7},
    "workspace": {"current_dir": "/home/me/my project/"},
}


def test_line_shows_what_is_known() -> None:
    assert line(json.dumps(FULL).encode()) == "Opus 가 · context 42% · my project"
    assert line(b'{"model":{"id":"m"},"cwd":"/a/b"}') == "m · b"


def test_line_adapts_to_the_width() -> None:
    assert line(json.dumps(FULL).encode(), "10") == "Opus 가"
    assert line(json.dumps(FULL).encode(), "not a number").endswith("my project")


@pytest.mark.parametrize(
    "stdin",
    [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"model":7}', b"[" * 100_000, b'{"model":null}'],
)
def test_line_never_shows_an_error(stdin: bytes) -> None:
    assert line(stdin) == ""


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert line(b'{"model":{"display_name":"a\\u001b[31mb\\n"}}') == "a[31mb"
