from __future__ import annotations

from pathlib import Path

import pytest

from tfx.core.paths import Paths
from tfx.errors import UnsafeEnvironment


def test_directories_follow_xdg(home: Path) -> None:
    env = {"HOME": str(home), "XDG_STATE_HOME": str(home / "s"), "XDG_CONFIG_HOME": "relative"}
    paths = Paths.resolve(env)
    assert paths.state_dir == home / "s" / "tfx"
    assert paths.config_dir == home / ".config" / "tfx"


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/no/such"}])
def test_s108_unusable_home_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(UnsafeEnvironment, match="HOME"):
        Paths.resolve(env)


def test_variables_name_directories(home: Path) -> None:
    paths = Paths.resolve({"HOME": str(home), "A": "~/x y", "B": "/abs", "C": ""})
    assert paths.variable("A") == home / "x y"
    assert paths.variable("B") == Path("/abs")
    assert paths.variable("C") is None


def test_home_is_shown_as_tilde(home: Path) -> None:
    paths = Paths.resolve({"HOME": str(home)})
    assert paths.display(home / "a") == "~/a"
    assert paths.display(Path("/etc/x")) == "/etc/x"


def test_assets_are_where_the_program_is(home: Path) -> None:
    assert Paths.resolve({"HOME": str(home)}).assets_dir.is_dir()


def test_d127_somebody_who_only_looks_may_have_a_foreign_home(home: Path) -> None:
    env = {"HOME": str(home), "SUDO_USER": "somebody"}
    with pytest.raises(UnsafeEnvironment, match="sudo"):
        Paths.resolve(env)
    assert Paths.resolve(env, only_looking=True).home == home
