from __future__ import annotations

from tests.shells.world import World
from tfx.shells.binaries import Fault
from tfx.shells.columns import columns
from tfx.shells.flavours import MODES, Mode
from tfx.shells.installations import installations, winners
from tfx.shells.names import Kind


def test_d83_two_spellings_of_one_file_are_one_copy(world: World) -> None:
    (world.home / "linked").symlink_to("bin")
    (world.home / "other").mkdir()
    (world.home / "other/tool").symlink_to("../bin/tool")
    path = 'PATH="$HOME/linked:$HOME/bin:$HOME/other:$PATH"; export PATH\n'
    world.write(".profile", path)
    (only,) = installations(world.probe("bash", modes=(Mode.LOGIN,)), "tool")
    assert only.real == world.home / "bin/tool"
    assert only.paths == (world.home / "linked/tool", world.home / "other/tool")
    assert (only.wins_in, only.shadowed_in) == (("bash -lc",), ())


def test_d83_d151_distinct_copies_are_listed_with_who_wins_where(world: World) -> None:
    world.tool("old/tool")
    world.tool(".claude/local/tool")
    world.write(".profile", 'PATH="$HOME/bin:$HOME/old:$PATH"; export PATH\n')
    world.write(".bashrc", 'PATH="$HOME/old:$HOME/bin:$PATH"\nalias tool="~/.claude/local/tool"\n')
    matrix = world.probe("bash", modes=MODES)
    found = {one.real: one for one in installations(matrix, "tool")}
    new, old, local = (
        found[world.home / path] for path in ("bin/tool", "old/tool", ".claude/local/tool")
    )
    assert (new.wins_in, new.shadowed_in) == (("bash -lc", "bash -lic"), ("bash -ic",))
    assert (old.wins_in, old.shadowed_in) == (("bash -ic",), ("bash -lc", "bash -lic"))
    assert (local.wins_in, local.aliased_in) == ((), ("bash -ic",))
    assert winners(matrix, "tool") == (new, old, local)


def test_d83_a_copy_that_never_wins_is_no_winner(world: World) -> None:
    world.tool("old/tool")
    world.write(".profile", 'PATH="$HOME/bin:$HOME/old:$PATH"; export PATH\n')
    matrix = world.probe("bash", modes=(Mode.LOGIN,))
    assert [one.real.parent.name for one in installations(matrix, "tool")] == ["bin", "old"]
    assert [one.real.parent.name for one in winners(matrix, "tool")] == ["bin"]


def test_d134_d135_a_script_may_lack_its_interpreter_in_one_cell_only(world: World) -> None:
    world.tool("npm/claude", "#!/usr/bin/env tfx-node\n")
    world.tool(".nvm/versions/node/v20.1.0/bin/tfx-node")
    world.write(".profile", 'PATH="$HOME/npm:$PATH"; export PATH\n')
    nvm = 'PATH="$HOME/npm:$HOME/.nvm/versions/node/v20.1.0/bin:$PATH"\n'
    world.write(".bashrc", nvm)
    matrix = world.probe("bash", names=("claude", "tfx-node"), modes=(Mode.LOGIN, Mode.INTERACTIVE))
    (claude,) = installations(matrix, "claude")
    assert [(cell, problem.fault, problem.about) for cell, problem in claude.problems] == [
        ("bash -lc", Fault.NO_INTERPRETER, "tfx-node")
    ]
    (node,) = installations(matrix, "tfx-node")
    assert node.manager == "nvm"


def test_d147_a_lazy_loader_is_a_function_and_no_copy(world: World) -> None:
    lazy = 'function tfx-node { unset -f tfx-node; . "$HOME/.nvm/nvm.sh"; tfx-node "$@"; }\n'
    world.write(".bashrc", lazy)
    matrix = world.probe("bash", names=("tfx-node",), modes=(Mode.INTERACTIVE,))
    (cell,) = matrix.presence("tfx-node").shell_only
    assert cell.names[0].kind is Kind.FUNCTION
    assert installations(matrix, "tfx-node") == ()


def test_d55_the_paths_without_a_shell_are_shown_beside(world: World) -> None:
    sudoers = world.write("sudoers", 'Defaults env_reset\nDefaults\tsecure_path="/usr/bin:/sbin"\n')
    there = World.at(world.home, PATH=f"{world.home}/bin:/usr/bin")
    found = {
        column.label: column for column in columns(there.paths, ["tool", "env"], sudoers=sudoers)
    }
    assert list(found) == ["tfx", "systemd user services", "sudo", "cron"]
    own = dict(found["tfx"].copies)
    assert own["tool"] is not None
    assert own["tool"].path == world.home / "bin/tool"
    assert dict(found["cron"].copies)["tool"] is None
    assert [entry.text for entry in found["sudo"].entries] == ["/usr/bin", "/sbin"]
    systemd = found["systemd user services"]
    assert bool(systemd.entries) is (systemd.unknown is None)


def test_d55_a_place_that_cannot_be_read_says_so(world: World) -> None:
    found = columns(World.at(world.home).paths, ["tool"], sudoers=world.home / "none")
    assert {column.label: column.unknown for column in found}["sudo"] == "no sudo"
