from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.shells.world import (
    EVERY_SHELL,
    HASTY_S,
    PATIENT_S,
    PREPEND_BOURNE,
    World,
    settled,
    the_shell,
    tree,
)
from tfx.core.listen import End
from tfx.errors import InvalidRequest
from tfx.shells.cell import Answer, Cell, Reason, Status
from tfx.shells.flavours import MODES, Mode
from tfx.shells.matrix import Verdict, probe_matrix
from tfx.shells.selection import Shell


def by_label(cells: tuple[Cell, ...]) -> dict[str, Cell]:
    return {cell.label: cell for cell in cells}


def test_d53_the_default_matrix_has_its_cells_in_order(world: World) -> None:
    there = World.at(world.home, SHELL=shutil.which("bash") or "")
    matrix = probe_matrix(there.paths, ["tool"], timeout_s=PATIENT_S)
    assert [cell.label for cell in matrix.cells] == [
        "bash -c", "bash -lc", "bash -ic", "bash -lic", "sh -c",
    ]  # fmt: skip
    assert {cell.status for cell in matrix.cells} == {Status.OK}
    assert matrix.presence("tool").verdict is Verdict.NOWHERE
    assert not matrix.in_use("tool")


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_k47_a_program_on_one_path_is_in_use(world: World, shell: str) -> None:
    world.startup(shell, "")
    matrix = world.probe(shell, "bash", names=("tool", "none"), modes=MODES)
    if shell == "bash":
        matrix = world.probe(shell, names=("tool", "none"), modes=MODES)
    assert matrix.in_use("tool")
    assert not matrix.in_use("none")
    presence = matrix.presence("tool")
    assert f"{shell} -lic" in [cell.label for cell in presence.found]
    everywhere = shell == "fish" and presence.not_found == ()
    assert presence.verdict is (Verdict.EVERYWHERE if everywhere else Verdict.SOMEWHERE)


@pytest.mark.shells
def test_d87_on_a_zsh_interactive_path_only_and_not_in_a_bash_login_shell(world: World) -> None:
    world.startup("zsh", "")
    matrix = world.probe("zsh", "bash", modes=MODES)
    presence = matrix.presence("tool")
    assert [cell.label for cell in presence.found] == ["zsh -ic", "zsh -lic"]
    login_bash = by_label(presence.not_found)["bash -lc"]
    assert login_bash.edit_file == world.home / ".profile"
    assert login_bash.flavour is not None
    line = login_bash.flavour.path_line(f"{world.home}/bin", str(world.home))
    world.write(".profile", f"{line}\n")
    again = by_label(world.probe("bash", modes=MODES).cells)
    assert again["bash -lc"].answer("tool") is Answer.FOUND


@pytest.mark.shells
def test_zsh_files_are_looked_for_where_it_keeps_them(world: World) -> None:
    world.write(".zshenv", 'export ZDOTDIR="$HOME/.config/zsh"\n')
    kept = world.write(".config/zsh/.zshrc", 'PATH="$HOME/bin:$PATH"\n')
    world.write(".zshrc", "exit 1\n")
    cells = by_label(world.probe("zsh", modes=MODES).cells)
    assert cells["zsh -ic"].answer("tool") is Answer.FOUND
    assert cells["zsh -ic"].edit_file == kept
    assert cells["zsh -lic"].startup_files[-1] == kept
    assert cells["zsh -c"].edit_file == world.home / ".zshenv"


@pytest.mark.shells
def test_d1_a_home_without_fish_stays_without_fish(home: Path) -> None:
    world = World.at(home)
    for _ in range(3):
        cells = world.probe("fish", modes=MODES).cells
        assert {(cell.status, cell.stderr) for cell in cells} == {(Status.OK, ())}
        assert cells[0].edit_file == home / ".config/fish/config.fish"
    assert tree(home) == {}


@pytest.mark.shells
def test_d1_a_matrix_of_all_shells_changes_nothing_in_the_home(world: World) -> None:
    world.startup("fish", "")
    (world.home / ".local/share/fish").mkdir(parents=True)
    for shell in ("bash", "zsh", "dash"):
        world.startup(shell, "HISTFILE=$HOME/.history_of_the_user; HISTSIZE=9; SAVEHIST=9\n")
    world.write(".profile", PREPEND_BOURNE)
    before = tree(world.home)
    matrix = world.probe("bash", "zsh", "fish", "dash", "ksh", modes=MODES)
    assert [cell.label for cell in matrix.cells if cell.status is not Status.OK] == []
    assert tree(world.home) == before
    settled(world)


