"""Which shells are asked, and in which modes (D-53).

Looks at what is installed and starts nothing.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import read_plain
from tfx.core.paths import Paths
from tfx.shells.binaries import real_path, runnable
from tfx.shells.flavours import MODES, Flavour, Mode, flavour_of

MINIMAL_PATH = "/usr/bin:/bin"
ETC_SHELLS = Path("/etc/shells")


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell to ask. `flavour` is None when tfx has no row for it."""

    label: str
    program: Path
    flavour: Flavour | None
    modes: tuple[Mode, ...]
    login: bool
    installed: bool


def choose(paths: Paths, *, all_shells: bool, etc_shells: Path = ETC_SHELLS) -> tuple[Shell, ...]:
    """Return the shells to ask, in the order in which they are shown.

    The login shell in all modes, `bash -c`, `bash -lc` and `sh -c`; with `all_shells` every
    installed shell of $SHELL, the password entry and /etc/shells in every mode.
    """
    login = login_shell(paths)
    bash = find_program("bash", paths) or Path("/bin/bash")
    wanted: list[tuple[Path, tuple[Mode, ...]]] = [
        (login, MODES),
        (bash, MODES if all_shells else (Mode.PLAIN, Mode.LOGIN)),
        (Path("/bin/sh"), MODES if all_shells else (Mode.PLAIN,)),
    ]
    if all_shells:
        listed = [entry for entry in (password_shell(), *_listed(etc_shells)) if entry]
        wanted += [(program, MODES) for program in listed if runnable(program)]
    return _distinct(wanted, login)


def login_shell(paths: Paths) -> Path:
    """Return the shell of $SHELL, else of the password entry, else /bin/sh.

    $SHELL comes first: it is what terminals and other programs start.
    """
    return _a_shell(paths.env.get("SHELL", "")) or password_shell() or Path("/bin/sh")


def password_shell() -> Path | None:
    """Return the shell of this user's password entry, or None."""
    try:
        return _a_shell(pwd.getpwuid(os.geteuid()).pw_shell)
    except KeyError:
        return None


def _a_shell(program: str) -> Path | None:
    """Return the path of a shell; what accounts that nobody uses have in its place is none."""
    path = Path(program)
    return path if path.is_absolute() and path.name not in {"nologin", "false"} else None


def find_program(name: str, paths: Paths) -> Path | None:
    """Return a program on tfx's own PATH or in the system's directories, absolute, or None."""
    own = [part for part in paths.env.get("PATH", "").split(":") if part.startswith("/")]
    found = shutil.which(name, path=":".join([*own, *MINIMAL_PATH.split(":")]))
    return Path(found) if found else None


def _listed(etc_shells: Path) -> Sequence[Path]:
    try:
        lines = read_plain(etc_shells).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return [Path(line) for line in map(str.strip, lines) if line.startswith("/")]


def _distinct(wanted: Iterable[tuple[Path, tuple[Mode, ...]]], login: Path) -> tuple[Shell, ...]:
    """Drop the second path to one shell, and tell apart what would have one label."""
    chosen: dict[tuple[str, Path], Shell] = {}
    for program, modes in wanted:
        real = real_path(program)
        flavour = flavour_of(str(program), str(real))
        name = flavour.name if flavour else program.name
        if (name, real) in chosen:
            continue
        label = name
        if any(other.label == label for other in chosen.values()):
            label = f"{name} ({program})"
        installed = runnable(program)
        chosen[name, real] = Shell(label, program, flavour, modes, program == login, installed)
    return tuple(chosen.values())
