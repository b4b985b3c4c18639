"""`cli.matrix` and `shell.*`: what the matrix means, and the line that would help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clock import late_at_each_line
from tests.doctor.world import Clinic, commands, row, texts
from tfx.doctor.model import Status

HERE = 'export PATH="{bin}:$PATH"\n'
GUARD = "case $- in *i*) ;; *) return;; esac\n"


@pytest.fixture
def bare(tmp_path: Path) -> Clinic:
    """Claude is installed somewhere, and no shell knows it."""
    return Clinic(tmp_path, "claude")


def line(clinic: Clinic) -> str:
    return HERE.format(bin=clinic.bin)


def without_session(clinic: Clinic) -> None:
    """The session that starts doctor does not know the agents either."""
    clinic.env["PATH"] = "/usr/bin:/bin"


def test_d87_d94_d175_found_everywhere_but_in_a_bare_c_is_ok(bare: Clinic) -> None:
    for name in (".bash_profile", ".bashrc"):
        bare.write(name, line(bare))
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.OK
    assert "bash -c" in found.details["by_design"]


def test_d79_d133_found_in_interactive_shells_only_names_the_file(bare: Clinic) -> None:
    bare.write(".bashrc", GUARD + line(bare))
    bare.write(".bash_profile", ". ~/.bashrc\n")
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    assert "not found in bash -lc" in found.summary
    assert "bash -ic" in found.summary
    assert found.remediation[0].text == "add to ~/.bash_profile (bash -lc)"
    assert found.remediation[0].shell == "bash"
    assert commands(found)[0] == line(bare).strip()


def test_the_line_that_is_shown_really_helps(bare: Clinic) -> None:
    bare.write(".bashrc", GUARD + line(bare))
    bare.write(".bash_profile", ". ~/.bashrc\n")
    found = bare.rows("cli.matrix")["claude"]
    profile = bare.home / ".bash_profile"
    profile.write_text(profile.read_text() + commands(found)[0] + "\n")
    assert bare.rows("cli.matrix")["claude"].status is Status.OK


def test_must_show_missing_in_a_login_bash_fails_when_the_route_script_needs_it(
    bare: Clinic,
) -> None:
    bare.write(".bashrc", GUARD + line(bare))
    bare.write(".bash_profile", ". ~/.bashrc\n")
    assert bare.doctor("cli.matrix").code == 0
    assert bare.setup().code == 0
    ran = bare.doctor("cli.matrix")
    assert ran.code == 1
    found = row(ran, "cli.matrix", "claude")
    assert "route script" in found["summary"]
    assert found["remediation"][0]["command"] == line(bare).strip()


def test_the_route_script_finds_it_in_its_own_places(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude")
    (clinic.home / ".local/bin").mkdir(parents=True)
    (clinic.home / ".local/bin/claude").symlink_to((clinic.bin / "claude").resolve())
    clinic.write(".bashrc", GUARD + 'export PATH="$HOME/.local/bin:$PATH"\n')
    clinic.write(".bash_profile", ". ~/.bashrc\n")
    assert clinic.setup().code == 0
    ran = clinic.doctor("cli.matrix")
    assert (ran.code, row(ran, "cli.matrix", "claude")["status"]) == (0, "warn")


def test_d87_d140_only_this_session_knows_it(bare: Clinic) -> None:
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    assert "no new shell" in found.summary
    assert commands(found)


def test_k47_an_agent_that_nobody_finds_is_skipped_and_info_once_set_up(bare: Clinic) -> None:
    bare.setup()
    without_session(bare)
    found = bare.rows("cli.matrix")
    assert found["claude"].status is Status.INFO
    assert "stays as it is" in found["claude"].summary
    assert found["codex"].status is Status.SKIP


def test_d50_an_unknown_cell_is_never_missing(bare: Clinic) -> None:
    bare.write(".bash_profile", line(bare) + "exit 3\n")
    bare.write(".bashrc", line(bare))
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.UNKNOWN
    assert "exited" in found.summary
    assert found.details["cells"]["bash -lc"]["answer"] == "unknown"
    assert found.details["cells"]["bash -lc"]["argv"].startswith("/")


def test_d87_nowhere_with_an_unknown_cell_is_unknown(bare: Clinic) -> None:
    bare.setup()
    without_session(bare)
    bare.write(".bash_profile", "exit 3\n")
    assert bare.rows("cli.matrix")["claude"].status is Status.UNKNOWN


def test_d84_d148_an_alias_alone_does_not_serve_scripts(bare: Clinic) -> None:
    without_session(bare)
    for name in (".bashrc", ".bash_profile"):
        bare.write(name, f"shopt -s expand_aliases; alias claude='{bare.bin}/claude --x'\n")
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    assert "alias only" in found.summary
    assert "scripts" in found.summary
    assert found.details["target"] == f"{bare.bin}/claude"
    assert str(bare.bin) in commands(found)[0]


def test_d84_an_alias_beside_a_path_says_who_cannot_use_it(bare: Clinic) -> None:
    bare.write(".bash_profile", f'export PATH="{bare.bin}:$PATH"\n')
    bare.write(".bashrc", f"alias claude='{bare.bin}/claude --x'\n")
    found = bare.rows("cli.matrix")["claude"]
    told = found.details.get("message", found.summary)
    assert "alias or function in bash -ic: scripts and other programs cannot use it" in told
    assert "not found in bash -ic" not in told


def test_d86_present_under_another_node(bare: Clinic) -> None:
    without_session(bare)
    place = bare.home / ".nvm/versions/node/v20.1.0/bin"
    place.mkdir(parents=True)
    (place / "claude").symlink_to((bare.bin / "claude").resolve())
    bare.write(".nvm/alias/default", "v22.2.0\n")
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.INFO
    assert "nvm v20.1.0" in found.summary
    assert "default is v22.2.0" in found.summary


def test_d15_a_namesake_is_not_the_agent(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path).everywhere()
    clinic.bin.joinpath("goose").write_text("#!/bin/sh\necho 1.0.0\n")
    clinic.bin.joinpath("goose").chmod(0o755)
    assert clinic.rows("cli.matrix")["goose"].status is Status.SKIP


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ("exit 1\n", "exited", "TFX_RESOLVING_ENVIRONMENT"),
        ("exec dash\n", "replaced", "TFX_RESOLVING_ENVIRONMENT"),
        ("exec >/dev/null\n", "replaced", "TFX_RESOLVING_ENVIRONMENT"),
        ("export -n PATH\n", "no-path", "export PATH"),
        ("while :; do echo flood; done\n", "flood", "TFX_RESOLVING_ENVIRONMENT"),
    ],
)
def test_d102_d144_what_a_start_up_file_does_is_named(
    bare: Clinic, text: str, reason: str, remedy: str
) -> None:
    bare.write(".bash_profile", text)
    found = bare.rows("shell.rc")["bash -lc"]
    assert found.status is Status.UNKNOWN
    assert found.summary.startswith(f"{reason}:")
    assert remedy in texts(found)
    assert ".bash_profile" in json.dumps(dict(found.details))


def test_d52_d145_d146_a_time_out_prints_argv_and_files(
    bare: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_at_each_line(monkeypatch, bare.home / "late")
    bare.write(".bash_profile", "echo >>~/late; sleep 600\n")
    found = bare.rows("shell.rc")["bash -lc"]
    assert found.summary.startswith("timeout:")
    assert "~/.bash_profile" in found.summary
    assert found.details["argv"].split()[1:3] == ["-l", "-c"]
    assert found.details["argv"].startswith("/bin/bash")
    assert any("--timeout" in command for command in commands(found))


def test_d59_d102_a_complaint_is_a_warning_with_its_text(bare: Clinic) -> None:
    bare.write(".bash_profile", "no-such-command-here\n")
    found = bare.rows("shell.rc")["bash -lc"]
    assert found.status is Status.WARN
    assert "no-such-command-here" in found.summary


def test_d80_d102_a_slow_start_is_a_warning_with_the_time(bare: Clinic) -> None:
    bare.write(".bash_profile", "sleep 1.1\n")
    found = bare.rows("shell.rc")["bash -lc"]
    assert found.status is Status.WARN
    assert "s to start" in found.summary


def test_d53_a_login_shell_that_cannot_be_asked_is_unknown(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, login="no-such-shell")
    found = clinic.rows("shell.rc")
    assert found["no-such-shell"].status is Status.UNKNOWN
    assert "not installed" in found["no-such-shell"].summary


@pytest.mark.parametrize(
    ("path", "target"), [(":/usr/bin:/bin", "PATH (empty)"), ("bin:/usr/bin:/bin", "PATH bin")]
)
def test_d82_a_risky_entry_of_path_is_a_warning(bare: Clinic, path: str, target: str) -> None:
    bare.write(".bash_profile", f"export PATH={path}\n")
    assert bare.rows("shell.path")[target].status is Status.WARN


def test_d55_d139_places_without_a_shell_are_information(bare: Clinic) -> None:
    bare.everywhere()
    found = bare.rows("shell.columns")
    assert "finds claude" in found["tfx"].summary
    assert "does not find claude" in found["cron"].summary
    assert "absolute path" in found["cron"].remediation[0].text
    assert {each.status for each in found.values()} <= {Status.INFO, Status.SKIP}


def a_shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.shells
def test_d102_the_file_to_guard_is_one_of_the_user_not_of_the_system(bare: Clinic) -> None:
    bare.env["SHELL"] = a_shell("zsh")
    bare.write(".zshenv", "exit 3\n")
    found = bare.rows("shell.rc")
    for mode in ("zsh -c", "zsh -lc", "zsh -ic", "zsh -lic"):
        assert found[mode].summary.startswith("exited:")
        assert "guard that part of ~/.zshenv" in texts(found[mode])


@pytest.mark.shells
def test_must_show_claude_only_on_the_path_of_an_interactive_zsh(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude")
    clinic.env["SHELL"] = a_shell("zsh")
    clinic.write(".zshrc", line(clinic))
    found = clinic.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    cells = {label: each["answer"] for label, each in found.details["cells"].items()}
    assert cells == {
        "zsh -c": "not-found",
        "zsh -lc": "not-found",
        "zsh -ic": "found",
        "zsh -lic": "found",
        "bash -c": "not-found",
        "bash -lc": "not-found",
        "sh -c": "not-found",
    }
    told = {remedy.text: remedy.command for remedy in found.remediation}
    assert told["add to ~/.zprofile (zsh -lc)"] == line(clinic).strip()
    assert told["add to ~/.profile (bash -lc)"] == line(clinic).strip()
    assert clinic.setup().code == 0
    assert clinic.doctor("cli.matrix").code == 1


@pytest.mark.shells
def test_d20_d141_fish_gets_a_line_of_fish(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude")
    clinic.env["SHELL"] = a_shell("fish")
    for name in (".bash_profile", ".profile"):
        clinic.write(name, line(clinic))
    found = clinic.rows("cli.matrix")["claude"]
    fish = next(remedy for remedy in found.remediation if remedy.shell == "fish")
    assert fish.command == f'fish_add_path "{clinic.bin}"'
    assert "config.fish" in fish.text
    done = subprocess.run(
        [clinic.env["SHELL"], "-c", f"{fish.command}; echo $PATH"],
        env=clinic.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(clinic.bin) in done.stdout


@pytest.mark.shells
def test_d60_a_broken_config_of_fish_says_that_it_is_lost(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.env["SHELL"] = a_shell("fish")
    clinic.write(".config/fish/config.fish", "if (; end end\n")
    found = clinic.rows("shell.rc")["fish -lic"]
    assert found.status is Status.WARN
    assert "ignores" in texts(found) or "config.fish" in texts(found)
