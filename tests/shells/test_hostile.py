"""Every hostile start-up file, in every shell, started as login and interactive."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace

import pytest

from tests.shells.hostile import CASES, Case
from tests.shells.world import (
    EVERY_SHELL,
    HASTY_S,
    OF_ITS_OWN,
    PATIENT_S,
    WAITS_FOR_IT,
    WAITS_FOR_IT_BOURNE,
    World,
    settled,
    tree,
)
from tfx.core.listen import End
from tfx.shells.cell import Status
from tfx.shells.flavours import MODES, Mode
from tfx.shells.names import Kind


def case_of(prefix: str) -> Case:
    return next(case for case in CASES if case.id.startswith(prefix))


@pytest.mark.parametrize("shell", EVERY_SHELL)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_d57_d80_a_hostile_startup_file_gives_its_cell(
    world: World, shell: str, case: Case
) -> None:
    world.startup(shell, f"{case.text(shell)}\n")
    world.tool("again", f"#!/bin/sh\nexec {shell} -l -i\n")
    if case.id.startswith("d62") and shutil.which("tmux", path="/usr/bin:/bin") is None:
        world.tool(
            "bin/tmux", "#!/bin/sh\necho 'open terminal failed: not a terminal' >&2\nexit 1\n"
        )
    before = tree(world.home)
    reason, end, code = case.expected(shell)
    timeout_s = HASTY_S if end is End.DEADLINE else PATIENT_S

    (cell,) = world.probe(shell, timeout_s=timeout_s).cells

    assert (cell.reason, cell.end, cell.exit_code) == (reason, end, code), cell
    assert cell.status is (Status.UNKNOWN if reason else Status.OK)
    complains = case.expects_complaint(shell)
    assert complains is None or bool(cell.stderr) is complains, cell.stderr
    if reason is None:
        found = cell.resolution("tool")
        assert found is not None
        lost = shell in case.config_lost
        assert found.kind is (Kind.NONE if lost else Kind.FILE)
        assert found.path == (None if lost else world.home / "bin/tool")
    settled(world)
    assert tree(world.home) == before


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_d69_a_job_in_its_own_session_is_told_and_left_alone(world: World, shell: str) -> None:
    waits = WAITS_FOR_IT.get(shell, WAITS_FOR_IT_BOURNE)
    world.startup(shell, f"{OF_ITS_OWN}\n{waits}\n")
    (cell,) = world.probe(shell).cells
    assert (cell.status, cell.end, cell.outlived) == (Status.OK, End.MARK, True)
    (pid,) = settled(world, left=1)
    os.kill(pid, signal.SIGKILL)
    settled(world)


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_d72_the_kind_of_a_hijacker_is_told(world: World, shell: str) -> None:
    world.startup(shell, f"{case_of('d72').text(shell)}\n")
    (cell,) = world.probe(shell, names=("printf", "env", "tool")).cells
    assert [found.kind for found in cell.names] == [Kind.FUNCTION, Kind.FUNCTION, Kind.FILE]


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_d73_the_target_of_a_hijacking_alias_is_told(world: World, shell: str) -> None:
    world.startup(shell, f"{case_of('d73').text(shell)}\n")
    (cell,) = world.probe(shell, names=("printf",)).cells
    (found,) = cell.names
    assert (found.kind, found.target) == (Kind.ALIAS, "echo")


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_d78_entries_with_spaces_and_newlines_stay_whole(world: World, shell: str) -> None:
    world.tool("a b\nc/odd")
    line = 'PATH="$HOME/a b\nc:$PATH"; export PATH\n'
    if shell == "fish":
        line = 'set -gx PATH "$HOME/a b\nc" $PATH\n'
    world.startup(shell, line, prepend=False)
    (cell,) = world.probe(shell, names=("odd",)).cells
    assert cell.entries[0].text == f"{world.home}/a b\nc"
    assert cell.names[0].path == world.home / "a b\nc/odd"


def test_d79_behind_the_debian_guard_only_interactive_shells_see_it(world: World) -> None:
    guard = "case $- in *i*) ;; *) return;; esac\n"
    world.write(".bashrc", f'{guard}PATH="$HOME/bin:$PATH"; export PATH\n')
    world.write(".profile", '. "$HOME/.bashrc"\n')
    cells = world.probe("bash", modes=MODES).cells
    assert [cell.status for cell in cells] == [Status.OK] * 4
    assert [cell.mode for cell in cells if cell.names[0].path] == [
        Mode.INTERACTIVE,
        Mode.LOGIN_INTERACTIVE,
    ]


def test_d80_a_start_above_a_second_deserves_a_word(world: World) -> None:
    (cell,) = world.probe("bash").cells
    assert not replace(cell, duration_ms=1000).slow
    assert replace(cell, duration_ms=1001).slow


def test_d52_a_timed_out_probe_tells_what_was_run_and_what_was_read(world: World) -> None:
    file = world.startup("bash", "sleep 1000\n")
    (cell,) = world.probe("bash", timeout_s=HASTY_S).cells
    assert cell.argv[:4] == (str(cell.program), "-l", "-i", "-c")
    assert file in cell.startup_files