@pytest.mark.shells
def test_d1_a_configured_fish_that_never_ran_leaves_and_complains_of_nothing(world: World) -> None:
    world.startup("fish", "")
    before = tree(world.home)
    for _ in range(6):  # its first starts race for the data directory
        cells = world.probe("fish", modes=MODES).cells
        assert {(cell.status, cell.stderr) for cell in cells} == {(Status.OK, ())}
        assert tree(world.home) == before


@pytest.mark.shells
def test_d1_what_a_start_up_file_keeps_beside_it_stays(world: World) -> None:
    world.startup("fish", "mkdir -p ~/.local/share/mine; echo 1 >~/.local/share/mine/x")
    world.probe("fish", modes=MODES)
    assert [p.name for p in (world.home / ".local/share").iterdir()] == ["mine"]


@pytest.mark.shells
@pytest.mark.parametrize("line", ["", "readonly HISTFILE\n"])
def test_a_ksh_that_names_a_history_file_gets_one_line_of_ours(world: World, line: str) -> None:
    world.startup("ksh", f"HISTFILE=$HOME/.history_of_the_user\n{line}")
    (cell,) = world.probe("ksh").cells
    assert (cell.status, cell.answer("tool")) == (Status.OK, Answer.FOUND)
    written = (world.home / ".history_of_the_user").read_bytes()
    assert b"unset HISTFILE" in written
    assert (b"tool" in written) is bool(line)


@pytest.mark.shells
def test_d54_good_shells_answer_beside_hanging_ones(world: World) -> None:
    world.startup("zsh", "sleep 1000\n")
    for shell in ("bash", "fish", "ksh"):
        world.startup(shell, "")
    shells = [the_shell(name, MODES) for name in ("bash", "zsh", "fish", "dash", "ksh")]
    matrix = probe_matrix(world.paths, ["tool"], timeout_s=30, shells=shells)
    unknown = [(cell.label, cell.reason) for cell in matrix.presence("tool").unknown]
    assert unknown == [("zsh -ic", Reason.TIMEOUT), ("zsh -lic", Reason.TIMEOUT)]
    assert len(matrix.cells) == 20
    settled(world)


def test_d54_d186_the_whole_run_has_one_deadline(world: World) -> None:
    world.startup("dash", "sleep 1000\n")
    one = the_shell("dash", (Mode.LOGIN,))
    shells = [replace(one, label=f"dash{number}") for number in range(18)]
    matrix = probe_matrix(world.paths, ["tool"], timeout_s=HASTY_S, shells=shells)
    reasons = [cell.reason for cell in matrix.cells]
    assert set(reasons) <= {Reason.TIMEOUT, Reason.DEADLINE}
    assert reasons[-2:] == [Reason.DEADLINE, Reason.DEADLINE]
    settled(world)


def test_d50_a_shell_that_cannot_be_started_is_unknown(world: World) -> None:
    one = the_shell("dash", (Mode.PLAIN,))
    broken = world.tool("opt/dash", "\x7fELF, but not really")
    shells = [
        Shell("spawn", broken, one.flavour, one.modes, login=False, installed=True),
        Shell("login", world.home / "no", one.flavour, MODES, login=True, installed=False),
        Shell("other", world.home / "no", one.flavour, MODES, login=False, installed=False),
        Shell("nu", broken, None, MODES, login=True, installed=True),
        Shell("tcsh", broken, None, MODES, login=False, installed=True),
    ]
    matrix = probe_matrix(world.paths, ["tool"], shells=shells)
    assert [(cell.label, cell.status, cell.reason) for cell in matrix.cells] == [
        ("spawn -c", Status.UNKNOWN, Reason.SPAWN_ERROR),
        ("login", Status.UNKNOWN, Reason.NOT_INSTALLED),
        ("other", Status.ABSENT, Reason.NOT_INSTALLED),
        ("nu", Status.UNKNOWN, Reason.UNSUPPORTED),
        ("tcsh", Status.SKIPPED, Reason.UNSUPPORTED),
    ]
    presence = matrix.presence("tool")
    assert presence.verdict is Verdict.UNKNOWN
    assert [cell.label for cell in presence.unknown] == ["spawn -c", "login", "nu"]


