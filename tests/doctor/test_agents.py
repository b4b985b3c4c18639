"""`cli.*` but the matrix: copies, start, version, architecture, shims, method, login."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.agents.fakes import npm_package, script
from tests.doctor.world import Clinic, commands, hurried, texts
from tfx.doctor.model import Status

CLAUDE = "@anthropic-ai/claude-code"
SAYS = 'echo "{} (Claude Code)"'


def native(clinic: Clinic, version: str, *, directory: str = "tools") -> Path:
    """A claude without a package.json, which prints its version."""
    return script(clinic.root / directory, "claude", SAYS.format(version))


@pytest.fixture
def empty(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path)


def found(clinic: Clinic, check: str, target: str = "claude", **options: Any) -> Any:  # noqa: ANN401
    rows = clinic.rows(check, **options)
    assert target in rows, sorted(rows)
    return rows[target]


def test_d83_d142_d150_two_spellings_of_one_file_are_one_copy(empty: Clinic) -> None:
    program = native(empty, "2.1.0", directory="share/bin")
    bin_ = empty.root / "bin"
    bin_.mkdir()
    (bin_ / "claude").symlink_to(program)
    empty.everywhere(bin_, empty.root / "share/../share/bin", program.parent)
    row = found(empty, "cli.duplicates")
    assert row.status is Status.OK
    assert "one copy" in row.summary


def test_d83_an_older_copy_in_front_of_a_newer_is_a_warning(empty: Clinic) -> None:
    old, new = native(empty, "2.0.1", directory="a"), native(empty, "2.1.9", directory="b")
    empty.everywhere(old.parent, new.parent)
    row = found(empty, "cli.duplicates")
    assert row.status is Status.WARN
    assert "2.0.1" in row.summary
    assert "2.1.9" in row.summary


def test_d83_d95_d171_a_newer_copy_in_front_is_information_only(empty: Clinic) -> None:
    old, new = native(empty, "2.0.1", directory="a"), native(empty, "2.1.9", directory="b")
    empty.everywhere(new.parent, old.parent)
    assert found(empty, "cli.duplicates").status is Status.INFO


def test_d83_d171_two_copies_of_one_version_are_information(empty: Clinic) -> None:
    one, two = native(empty, "2.1.9", directory="a"), native(empty, "2.1.9", directory="b")
    empty.write(".bash_profile", f'export PATH="{one.parent}:$PATH"\n')
    empty.write(".bashrc", f'export PATH="{two.parent}:$PATH"\n')
    row = found(empty, "cli.duplicates")
    assert (row.status, "2 copies of one version" in row.summary) == (Status.INFO, True)


def test_d151_different_copies_in_different_shells_are_listed_with_hash_r(empty: Clinic) -> None:
    old, new = native(empty, "2.0.1", directory="a"), native(empty, "2.1.9", directory="b")
    empty.write(".bash_profile", f'export PATH="{old.parent}:$PATH"\n')
    empty.write(".bashrc", f'export PATH="{new.parent}:$PATH"\n')
    row = found(empty, "cli.duplicates")
    assert row.status is Status.WARN
    assert "2.0.1 in bash -lc" in row.summary
    assert "hash -r" in commands(row)
    assert len(row.details) == 2


def test_d96_a_program_that_starts_is_ok(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.1.0").parent)
    assert found(empty, "cli.exec").summary == "answers 2.1.0"


@pytest.mark.parametrize(("body", "word"), [("exit 3", "status 3"), ("kill -9 $$", "signal 9")])
def test_d91_d96_a_program_that_ends_badly_fails(empty: Clinic, body: str, word: str) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.0", "claude", body)
    empty.everywhere(package.parent)
    row = found(empty, "cli.exec")
    assert row.status is Status.FAIL
    assert word in row.summary
    assert "--version" in commands(row)[0]


def test_d91_a_missing_interpreter_is_named(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.0", "claude")
    package.resolve().write_text("#!/usr/bin/env no-such-node\n")
    empty.everywhere(package.parent)
    row = found(empty, "cli.exec")
    assert row.status is Status.FAIL
    assert "no-such-node" in texts(row)


def test_d91_d161_a_program_that_hangs_is_unknown(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.0", "claude", "sleep 60")
    empty.everywhere(package.parent)
    row = hurried(empty, "cli.exec", 1.0)["claude"]
    assert row.status is Status.UNKNOWN
    assert "did not end within 5 s" in row.summary


def test_d92_probing_leaves_the_home_as_it_was(empty: Clinic) -> None:
    body = 'touch "$HOME/stray" "$XDG_CONFIG_HOME/x" 2>/dev/null; ' + SAYS.format("2.1.0")
    empty.everywhere(script(empty.root / "tools", "claude", body).parent)
    found(empty, "cli.exec")
    assert not (empty.home / "stray").exists()


def test_d88_d160_the_version_is_read_by_line_shape(empty: Clinic) -> None:
    body = 'echo "update 1.0 -> 9.9.9"; ' + SAYS.format("2.1.300")
    empty.everywhere(script(empty.root / "tools", "claude", body).parent)
    assert found(empty, "cli.version").summary.startswith("2.1.300")


def test_d90_d97_below_the_minimum_is_a_warning_that_names_the_ability(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.0.1").parent)
    row = found(empty, "cli.version")
    assert row.status is Status.WARN
    assert "2.0.1 is old" in row.summary
    assert "skills" in json.dumps(dict(row.details))


def test_d97_an_ability_that_nobody_may_use_is_information(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.1.50").parent)
    row = found(empty, "cli.version")
    assert (row.status, "if you use it" in row.summary) == (Status.INFO, True)


def test_d97_new_enough_is_ok(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.1.332").parent)
    assert found(empty, "cli.version").status is Status.OK


def old_node(clinic: Clinic, version: str) -> Path:
    return script(clinic.root / "node", "node", f"echo v{version}")


def test_s16_npm_chose_an_old_release_because_node_is_old(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.197", "claude")
    empty.everywhere(old_node(empty, "20.20.0").parent, package.parent)
    row = found(empty, "cli.version")
    assert row.status is Status.WARN
    assert "npm chose" in row.summary
    assert "upgrade Node" in texts(row)


def test_s16_node_too_old_for_the_release_that_runs_on_it(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.332", "claude")
    package.resolve().write_text("#!/usr/bin/env node\n")
    empty.everywhere(old_node(empty, "20.20.0").parent, package.parent)
    row = found(empty, "cli.version")
    assert row.status is Status.WARN
    assert "asks for Node >=22" in row.summary


def test_s16_a_native_program_does_not_care_for_node(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.332", "claude")
    empty.everywhere(old_node(empty, "20.20.0").parent, package.parent)
    assert found(empty, "cli.version").status is Status.OK


def elf(machine: int) -> bytes:
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    return (head + struct.pack("<HHI", 2, machine, 1) + bytes(40)).ljust(128, b"\0")


def test_d98_d159_a_binary_of_another_machine_fails_by_its_header(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.332", "claude")
    package.resolve().write_bytes(elf(22))  # s390x, whatever its name says
    empty.everywhere(package.parent)
    row = found(empty, "cli.arch")
    assert row.status is Status.FAIL
    assert "s390x" in row.summary


def test_d99_d154_a_shim_without_its_target_fails_and_names_reshim(empty: Clinic) -> None:
    shims = empty.home / ".asdf/shims"
    script(shims, "claude", "# asdf-plugin: nodejs 20.0.0\nexec asdf exec claude")
    empty.everywhere(shims)
    row = found(empty, "cli.shim")
    assert row.status is Status.FAIL
    assert "asdf reshim" in row.summary


def test_d93_d154_a_shim_is_run_not_only_found(empty: Clinic) -> None:
    shims = empty.home / ".asdf/shims"
    script(shims, "claude", "# asdf-plugin: nodejs system\necho 'No preset version' >&2; exit 126")
    empty.everywhere(shims)
    row = found(empty, "cli.exec")
    assert row.status is Status.FAIL
    assert "asdf reshim" in commands(row)


def test_d99_a_link_to_nothing_is_told_though_nothing_is_in_use(empty: Clinic) -> None:
    place = empty.root / "links"
    place.mkdir()
    (place / "codex").symlink_to(empty.root / "gone")
    empty.everywhere(place)
    row = found(empty, "cli.shim", "codex")
    assert row.status is Status.WARN
    assert "dangling" in row.summary


def test_d85_d100_the_method_comes_from_the_file_not_from_the_directory(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.0", "claude")
    local = empty.home / ".local/bin"
    local.mkdir(parents=True)
    (local / "claude").symlink_to(package.resolve())
    empty.everywhere(local)
    assert found(empty, "cli.method").details["method"] == "npm"


def test_d100_a_native_installer_and_brew_are_told_apart(empty: Clinic) -> None:
    native_ = script(empty.home / ".local/share/claude/versions", "2.1.0", SAYS.format("2.1.0"))
    local = empty.home / ".local/bin"
    local.mkdir(parents=True)
    (local / "claude").symlink_to(native_)
    empty.everywhere(local)
    assert found(empty, "cli.method").details["method"] == "native installer"
    (local / "claude").unlink()
    cellar = script(empty.root / "Cellar/claude/1/bin", "claude", SAYS.format("2.1.0"))
    (local / "claude").symlink_to(cellar)
    assert found(empty, "cli.method").details["method"] == "brew"


@pytest.mark.parametrize("line", ["prefix=~/npmstuff", "prefix = ${HOME}/npmstuff"])
def test_d100_d143_npms_prefix_is_compared_with_each_cell(empty: Clinic, line: str) -> None:
    codex = script(empty.home / "npmstuff/bin", "codex", SAYS.format("0.171.0"))
    empty.write(".npmrc", f"registry=x\n{line}\n")
    rows = empty.rows("cli.method", "cli.matrix")
    row = rows["npm prefix ~/npmstuff"]
    assert (row.status, "codex there cannot be found" in row.summary) == (Status.WARN, True)
    assert 'export PATH="$HOME/npmstuff/bin:$PATH"' in commands(row)
    assert "present under npm prefix" in rows["codex"].summary

    empty.write(".bashrc", f'export PATH="{codex.parent}:$PATH"\n')
    row = empty.rows("cli.method")["npm prefix ~/npmstuff"]
    assert row.details["not_in"] == ["bash -lc", "bash -lic"]
    empty.everywhere(empty.home / "npmstuff/../npmstuff/bin/")
    assert empty.rows("cli.method")["npm prefix ~/npmstuff"].status is Status.OK


def test_d100_d143_an_npm_prefix_that_holds_no_agent_is_information(empty: Clinic) -> None:
    empty.env["NPM_CONFIG_PREFIX"] = "~/npmstuff"
    assert empty.rows("cli.method")["npm prefix ~/npmstuff"].status is Status.INFO


def test_d152_npm_that_would_update_another_copy(empty: Clinic) -> None:
    package = npm_package(empty.root / "npm", CLAUDE, "2.1.0", "claude")
    script(empty.root / "tools", "npm", "exit 9")
    empty.everywhere(package.parent, empty.root / "tools")
    empty.write(".npmrc", f"prefix={empty.root}/elsewhere\n")
    row = found(empty, "cli.method")
    assert row.status is Status.WARN
    assert "elsewhere/lib/node_modules" in texts(row)
    empty.write(".npmrc", f"prefix={empty.root}/npm\n")
    assert found(empty, "cli.method").status is Status.OK


def test_d101_a_login_is_told_by_files_and_names_only(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.1.0").parent)
    assert found(empty, "cli.auth").status is Status.INFO
    empty.write(".claude/.credentials.json", '{"x": "canary"}', 0o600)
    row = found(empty, "cli.auth")
    assert row.status is Status.OK
    assert "canary" not in texts(row)


def test_d101_a_credential_that_others_can_read_is_a_warning_with_a_command(
    empty: Clinic,
) -> None:
    empty.everywhere(native(empty, "2.1.0").parent)
    empty.write(".claude/.credentials.json", "{}", 0o644)
    row = found(empty, "cli.auth")
    assert row.status is Status.WARN
    assert "mode 0644" in row.summary
    assert commands(row) == ["chmod 600 ~/.claude/.credentials.json"]
    assert row.fix == {"class": "M"}


def test_d101_a_variable_is_named_never_shown(empty: Clinic) -> None:
    empty.everywhere(native(empty, "2.1.0").parent)
    empty.env["ANTHROPIC_API_KEY"] = "canary-canary"
    row = found(empty, "cli.auth")
    assert (row.status, "ANTHROPIC_API_KEY is set" in row.summary) == (Status.OK, True)
    assert "canary" not in texts(row)


def test_d101_where_a_keyring_may_hold_it_nothing_is_known(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "codex").everywhere()
    assert found(clinic, "cli.auth", "codex").status is Status.UNKNOWN


def test_d101_a_provider_of_opencode_is_told_by_names_only(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "opencode").everywhere()
    row = found(clinic, "cli.auth", "opencode")
    assert (row.status, "no login seen" in row.summary) == (Status.INFO, True)
    clinic.write(".config/opencode/opencode.json", '{"provider": {"x": {"apiKey": "canary-4711"}}}')
    row = found(clinic, "cli.auth", "opencode")
    assert (row.status, "canary" in texts(row)) == (Status.UNKNOWN, False)
    clinic.env["OPENROUTER_API_KEY"] = "canary-4711"
    row = found(clinic, "cli.auth", "opencode")
    assert (row.status, "OPENROUTER_API_KEY is set" in row.summary) == (Status.OK, True)


def test_d85_the_real_fixture_of_support_is_npm(clinic: Clinic) -> None:
    assert found(clinic, "cli.method").details["method"] == "npm"
