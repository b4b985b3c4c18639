from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shells.world import World
from tfx.shells import managers
from tfx.shells.binaries import Fault, host_machine
from tfx.shells.cell import Answer
from tfx.shells.names import Kind, Said
from tfx.shells.probe import resolve
from tfx.shells.searchpath import Copy, Entry, EntryFault, split, walk

HOST = host_machine()


def entries_of(world: World, text: str) -> tuple[Entry, ...]:
    return split(text, world.home, managers.roots(world.paths))


def copies(world: World, *directories: str, name: str = "tool") -> tuple[Copy, ...]:
    text = ":".join(str(world.home / directory) for directory in directories)
    return walk(name, entries_of(world, text), world.home, host=HOST)


def test_d82_each_kind_of_bad_entry_is_told(world: World) -> None:
    world.write("file", "")
    (world.home / "gone-link").symlink_to("nothing")
    (world.home / "loop").symlink_to("loop")
    home = world.home
    text = f"{home}/bin:::bin:~/bin:{home}/none:{home}/file:{home}/gone-link:{home}/loop"
    told = [(entry.text.replace(str(home), ""), entry.faults) for entry in entries_of(world, text)]
    assert told == [
        ("/bin", ()),
        ("", (EntryFault.EMPTY,)),
        ("", (EntryFault.EMPTY, EntryFault.REPEATED)),
        ("bin", (EntryFault.RELATIVE, EntryFault.REPEATED)),
        ("~/bin", (EntryFault.TILDE, EntryFault.MISSING)),
        ("/none", (EntryFault.MISSING,)),
        ("/file", (EntryFault.NOT_A_DIRECTORY,)),
        ("/gone-link", (EntryFault.MISSING,)),
        ("/loop", (EntryFault.UNREADABLE,)),
    ]


def test_d82_d142_one_directory_by_three_spellings_is_one(world: World) -> None:
    (world.home / "share").mkdir()
    (world.home / "linked").symlink_to("bin")
    found = copies(world, "share/../bin", "bin/", "linked")
    assert [copy.path for copy in found] == [world.home / "share/../bin/tool"]
    assert found[0].real == world.home / "bin/tool"


def test_d81_a_shell_passes_over_what_it_cannot_run(world: World) -> None:
    world.write("a/tool", "#!/bin/sh\n", 0o644)
    (world.home / "b").mkdir()
    (world.home / "b/tool").symlink_to("../gone")
    (world.home / "c/tool").mkdir(parents=True)
    found = copies(world, "a", "b", "c", "bin")
    assert [copy.problem.fault if copy.problem else None for copy in found] == [
        Fault.NOT_EXECUTABLE,
        Fault.DANGLING,
        Fault.NOT_A_FILE,
        None,
    ]
    assert [copy.runnable for copy in found] == [False, False, False, True]


def test_d81_the_chain_of_links_is_kept(world: World) -> None:
    (world.home / "a").mkdir()
    (world.home / "a/tool").symlink_to("middle")
    (world.home / "a/middle").symlink_to("../bin/tool")
    (found,) = copies(world, "a")
    assert found.links == ("middle", "../bin/tool")
    assert found.real == world.home / "bin/tool"


def test_d81_a_script_runs_only_where_its_interpreter_is_found(world: World) -> None:
    world.tool("npm/claude", "#!/usr/bin/env tool\n")
    (alone,) = copies(world, "npm", name="claude")
    assert alone.problem is not None
    assert (alone.problem.fault, alone.problem.about) == (Fault.NO_INTERPRETER, "tool")
    (both,) = copies(world, "npm", "bin", name="claude")
    assert both.problem is None


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("~/local/claude", "local/claude"),
        ("$HOME/local/claude", "local/claude"),
        ("${HOME}/local/claude", "local/claude"),
        ("tool", "bin/tool"),
        ("~/local/none", None),
        ("$ELSEWHERE/claude", None),
    ],
)
def test_d84_d149_an_alias_is_followed(world: World, target: str, path: str | None) -> None:
    world.tool("local/claude")
    entries = entries_of(world, f"{world.home}/bin")
    found = resolve("claude", Said(Kind.ALIAS, target), entries, world.home, host=HOST)
    assert found.answer is Answer.SHELL_ONLY
    assert found.path is None
    assert (found.target_copy.path if found.target_copy else None) == (
        world.home / path if path else None
    )


def test_d148_an_alias_beside_a_program_hides_nothing_from_scripts(world: World) -> None:
    entries = entries_of(world, f"{world.home}/bin")
    found = resolve("tool", Said(Kind.ALIAS, "tool"), entries, world.home, host=HOST)
    assert found.answer is Answer.FOUND
    assert found.target_copy == found.winner


def test_d147_a_lazy_function_is_function_only(world: World) -> None:
    entries = entries_of(world, f"{world.home}/bin")
    found = resolve("node", Said(Kind.FUNCTION), entries, world.home, host=HOST)
    assert found.answer is Answer.SHELL_ONLY


def test_d50_words_we_do_not_understand_are_no_absence(world: World) -> None:
    found = resolve("node", Said(Kind.UNCLEAR), (), world.home, host=HOST)
    assert found.answer is Answer.UNKNOWN


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d", "e", "./a", "b/../a", "none", ""]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    st.fixed_dictionaries(
        {letter: st.sampled_from(["run", "plain", "link", "dangling", "directory", "no"])
         for letter in "abcde"}
    ),
)  # fmt: skip
def test_d81_the_winner_is_the_file_that_a_shell_runs(
    tmp_path_factory: pytest.TempPathFactory,
    chosen: list[tuple[str, bool]],
    kinds: dict[str, str],
) -> None:
    home = tmp_path_factory.mktemp("walk")
    for letter, kind in kinds.items():
        _put(home / letter, kind)
    text = ":".join(f"{home}/{part}" if absolute else part for part, absolute in chosen)
    world = World.at(home)
    found = walk("probe-me", entries_of(world, text), home, host=HOST)
    winner = next((copy.path.resolve() for copy in found if copy.runnable), None)
    script = "exec probe-me 2>/dev/null"
    ran = subprocess.run(
        ["/bin/sh", "-c", script], env={"PATH": text}, cwd=home, capture_output=True, check=False
    ).stdout
    told = os.fsdecode(ran).strip()
    assert (str(winner) if winner else "") == told


def _put(directory: Path, kind: str) -> None:
    directory.mkdir()
    script = f"#!{sys.executable} -IS\nimport os\nprint(os.path.realpath(__file__))\n"
    file = directory / "probe-me"
    match kind:
        case "run" | "plain":
            file.write_text(script)
            file.chmod(0o755 if kind == "run" else 0o644)
        case "link":
            (directory / "target").write_text(script)
            (directory / "target").chmod(0o755)
            file.symlink_to("target")
        case "dangling":
            file.symlink_to("gone")
        case "directory":
            file.mkdir()
        case _:
            pass
