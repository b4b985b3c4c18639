from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shells.world import World
from tfx.shells.flavours import MODES, Mode, flavour_of
from tfx.shells.selection import Shell, choose, find_program, login_shell

BASH = shutil.which("bash", path="/usr/bin:/bin") or ""


def chosen(world: World, shells: str = "", *, all_shells: bool = False) -> dict[str, Shell]:
    listed = world.write("shells", shells)
    found = choose(world.paths, all_shells=all_shells, etc_shells=listed)
    assert len({shell.label for shell in found}) == len(found)
    return {shell.label: shell for shell in found}


def test_d53_by_default_the_login_shell_bash_and_sh(home: Path) -> None:
    world = World.at(home, SHELL="/opt/zsh")
    shells = chosen(world, "/bin/dash\n")
    assert {label: shell.modes for label, shell in shells.items()} == {
        "zsh": MODES,
        "bash": (Mode.PLAIN, Mode.LOGIN),
        "sh": (Mode.PLAIN,),
    }
    assert shells["zsh"].login
    assert not shells["zsh"].installed


def test_d53_a_login_bash_is_asked_once_in_all_modes(home: Path) -> None:
    shells = chosen(World.at(home, SHELL="/bin/bash"))
    assert list(shells) == ["bash", "sh"]
    assert shells["bash"].modes == MODES
    assert shells["bash"].login


def test_d53_all_shells_are_those_listed_and_installed(home: Path) -> None:
    world = World.at(home, SHELL=BASH)
    listed = (
        f"# comment\n\n/bin/sh\n/usr/bin/bash\n/bin/bash\n/opt/none/zsh\n{home}/tcsh\nrelative\n"
    )
    world.tool("tcsh")
    shells = chosen(world, listed, all_shells=True)
    assert {"bash", "sh", "tcsh"} <= set(shells)
    assert "zsh" not in {Path(shell.program).parent.parent.name for shell in shells.values()}
    assert shells["tcsh"].flavour is None
    assert all(shell.modes == MODES for shell in shells.values())


def test_two_copies_of_one_kind_of_shell_are_told_apart(home: Path) -> None:
    world = World.at(home, SHELL=f"{home}/opt/bash")
    (home / "opt").mkdir()
    shutil.copy(BASH, home / "opt/bash")
    shells = chosen(world)
    assert list(shells) == ["bash", f"bash ({BASH})", "sh"]


def test_d53_the_login_shell_is_that_of_the_environment(home: Path) -> None:
    assert login_shell(World.at(home, SHELL="/opt/fish").paths) == Path("/opt/fish")
    assert login_shell(World.at(home, SHELL="fish").paths).is_absolute()
    assert login_shell(World.at(home).paths).is_absolute()
    assert login_shell(World.at(home, SHELL="/usr/sbin/nologin").paths).name != "nologin"


@pytest.mark.parametrize(
    ("program", "real", "name"),
    [
        ("/bin/bash", "/usr/bin/bash", "bash"),
        ("/bin/sh", "/usr/bin/dash", "sh"),
        ("/bin/sh", "/usr/bin/busybox", "sh"),
        ("/bin/ksh", "/usr/bin/ksh93", "ksh"),
        ("/bin/ksh", "/usr/bin/mksh", None),
        ("/bin/sh", "/usr/bin/yash", None),
        ("/bin/tcsh", "/bin/tcsh", None),
        ("/bin/rbash", "/bin/bash", None),
        ("/opt/nu", "/opt/nu", None),
    ],
)
def test_d53_a_shell_is_claimed_only_where_it_was_run(
    program: str, real: str, name: str | None
) -> None:
    flavour = flavour_of(program, real)
    assert (flavour.name if flavour else None) == name


def test_programs_of_the_system_are_found_without_a_path(home: Path) -> None:
    world = World.at(home, PATH="relative::/none")
    found = find_program("env", world.paths)
    assert found is not None
    assert found.is_absolute()
    assert find_program("tfx-no-such-program", world.paths) is None