@pytest.mark.parametrize("timeout_s", [0, -1, 120.5, float("nan")])
def test_d11_a_timeout_that_makes_no_sense_is_refused(world: World, timeout_s: float) -> None:
    with pytest.raises(InvalidRequest, match="time-out"):
        probe_matrix(world.paths, ["tool"], timeout_s=timeout_s)


def test_d49_cancelling_ends_every_probe(world: World) -> None:
    note = 'echo >"$HOME/started.$$"; sleep 1000\n'
    for shell in ("bash", "dash"):
        world.startup(shell, note)
    cancel = threading.Event()

    def cancel_when_both_run() -> None:
        while len(list(world.home.glob("started.*"))) < 2:
            time.sleep(0.01)
        cancel.set()

    thread = threading.Thread(target=cancel_when_both_run)
    thread.start()
    shells = [the_shell(name, (Mode.LOGIN,)) for name in ("bash", "dash")]
    matrix = probe_matrix(world.paths, ["tool"], timeout_s=100, shells=shells, cancel=cancel)
    thread.join()
    assert [(cell.reason, cell.end) for cell in matrix.cells] == [
        (Reason.CANCELLED, End.CANCELLED)
    ] * 2
    settled(world)


INTERRUPTED = """
import sys
from pathlib import Path
from tfx.core.paths import Paths
from tfx.shells.matrix import probe_matrix
paths = Paths.resolve({"HOME": sys.argv[1], "SHELL": sys.argv[2], "PATH": "/usr/bin:/bin"})
try:
    probe_matrix(paths, ["tool"], timeout_s=100)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_d49_ctrl_c_leaves_no_probe_behind(world: World) -> None:
    world.startup("bash", 'echo >"$HOME/started.$$"; sleep 1000\n')
    bash = shutil.which("bash") or ""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(world.home), bash], stdout=subprocess.PIPE
    ) as child:
        while len(list(world.home.glob("started.*"))) < 2:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    assert out == b"interrupted\n"
    settled(world)


@pytest.mark.parametrize("real", ["bash", "busybox"])
def test_d35_sh_is_asked_whatever_it_really_is(world: World, real: str) -> None:
    program = shutil.which(real, path="/usr/bin:/bin")
    if program is None:
        pytest.skip(f"{real} is not installed")
    (world.home / "opt").mkdir()
    (world.home / "opt/sh").symlink_to(program)
    world.write(".profile", "alias other='~/bin/tool -q'\nfu() { :; }\nPATH=$HOME/bin:$PATH\n")
    dash = the_shell("dash")
    shell = Shell("sh", world.home / "opt/sh", dash.flavour, MODES, login=True, installed=True)
    names = ("tool", "other", "fu", "none")
    matrix = probe_matrix(world.paths, names, timeout_s=PATIENT_S, shells=[shell])
    cell = by_label(matrix.cells)["sh -lic"]
    answers = [cell.answer(name) for name in names]
    assert answers == [
        Answer.FOUND, Answer.SHELL_ONLY, Answer.SHELL_ONLY, Answer.NOT_FOUND,
    ]  # fmt: skip
    other = cell.resolution("other")
    assert other is not None
    assert other.target == f"{world.home}/bin/tool"


def test_d49_a_start_up_file_that_kills_its_parent_does_not_reach_us(world: World) -> None:
    world.startup("bash", "kill -9 $PPID; sleep 0.2\n")
    (cell,) = world.probe("bash").cells
    assert (cell.status, cell.reason, cell.exit_code) == (Status.UNKNOWN, Reason.EXITED, -9)
    settled(world)


def test_d43_the_process_in_between_adds_nothing_to_the_environment(world: World) -> None:
    world.startup("bash", 'env -u _ >"$HOME/seen"\n')
    for name in ("bash", "busybox"):
        sh = shutil.which(name, path="/usr/bin:/bin")
        if sh is None:
            continue
        link = world.home / "opt/sh"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(sh)
        world.paths.env["PATH"] = f"{link.parent}:/usr/bin:/bin"  # type: ignore[index]  # a dict of the test
        world.probe("bash")
        seen = (world.home / "seen").read_text()
        assert "SHLVL=1\n" in seen
        assert "OLDPWD" not in seen
