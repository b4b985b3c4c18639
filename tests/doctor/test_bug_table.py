"""Public bug reports as test cases (D-133 … D-174): what other files do not show already."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, commands, texts
from tests.support import listing
from tfx.doctor.model import Status

HERE = Path(__file__).parent
# Windows, WSL and launchd come in a later version.
LATER = {137, 153, 155, 156, 157, 158}


def test_every_row_of_the_bug_table_has_a_test() -> None:
    text = "".join(path.read_text("utf-8") for path in HERE.rglob("test_*.py"))
    names = " ".join(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
    tested = {int(number) for number in re.findall(r"_d(\d+)(?=_)", names)}
    assert sorted(set(range(133, 175)) - tested - LATER) == []


def line(clinic: Clinic) -> str:
    return f'export PATH="{clinic.bin}:$PATH"\n'


@pytest.fixture
def bare(tmp_path: Path) -> Clinic:
    clinic = Clinic(tmp_path, "claude")
    clinic.env["PATH"] = "/usr/bin:/bin"
    return clinic


def test_d134_absent_from_a_bare_c_is_by_design_and_the_absolute_path_is_given(
    bare: Clinic,
) -> None:
    for name in (".bash_profile", ".bashrc"):
        bare.write(name, line(bare))
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.OK
    assert f"{bare.bin}/claude works" in found.details["by_design"]


def test_d138_the_file_that_only_the_finding_starts_read_is_named(bare: Clinic) -> None:
    bare.write(".bashrc", line(bare))
    bare.write(".bash_profile", "true\n")
    found = bare.rows("cli.matrix")["claude"]
    assert "~/.bashrc" in found.details["read only where it is found"]
    assert "~/.bash_profile" not in found.details["read only where it is found"]


def test_d147_a_lazy_function_serves_no_other_program(bare: Clinic) -> None:
    for name in (".bashrc", ".bash_profile"):
        bare.write(name, "claude() { unset -f claude; . ~/.nvm/nvm.sh; claude; }\n")
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    assert found.summary.startswith("function only")
    assert "other programs cannot use it" in found.summary


def test_d149_an_alias_to_the_local_install_is_followed(bare: Clinic) -> None:
    local = bare.home / ".claude/local"
    local.mkdir(parents=True)
    (local / "claude").symlink_to((bare.bin / "claude").resolve())
    for name in (".bashrc", ".bash_profile"):
        bare.write(name, "shopt -s expand_aliases; alias claude=~/.claude/local/claude\n")
    found = bare.rows("cli.matrix")["claude"]
    assert found.status is Status.WARN
    assert found.details["target"] == "~/.claude/local/claude"
    assert commands(found)[0] == 'export PATH="$HOME/.claude/local:$PATH"'


def test_d166_nothing_is_ever_reset_and_a_refusal_is_no_corruption(clinic: Clinic) -> None:
    deep = "[" * 3000 + "]" * 3000
    clinic.write(".claude/settings.json", f'{{"x": {deep}}}')
    clinic.write(".claude.json", b"\xff\xfe not text")
    before = listing(clinic.home)
    ran = clinic.doctor("--fix", "--yes")
    assert ran.code == 1
    assert listing(clinic.home) == before


def test_d168_a_fix_stays_applied_when_another_check_fails(clinic: Clinic) -> None:
    script = clinic.home / ".claude/scripts/tfx-route.sh"
    script.chmod(0o644)
    clinic.write(".codex/config.toml", "broken\n")
    ran = clinic.doctor("--fix", "--yes")
    assert ran.code == 1
    assert [each["outcome"] for each in ran.data["fixes"]] == ["applied"]
    assert script.stat().st_mode & 0o777 == 0o755
    assert (clinic.home / ".codex/config.toml").read_text() == "broken\n"


def test_d169_the_exit_status_follows_the_rows_after_the_payload(clinic: Clinic) -> None:
    assert clinic.doctor().code == 0
    (clinic.home / ".claude/skills/tfx-setup/SKILL.md").write_text("mine")
    warned = clinic.doctor("assets.manifest")
    assert (warned.code, warned.data["verdict"]) == (0, "warn")
    clinic.write(".claude/settings.json", "{")
    failed = clinic.doctor("settings.json")
    assert (failed.code, failed.data["verdict"]) == (1, "fail")
    assert failed.data["rows"]


def test_d170_d178_checks_run_side_by_side_and_a_hang_is_cut_off(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".bash_profile", "sleep 60\n")
    clinic.write(".profile", "sleep 60\n")
    ran = clinic.doctor("--timeout", "3")
    rows = [row for row in ran.data["rows"] if row["id"] == "shell.rc"]
    assert {"unknown"} <= {row["status"] for row in rows}
    assert row_of(ran.data["rows"], "locale")["status"] == "ok"


def row_of(rows: list[dict[str, str]], name: str) -> dict[str, str]:
    return next(row for row in rows if row["id"] == name)


def test_d146_the_argv_that_is_shown_can_be_run_by_hand(bare: Clinic) -> None:
    bare.write(".bash_profile", "exit 4\n")
    found = bare.rows("shell.rc")["bash -lc"]
    assert "/bin/bash -l -c" in texts(found)
