"""Every printed command can be pasted, in whatever home: its words are what is meant (D-20)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doctor.world import Clinic, commands, row
from tests.support import Ran, bare_env
from tfx.core.paths import Paths
from tfx.doctor.model import Finding, Remedy, Status
from tfx.doctor.redaction import Redactor
from tfx.doctor.words import command

_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")


def words_of(line: str, home: Path) -> list[str]:
    """What bash makes of a command line."""
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"],
        env={"HOME": str(home), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


names = st.binary(min_size=1, max_size=12).map(
    lambda data: os.fsdecode(data.replace(b"\0", b"-").replace(b"/", b"~"))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(names, min_size=1, max_size=4))
def test_d20_any_file_name_comes_back_from_the_shell(tmp_path: Path, parts: list[str]) -> None:
    home = tmp_path / "a home"
    paths = [home.joinpath(*parts), tmp_path.joinpath(*parts), *(home / part for part in parts)]
    line = command(home, "mv", *paths)
    assert words_of(line, home) == ["mv", *map(str, paths)]
    assert Redactor(Paths({}, *[home] * 5), user="", host="").text(line) == line


def test_d20_a_home_that_is_a_link_is_one_home(tmp_path: Path) -> None:
    real, link = tmp_path / "s", tmp_path / "slink"
    real.mkdir()
    link.symlink_to(real)
    for home in (real, link):
        assert command(link, "less", home / "x y", home) == "less ~/'x y' ~"


def test_d20_a_command_that_redaction_would_change_is_not_shown(home: Path) -> None:
    redactor = Redactor(Paths.resolve(bare_env(home)), user="hub", host="tower-7")

    def shown(line: str) -> str | None:
        (remedy,) = redactor.finding(
            Finding("t", Status.WARN, "s", {}, (Remedy("do", line),))
        ).remedies
        return remedy.command

    assert shown("tfx hub start") == "tfx hub start"
    assert shown("chmod 600 /srv/hub/x") is None
    assert shown(f"chmod 600 /mnt{home}/x") is None
    assert shown("less '/x/token=abcdef123456'") is None


@pytest.fixture
def linked(tmp_path: Path) -> Clinic:
    """A home that is a link; its start-up files name the directory behind it."""
    clinic = Clinic(tmp_path, home="behind")
    (tmp_path / "slink").symlink_to(clinic.home)
    clinic.env["HOME"] = str(tmp_path / "slink")
    clinic.write("bin/claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n", 0o755)
    clinic.write(".bashrc", f'export PATH="{clinic.home}/bin:$PATH"\n')
    return clinic


def test_d20_the_line_for_path_has_no_quoted_tilde(linked: Clinic) -> None:
    found = linked.rows("cli.matrix")["claude"]
    assert commands(found) == ['export PATH="$HOME/bin:$PATH"'], found


def test_d20_no_command_has_a_quoted_tilde(linked: Clinic) -> None:
    (linked.home / ".claude/skills/x.bak").mkdir(parents=True)
    linked.write(".claude/skills/x.bak/SKILL.md", "x")
    linked.write(".claude/settings.json", "{")
    (linked.home / ".local/state/tfx/hub").mkdir(parents=True, mode=0o755)
    printed = [
        remedy["command"]
        for each in linked.doctor().data["rows"]
        for remedy in each["remediation"]
        if remedy["command"]
    ]
    assert "mv ~/.claude/skills/x.bak ~" in printed
    assert "less ~/.claude/settings.json" in printed
    assert [line for line in printed if any("~" in each for each in _QUOTED.findall(line))] == []
    for line in printed:
        subprocess.run(["bash", "-n", "-c", line], check=True)


def test_d20_a_name_that_is_no_text_is_still_the_one_to_move(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    folder = clinic.home / os.fsdecode(b".claude/skills/c\xff\xfe.bak")
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("x")
    (found,) = clinic.rows("skills").values()
    assert commands(found) == ["mv ~/$'.claude/skills/c\\377\\376.bak' ~"]
    line = commands(found)[0]
    assert words_of(line, clinic.home) == ["mv", str(folder), str(clinic.home)]


def test_d20_tfx_is_called_by_a_path_that_can_be_pasted(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, home="a home")
    place = clinic.home / "my venv"
    venv.create(place, symlinks=True, with_pip=False)
    packages = next(place.glob("lib/python*/site-packages"))
    own = [entry for entry in sys.path if entry.endswith("site-packages")]
    root = Path(__file__).parents[2]
    (packages / "own.pth").write_text("\n".join([*own, str(root)]))
    done = subprocess.run(
        [str(place / "bin/python"), "-I", "-m", "tfx", "doctor", "self", "--json"],
        env=clinic.env,
        stdout=subprocess.PIPE,
        check=False,
    )
    told = row(Ran(done.returncode, done.stdout.decode(), ""), "self", "tfx")
    line = told["remediation"][0]["command"]
    assert words_of(line, clinic.home)[0].startswith(str(place / "bin/python"))
