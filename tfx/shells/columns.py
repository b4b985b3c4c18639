"""The PATHs of places that start programs without a shell: tfx itself, services, cron, sudo.

Information beside the matrix (D-55): a name that is missing here is no finding by itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfx.core import process
from tfx.core.files import read_plain
from tfx.core.paths import Paths
from tfx.shells import managers
from tfx.shells.binaries import host_machine
from tfx.shells.searchpath import Copy, Entry, split, walk
from tfx.shells.selection import MINIMAL_PATH, find_program

SUDOERS = Path("/etc/sudoers")
_SECURE_PATH = re.compile(
    r"^\s*Defaults\s+(?:.*,\s*)?secure_path\s*=\s*(?P<path>\"[^\"]*\"|[^,\s]+)", re.MULTILINE
)
_SYSTEMD_S = 2.0
_FOR_SYSTEMD = ("HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


@dataclass(frozen=True, slots=True)
class Column:
    """The PATH of one place; `unknown` says why it could not be read."""

    label: str
    entries: tuple[Entry, ...] = ()
    copies: tuple[tuple[str, Copy | None], ...] = ()
    unknown: str | None = None


def columns(paths: Paths, names: Sequence[str], *, sudoers: Path = SUDOERS) -> tuple[Column, ...]:
    """Return the PATHs of tfx, the user's systemd, sudo and cron, and what the names are there."""
    roots = managers.roots(paths)
    host = host_machine()

    def column(label: str, path: str | None, why: str = "") -> Column:
        if path is None:
            return Column(label, unknown=why)
        entries = split(path, paths.home, roots)
        first = [
            (
                name,
                next((c for c in walk(name, entries, paths.home, host=host) if c.runnable), None),
            )
            for name in names
        ]
        return Column(label, entries, tuple(first))

    systemd, why_systemd = _systemd(paths)
    sudo, why_sudo = _sudo(sudoers)
    return (
        column("tfx", paths.env.get("PATH"), "PATH is not set"),
        column("systemd user services", systemd, why_systemd),
        column("sudo", sudo, why_sudo),
        column("cron", MINIMAL_PATH),
    )


def _systemd(paths: Paths) -> tuple[str | None, str]:
    program = find_program("systemctl", paths)
    if program is None:
        return None, "no systemd"
    env = {name: paths.env[name] for name in _FOR_SYSTEMD if name in paths.env}
    try:
        done = process.run(
            [str(program), "--user", "show-environment"], env=env, timeout_s=_SYSTEMD_S
        )
    except OSError as error:
        return None, str(error)
    for line in done.stdout.decode("utf-8", "replace").splitlines() if done.ok else ():
        if line.startswith("PATH="):
            value = line.removeprefix("PATH=")
            return "".join(shlex.split(value.replace("$'", "'"))), ""
    return None, "no user manager of systemd answers"


def _sudo(sudoers: Path) -> tuple[str | None, str]:
    try:
        text = read_plain(sudoers).decode("utf-8", "replace")
    except FileNotFoundError:
        return None, "no sudo"
    except OSError:
        return None, f"{sudoers} is for root to read"
    found = list(_SECURE_PATH.finditer(text))
    return (found[-1]["path"].strip('"'), "") if found else (None, "no secure_path is set")
