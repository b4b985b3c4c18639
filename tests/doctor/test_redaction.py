"""Nothing that identifies a user or opens a door leaves doctor (D-27)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor.world import Clinic
from tests.support import bare_env
from tfx.core.paths import Paths
from tfx.doctor.facts import Facts
from tfx.doctor.model import Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.options import Options
from tfx.doctor.redaction import Redactor
from tfx.doctor.run import rows_of, run_checks
from tfx.doctor.words import command


@pytest.fixture
def redactor(home: Path) -> Redactor:
    env = bare_env(home, MY_API_KEY="canary-key-4711", PATH="/usr/bin", SSH_AUTH_SOCK="/run/agent")
    return Redactor(Paths.resolve(env), user="annabel", host="tower-7")


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("see https://ann:pa55word@host/x", "pa55word"),
        ("GET /x?token=abcdef123456&a=1", "abcdef123456"),
        ("Authorization: Bearer abcdef.123456", "abcdef.123456"),
        ('{"apiKey": "abcdef123456"}', "abcdef123456"),
        ("OPENAI_API_KEY=abcdef123456 codex", "abcdef123456"),
        ("password = hunter2222", "hunter2222"),
        ("it printed sk-abcdefgh12345678", "sk-abcdefgh12345678"),
        ("it printed ghp_abcdefgh12345678", "ghp_abcdefgh12345678"),
        ("value canary-key-4711 of a variable", "canary-key-4711"),
        ("/srv/annabel/x", "annabel"),
        ("on tower-7 it works", "tower-7"),
    ],
)
def test_d27_secrets_and_names_are_hidden(redactor: Redactor, text: str, gone: str) -> None:
    assert gone not in redactor.text(text)


def test_d27_the_home_directory_becomes_a_tilde(home: Path, redactor: Redactor) -> None:
    assert redactor.text(f"{home}/bin and {home}") == "~/bin and ~"
    assert redactor.text(f"{home}-other/bin") == f"{home}-other/bin"


def test_d27_what_is_no_secret_stays(redactor: Redactor) -> None:
    for text in ("ok", "mode 0644", "tokens: 3 files", "/run/agent", "annabelle", "key path"):
        assert redactor.text(text) == text


def test_d27_keys_and_nested_details_are_cleaned(home: Path, redactor: Redactor) -> None:
    found = redactor.details({f"{home}/x": [{"url": "http://u:secret1@h"}], "n": 1})
    assert found == {"~/x": [{"url": "http://***@h"}], "n": 1}


def test_d20_d27_a_command_still_runs_after_redaction(home: Path, redactor: Redactor) -> None:
    line = command(home, "chmod", "600", home / "a b" / "c'd")
    assert line == """chmod 600 ~/'a b/c'"'"'d'"""
    assert redactor.text(line) == line


def _explosive(_: Facts) -> Iterator[Finding]:
    yield Finding(
        "a", Status.FAIL, "token=abcdef123456", {"x": "token=abcdef123456"},
        (Remedy("t", "run --token=abcdef123456"),),
    )  # fmt: skip
    raise RuntimeError("password=hunter2222")


def test_d23_d27_a_traceback_is_redacted_too(home: Path) -> None:
    paths = Paths.resolve(bare_env(home))
    check = Check("x.y", Group.MACHINE, "t", Explanation("", "", "", ""), _explosive)
    facts = Facts(paths, Options())
    rows = rows_of(run_checks([check], facts, lambda _: None), Redactor(paths))
    assert [row.status for row in rows] == [Status.FAIL, Status.UNKNOWN]
    told = repr(rows)
    assert "abcdef123456" not in told
    assert "hunter2222" not in told
    assert "RuntimeError" in told


def test_d27_no_canary_of_a_whole_run_comes_out(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude", "codex").everywhere()
    canary = "canary-0815-canary"
    clinic.write(".claude/.credentials.json", f'{{"token": "{canary}"}}')
    clinic.write(".codex/auth.json", f'{{"key": "{canary}"}}')
    clinic.write(
        ".claude/settings.json",
        f'{{"env": {{"X_KEY": "{canary}"}}, "hooks": {{"Stop": [{{"hooks": [{{"type": "command",'
        f' "command": "/no/such --token={canary}"}}]}}]}}}}',
    )
    clinic.write(".claude.json", f'{{"mcpServers": {{"tfx-hub": {{"headers": "{canary}"}}}}}}')
    clinic.write(".codex/config.toml", f'key = "{canary}" broken\n')
    clinic.write(".bashrc", f"echo API_TOKEN={canary} >&2; PATH={clinic.bin}:$PATH; export PATH\n")
    ran = clinic.doctor("--verbose", ANTHROPIC_API_KEY=canary)
    assert ran.code == 1
    assert canary not in ran.out + ran.err
    assert str(clinic.home) not in ran.out
    assert socket.gethostname() not in ran.out or len(socket.gethostname()) < 3
    assert canary not in clinic.tfx("doctor", "--verbose", ANTHROPIC_API_KEY=canary).out
