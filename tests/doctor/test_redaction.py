"""Nothing that identifies a user or opens a door leaves doctor (D-27)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doctor.world import Clinic, on_terminal
from tests.support import bare_env
from tfx.core.paths import Paths
from tfx.doctor.facts import Facts
from tfx.doctor.model import Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.options import Options
from tfx.doctor.redaction import Redactor
from tfx.doctor.run import rows_of, run_checks
from tfx.doctor.secrets import without_secrets
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


CANARY = "Zq7canaryX9vW"
SHAPES = (
    "export {name}={canary}",
    'export {name}="{canary}"',
    "export {name}='two words {canary}'",
    "{name}: {canary}",
    '"{name}": "{canary}"',
    '"{name}": "escaped \\" quote {canary}"',
    '{{\\"{name}\\": \\"{canary}\\"}}',
    "'{name}': '{canary}', 'x': 1",
    '{name} = "{canary}"',
    "{name}=a,b;{canary}",
    "RuntimeError: bad {name}={canary}",
    "+ {name}={canary} claude",
    "set -gx {name} {canary}",
    "setenv {name} {canary}",
    "config set {name} {canary}",
    '"{name}": ["one", "{canary}"]',
    "{name}:\n  - {canary}",
    "{name}: |\n  {canary}",
    "alias claude='{name}={canary} claude'",
    "{name}: 'never ended {canary}",
)
NAMES = (
    *("FOO_PASS", "MY_KEY", "OPENAI_KEY", "apiKey", "api-key", "DB_AUTH", "auth", "key", "pass"),
    *("db.pwd", "PGPASSWORD", "passphrase", "authToken", "client_secret", "dbpass", "SIGNING_KEY"),
    *("aws_credential", "sessionCookie", "JWT", "ANTHROPIC_AUTH_TOKEN", "sshpass", "MYSQL_PWD"),
)
LINES = (
    "curl -u me:{canary} https://x",
    "curl -ume:{canary} https://x",
    "curl --user me:{canary} https://x",
    '"-u", "me:{canary}"',
    "run --token {canary}",
    "run --api-key={canary} --x",
    "run --db-pass '{canary}'",
    '["--auth", "{canary}"]',
    "run --secret \\\n  {canary}",
    "https://h/?key={canary}&b=1",
    "https://h/?a=1&auth=x&sig={canary}",
    "https://h/?X-Amz-Signature={canary}",
    "https://me:{canary}@h/x",
    "redis://:{canary}@h:6379/0",
    "https://me:a@{canary}@h/x",
    "HTTP_PROXY=me:{canary}@proxy:3128",
    "-H 'Authorization: Token {canary}'",
    "Authorization: Digest user, response={canary}",
    "X-Api-Key: {canary}",
    "Cookie: a=b; c={canary}",
    "Bearer {canary}",
    "machine h login me password {canary}",
    "sshpass -p {canary} ssh h",
    "-----BEGIN RSA PRIVATE KEY-----\n{canary}\n-----END RSA PRIVATE KEY-----",
    "it said ghp_{canary}",
)


@given(shape=st.sampled_from(SHAPES), name=st.sampled_from(NAMES), around=st.sampled_from(LINES))
@settings(deadline=None)
def test_d27_no_canary_in_any_shape_under_any_name_comes_out(
    shape: str, name: str, around: str
) -> None:
    redactor = Redactor(Paths.resolve(bare_env(Path("/"))), user="", host="")
    one = shape.format(name=name, canary=CANARY)
    two = around.format(canary=CANARY)
    for text in (one, two, f"{one} {two}", f"{two}\n{one}", f"echo {one}"):
        assert CANARY not in redactor.text(text), redactor.text(text)
        assert CANARY not in str(redactor.value({"x": [text]}))


@given(name=st.sampled_from(NAMES))
def test_d27_a_value_under_a_secret_name_is_hidden_in_details(name: str) -> None:
    redactor = Redactor(Paths.resolve(bare_env(Path("/"))), user="", host="")
    assert redactor.details({name: CANARY}) == {name: "***"}


@given(text=st.text() | st.text(alphabet="key=:-'\"\\ \n@/?&uabc"))
@settings(deadline=None)
def test_d27_any_text_can_be_cleaned_and_cleaning_again_changes_nothing_more(text: str) -> None:
    once = without_secrets(text)
    assert len(once) <= 3 * len(text) + 3
    assert isinstance(without_secrets(once), str)


def test_d27_what_tfx_says_of_itself_survives(redactor: Redactor) -> None:
    for text in (
        "~/.local/state/tfx/hub/token: Permission denied",
        "others can read it (mode 0644); it opens the hub",
        "tfx doctor --fix", "tfx setup --take-new", "tfx hub token rotate --operator",
        "hooks.UserPromptSubmit[1]: stands there twice", "author: ann", "keyboard: us",
        "/usr/bin/env: node: No such file", "sha256 0a1b2c3d4e5f -> sha256 ffeeddccbbaa",
        "mcpServers.tfx-hub: text", "docker run -u 1000:1000 x", "line 3, column 7: no value",
        "http://127.0.0.1:27888/mcp", "npm config set prefix ~/.local", "@anthropic-ai/claude-code",
        'sudo chown -R "$(id -u):$(id -g)" ~/.local/state/tfx',
        "cli.auth claude: present", "SSH_AUTH_SOCK=/run/user/1000/agent", "PWD=/root/x",
    ):  # fmt: skip
        assert redactor.text(text) == text


ASSET = ".claude/scripts/tfx-route.sh"
LEAKS = tuple(f"CANARY{number}Zq7X9vW" for number in range(12))


@pytest.fixture
def leaky(tmp_path: Path) -> Clinic:
    """A machine with an edited asset and edited entries, secrets in each, in plain words too."""
    clinic = Clinic(tmp_path, "claude", "codex").everywhere()
    assert clinic.setup("--mcp-transport", "stdio", "--yes").code == 0
    script = clinic.home / ASSET
    script.write_text(
        f"# {LEAKS[9]}\n{script.read_text()}export FOO_PASS={LEAKS[0]}\n"
        f"export MY_KEY='{LEAKS[1]}'\ncurl -u me:{LEAKS[2]} https://x\necho {LEAKS[3]}\n"
    )
    claude = clinic.home / ".claude.json"
    document = json.loads(claude.read_text())
    document["mcpServers"]["tfx-hub"] = {
        "command": f"/opt/{LEAKS[4]}/run",
        "args": [LEAKS[5], f"https://h/?key={LEAKS[6]}&auth=b&sig=c"],
        "env": {"OPENAI_KEY": LEAKS[7], "MY_PASS": LEAKS[7], "DB_AUTH": LEAKS[7], "X": LEAKS[8]},
    }
    claude.write_text(json.dumps(document))
    clinic.write(".bashrc", f"echo DB_PASS={LEAKS[10]} >&2; PATH={clinic.bin}:$PATH; export PATH\n")
    (clinic.bin / "codex").write_text(f"#!/bin/sh\necho run --auth {LEAKS[11]} >&2; exit 3\n")
    return clinic


def test_d23_d27_what_the_user_wrote_into_assets_and_entries_stays_out_of_reports(
    leaky: Clinic,
) -> None:
    for words in (("--verbose",), ("--fix", "--dry-run"), ("--fix", "--yes")):
        told = leaky.doctor(*words)
        assert told.data["redacted"] is True
        for canary in LEAKS:
            assert canary not in told.out + told.err
        plain = leaky.tfx("doctor", "--verbose", *words)
        for canary in LEAKS:
            assert canary not in plain.out + plain.err
    entry = next(
        row
        for row in told.data["rows"]
        if (row["id"], row["target"]) == ("mcp.registration", "claude")
    )
    assert "-mcpServers.tfx-hub.env.OPENAI_KEY: text" in entry["details"]["diff"]
    assert "-mcpServers.tfx-hub.args: a list of 2" in entry["details"]["diff"]
    assert "+mcpServers.tfx-hub.command: " in entry["details"]["diff"]
    [asset] = [row for row in told.data["rows"] if row["target"] == f"~/{ASSET}"]
    assert "-(a line of yours)" in asset["details"]["diff"]
    assert "@@ " in asset["details"]["diff"]


def test_d27_a_terminal_with_verbose_shows_the_users_own_lines_through_the_redactor(
    leaky: Clinic,
) -> None:
    told = on_terminal(leaky, "assets.manifest", "--verbose")
    assert f"-echo {LEAKS[3]}" in told
    for canary in LEAKS[:3]:
        assert canary not in told
    assert LEAKS[3] not in on_terminal(leaky, "assets.manifest")
