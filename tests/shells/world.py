"""A HOME with start-up files, the shells of this machine, and what is left of a probe."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tfx.core.paths import Paths
from tfx.shells.binaries import real_path
from tfx.shells.flavours import MODES, Mode, flavour_of
from tfx.shells.matrix import Matrix, probe_matrix
from tfx.shells.selection import Shell

PATIENT_S = 60.0  # for probes that are to answer: never the reason why a test ends
HASTY_S = 1.0  # for probes that are to time out

# A job in a session of its own, and a start that goes on once it is there.
OF_ITS_OWN = "setsid sh -c 'echo >\"$HOME/.left\"; exec sleep 600' &"
WAITS_FOR_IT = {
    "fish": "while not test -s $HOME/.left; sleep 0.02; end",
}
WAITS_FOR_IT_BOURNE = 'while [ ! -s "$HOME/.left" ]; do sleep 0.02; done'

# The file that a login interactive start reads last.
STARTUP = {
    "bash": ".bash_profile",
    "zsh": ".zshrc",
    "fish": ".config/fish/config.fish",
    "dash": ".profile",
    "ksh": ".kshrc",
}
PREPEND = {
    "fish": 'set -gx PATH "$HOME/bin" $PATH\n',
}
PREPEND_BOURNE = 'PATH="$HOME/bin:$PATH"; export PATH\n'

# bash and dash are in the default suite, the others only where the marker asks for them.
EVERY_SHELL = [
    "bash",
    "dash",
    *(pytest.param(name, marks=pytest.mark.shells) for name in ("zsh", "fish", "ksh")),
]


@dataclass(frozen=True, slots=True)
class World:
    home: Path
    paths: Paths

    @classmethod
    def at(cls, home: Path, **env: str) -> World:
        base = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        return cls(home, Paths.resolve(base | env))

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def tool(self, name: str, text: str = "#!/bin/sh\necho 1.2.3\n") -> Path:
        return self.write(name, text, 0o755)

    def startup(self, shell: str, text: str, *, prepend: bool = True) -> Path:
        """Write a start-up file that first puts ~/bin on PATH, then does what the test says."""
        before = PREPEND.get(shell, PREPEND_BOURNE) if prepend else ""
        return self.write(STARTUP[shell], before + text)

    def probe(
        self,
        *shells: str,
        names: Sequence[str] = ("tool",),
        modes: Sequence[Mode] = (Mode.LOGIN_INTERACTIVE,),
        timeout_s: float = PATIENT_S,
    ) -> Matrix:
        chosen = [the_shell(name, modes) for name in shells]
        return probe_matrix(self.paths, names, timeout_s=timeout_s, shells=chosen)

    def processes(self) -> list[int]:
        """The living processes that were started with this HOME."""
        mark = f"HOME={self.home}".encode()
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if pid != os.getpid() and _lives(Path(f"/proc/{pid}"), mark)]


def _lives(entry: Path, mark: bytes) -> bool:
    try:
        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and mark in (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def settled(world: World, left: int = 0) -> list[int]:
    """Wait until the killed are gone; fail if more than `left` processes stay."""
    for _ in range(3_000):
        alive = world.processes()
        if len(alive) <= left:
            return alive
        time.sleep(0.02)
    pytest.fail(f"still running: {[Path(f'/proc/{pid}/cmdline').read_bytes() for pid in alive]}")


def the_shell(name: str, modes: Sequence[Mode] = MODES) -> Shell:
    """A shell of this machine; where it is not installed the test is skipped, outside CI only."""
    found = shutil.which(name, path="/usr/bin:/bin:/usr/local/bin")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    program = Path(found)
    flavour = flavour_of(str(program), str(real_path(program)))
    assert flavour is not None
    return Shell(name, program, flavour, tuple(modes), login=False, installed=True)


def tree(root: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every path below a directory: type, mode and content."""
    found: dict[str, tuple[int, bytes | None]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else None
        found[str(path.relative_to(root))] = (mode, content)
    return found
