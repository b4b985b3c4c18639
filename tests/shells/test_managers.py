from __future__ import annotations

from pathlib import Path

import pytest

from tests.shells.world import World
from tfx.shells.binaries import Fault
from tfx.shells.managers import Place, place_of, roots, strays
from tfx.shells.shims import broken


def place(world: World, directory: str) -> tuple[str, str | None] | None:
    found = place_of(world.home / directory, roots(world.paths))
    return (found.manager, found.version) if found else None


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        (".nvm/versions/node/v20.1.0/bin", ("nvm", "v20.1.0")),
        (".local/share/fnm/node-versions/v22.2.0/installation/bin", ("fnm", "v22.2.0")),
        (".volta/bin", ("volta", None)),
        (".asdf/shims", ("asdf", None)),
        (".asdf/installs/nodejs/20.1.0/bin", ("asdf", "nodejs@20.1.0")),
        (".local/share/mise/shims", ("mise", None)),
        (".local/share/mise/installs/node/22/bin", ("mise", "node@22")),
        (".bun/bin", ("bun", None)),
        (".claude/local", ("claude local", None)),
        (".local/bin", ("user", None)),
        (".local/bin/deeper", None),
        ("bin", None),
        (".nvm", None),
    ],
)
def test_d86_a_directory_is_known_by_where_it_lies(
    world: World, directory: str, expected: tuple[str, str | None] | None
) -> None:
    assert place(world, directory) == expected


def test_d86_a_directory_of_a_shell_of_fnm_is_the_version_it_links_to(world: World) -> None:
    (world.home / ".local/share/fnm/node-versions/v20.0.0/installation/bin").mkdir(parents=True)
    shell = world.home / "run/fnm_multishells/1_2"
    shell.parent.mkdir(parents=True)
    shell.symlink_to(world.home / ".local/share/fnm/node-versions/v20.0.0/installation")
    assert place(world, "run/fnm_multishells/1_2/bin") == ("fnm", "v20.0.0")


def test_d86_the_variables_of_the_managers_are_heard(world: World) -> None:
    moved = World.at(world.home, NVM_DIR=str(world.home / "n"), XDG_DATA_HOME=f"{world.home}/d")
    assert place(moved, "n/versions/node/v1/bin") == ("nvm", "v1")
    assert place(moved, "d/mise/shims") == ("mise", None)


def test_d86_a_copy_outside_every_path_is_found_with_its_version(world: World) -> None:
    world.tool(".nvm/versions/node/v20.1.0/bin/claude")
    world.write(".nvm/alias/default", "v22.2.0\n")
    world.tool(".local/share/fnm/node-versions/v18.0.0/installation/bin/claude")
    (world.home / ".local/share/fnm/aliases").mkdir()
    (world.home / ".local/share/fnm/aliases/default").symlink_to(
        "../node-versions/v18.0.0/installation"
    )
    world.tool(".claude/local/claude")
    world.write(".bun/bin/claude", "not executable", 0o644)
    found = [
        (stray.manager, stray.version, stray.default_version)
        for stray in strays("claude", world.paths)
    ]
    assert found == [
        ("nvm", "v20.1.0", "v22.2.0"),
        ("fnm", "v18.0.0", "v18.0.0"),
        ("claude local", None, None),
    ]
    assert strays("nothing", world.paths) == ()


def shim_problem(path: Path) -> tuple[Fault, str] | None:
    problem = broken(path, path.resolve())
    return (problem.fault, problem.about) if problem else None


ASDF = '#!/usr/bin/env bash\n# asdf-plugin: nodejs {}\nexec /opt/asdf exec "claude" "$@"\n'


def test_d99_d154_a_shim_of_asdf_needs_a_version_that_has_the_program(world: World) -> None:
    shim = world.tool(".asdf/shims/claude", ASDF.format("20.1.0"))
    (world.home / ".asdf/installs/nodejs/20.1.0/bin").mkdir(parents=True)
    told = shim_problem(shim)
    assert told is not None
    assert "nodejs 20.1.0" in told[1]
    world.tool(".asdf/installs/nodejs/20.1.0/bin/claude")
    assert shim_problem(shim) is None
    assert shim_problem(world.tool(".asdf/shims/x", ASDF.format("system"))) is None


def test_d99_a_shim_of_volta_needs_its_package(world: World) -> None:
    world.tool(".volta/bin/volta-shim")
    for name in ("claude", "node"):
        (world.home / ".volta/bin" / name).symlink_to("volta-shim")
    assert shim_problem(world.home / ".volta/bin/node") is None
    assert shim_problem(world.home / ".volta/bin/claude") is not None
    world.write(".volta/tools/user/bins/claude.json", "{}")
    assert shim_problem(world.home / ".volta/bin/claude") is None


def test_d99_d151_a_wrapper_needs_what_it_starts(world: World) -> None:
    target = world.home / ".claude/local/node_modules/.bin/claude"
    wrapper = world.tool(".claude/local/claude", f'#!/bin/bash\nexec "{target}" "$@"\n')
    assert shim_problem(wrapper) == (Fault.BROKEN_SHIM, str(target))
    world.tool(".claude/local/node_modules/.bin/claude")
    assert shim_problem(wrapper) is None


PNPM = """#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\\\,/,g')")
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/global/5/node_modules/claude/cli.js" "$@"
else
  exec node  "$basedir/global/5/node_modules/claude/cli.js" "$@"
fi
"""


def test_d99_a_wrapper_of_pnpm_needs_its_package(world: World) -> None:
    wrapper = world.tool("pnpm/claude", PNPM)
    told = shim_problem(wrapper)
    assert told is not None
    assert told[1].endswith("pnpm/global/5/node_modules/claude/cli.js")
    world.write("pnpm/global/5/node_modules/claude/cli.js", "")
    assert shim_problem(wrapper) is None


@pytest.mark.parametrize(
    "text",
    [
        '#!/bin/sh\nexec node /no/such/thing "$@"\n',
        '#!/bin/sh\nif [ -n "$X" ]; then\n  exec /no/such "$@"\nfi\nexec "$Y" "$@"\n',
        "#!/bin/sh\necho /no/such\n",
        "#!/usr/bin/env node\nexec /no/such\n",
        "plain text\nexec /no/such\n",
    ],
)
def test_a_script_that_may_be_whole_is_not_called_broken(world: World, text: str) -> None:
    assert shim_problem(world.tool("odd", text)) is None


def test_a_place_names_its_directory(world: World) -> None:
    directory = world.home / ".bun/bin"
    assert place_of(directory, roots(world.paths)) == Place("bun", directory)
