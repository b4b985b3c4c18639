from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import bare_env, tfx


def test_version_names_the_program(home: Path) -> None:
    ran = tfx(home, "--version")
    assert (ran.code, ran.out.split()[0], ran.err) == (0, "tfx", "")


def test_k8_usage_error_is_an_envelope_too(home: Path) -> None:
    ran = tfx(home, "bogus", "--json")
    assert ran.code == 2
    assert list(ran.document) == ["tfx", "command", "status", "exit", "data", "problems"]
    assert ran.document["exit"] == 2
    assert list(ran.document["problems"][0]) == ["code", "kind", "message", "hint", "details"]


def test_usage_error_for_people_goes_to_stderr(home: Path) -> None:
    ran = tfx(home, "bogus")
    assert (ran.code, ran.out) == (2, "")
    assert "bogus" in ran.err
    assert "tfx --help" in ran.err


def test_s108_without_home_is_refused_with_a_reason(home: Path) -> None:
    env = bare_env(home)
    del env["HOME"]
    ran = tfx(home, "config", "path", env=env)
    assert ran.code == 5
    assert "HOME" in ran.err
    assert "Traceback" not in ran.err


def test_s103_sudo_with_a_foreign_home_is_refused(home: Path) -> None:
    ran = tfx(home, "config", "path", env=bare_env(home, SUDO_USER="somebody"))
    assert ran.code == 5
    assert "sudo" in ran.err


def test_k15_completion_is_shown_never_installed(home: Path) -> None:
    # the shell is the parent process: without one among the test's ancestors there is none
    shell = ("bash", "-c", '"$0" -m tfx "$@"; exit $?', sys.executable)
    ran = tfx(home, "--show-completion", command=shell)
    assert ran.code == 0
    assert "complete" in ran.out
    assert tfx(home, "--install-completion", "bash").code == 2
    assert list(home.iterdir()) == []


def test_reader_that_goes_away_is_no_error(home: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tfx --help | head -1"],
        env=bare_env(home),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments", ["setup --dry-run", "setup --dry-run --json", "list", "-h", "--help", "--version"]
)
def test_full_disk_behind_a_redirection_is_told(home: Path, arguments: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tfx {arguments} >/dev/full"],
        env=bare_env(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["setup", "setup --json", "config nonsense"])
def test_closed_streams_are_no_error(home: Path, arguments: str, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tfx {arguments} {closed}"],
        env=bare_env(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (2 if "nonsense" in arguments else 0)
    assert "Traceback" not in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "euc-kr"])
def test_output_is_safe_on_a_terminal_that_is_not_utf8(home: Path, encoding: str) -> None:
    place = home / "가 ✓ é"
    place.mkdir()
    env = bare_env(home, PYTHONIOENCODING=encoding, XDG_CONFIG_HOME=str(place))
    ran = tfx(home, "config", "path", "--json", env=env)
    assert ran.code == 0
    assert ran.data["path"] == str(place / "tfx" / "config.toml")
    assert tfx(home, "config", "path", env=env).code == 0


@pytest.mark.parametrize(
    "command", ["", "setup", "list", "version", "update", "config", "config show", "config check"]
)
def test_help_fits_its_lines(home: Path, command: str) -> None:
    ran = tfx(home, *command.split(), "--help")
    assert ran.code == 0
    assert not [
        line for line in ran.out.splitlines() if line.endswith("...") and "Usage" not in line
    ]
    assert not [line for line in ran.out.splitlines() if line.endswith("-")]
    assert max(map(len, ran.out.splitlines())) <= 80


def test_usage_error_names_the_help_of_its_command(home: Path) -> None:
    assert "hint: tfx setup --help" in tfx(home, "setup", "--undo").err
    assert tfx(home, "setup", "--undo", env=bare_env(home)).code == 2
    assert tfx(home, "--json", "setup", "--undo").document["command"] == "setup"


CRASH = """
import sys
from tfx.cli.entry import run
import tfx.cli.app as app
@app.app.command("explode", cls=app.Command)
def explode(secret: str) -> None:
    raise ValueError(f"value {secret}")
sys.exit(run(["explode", "canary-4711", "--json"]))
"""


def test_bug_ends_with_3_and_a_log_without_values(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH],
        env=bare_env(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert '"status": "internal"' in done.stdout
    logs = list((home / ".local/state/tfx/crash").iterdir())
    assert len(logs) == 1
    text = logs[0].read_text("utf-8")
    assert "builtins.ValueError" in text
    assert "in explode" in text
    assert "canary-4711" not in text + done.stdout + done.stderr
    assert logs[0].stat().st_mode & 0o777 == 0o600
    assert str(logs[0]) in done.stdout
