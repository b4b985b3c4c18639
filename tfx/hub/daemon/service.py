"""The systemd user unit of the hub: show, install, remove (H-5).

Knows nothing of a running hub beyond the command that starts it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tfx.core import files, process
from tfx.core.paths import Paths
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.daemon.launch import isolation_flags
from tfx.result import Result

UNIT = "tfx-hub.service"
_MARK = "# Written by `tfx hub install-service`; `--remove` takes it back.\n"
_MODE = 0o644
_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TFX_HUB_DB")
_SYSTEMCTL_S = 30.0


@dataclass(frozen=True, slots=True)
class ServiceData:
    """The unit, where it lies, and what was done with it."""

    path: str
    unit: str
    done: str
    commands: tuple[str, ...] = ()


def unit_path(paths: Paths) -> Path:
    """Return where the user's own unit lies; XDG_CONFIG_HOME is respected."""
    return paths.config_dir.parent / "systemd" / "user" / UNIT


def unit_text(paths: Paths, port: int | None = None) -> str:
    """Return the unit: ready by notification, restarted on failure only, so that stop holds.

    It names where the user's files are; a token is never in it.
    """
    words = [sys.executable, *isolation_flags(), "-m", "tfx", "hub", "start", "--foreground"]
    if port is not None:
        words += ["--port", str(port)]
    command = " ".join(_quoted(word) for word in words)
    places = "".join(
        f"Environment={_quoted(f'{name}={paths.env[name]}')}\n"
        for name in _PLACES
        if paths.env.get(name)
    )
    return (
        f"{_MARK}"
        "[Unit]\n"
        "Description=tfx hub: message bus of the coding agents on this machine\n"
        "StartLimitIntervalSec=60\n"
        "StartLimitBurst=5\n\n"
        "[Service]\n"
        "Type=notify\n"
        f"ExecStart={command}\n"
        f"{places}"
        "Restart=on-failure\n"
        "RestartSec=1\n"
        "RestartPreventExitStatus=2 5\n"
        "WatchdogSec=60\n"
        "TimeoutStopSec=20\n"
        "UMask=0077\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def install(paths: Paths, *, port: int | None, dry_run: bool) -> Result[ServiceData]:
    """Write the unit, enable and start it; `dry_run` only returns it.

    Raises StateConflict for a unit of that name that is not ours, OperationFailed when the user's
    service manager cannot be reached (nothing is written then) or refuses.
    """
    path, text = unit_path(paths), unit_text(paths, port)
    commands = (("daemon-reload",), ("enable", "--now", UNIT))
    told = tuple(" ".join(("systemctl", "--user", *words)) for words in commands)
    if dry_run:
        return Result(ServiceData(str(path), text, "nothing (dry run)", told))
    _refuse_foreign(path)
    _systemctl(paths, "show-environment")
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_atomically(path, text.encode(), _MODE)
    for words in commands:
        _systemctl(paths, *words)
    return Result(ServiceData(str(path), text, "installed", told))


def remove(paths: Paths, *, dry_run: bool) -> Result[ServiceData]:
    """Disable the unit and remove its file; a missing one is fine."""
    path = unit_path(paths)
    told = (f"systemctl --user disable --now {UNIT}", "systemctl --user daemon-reload")
    text = path.read_text("utf-8") if path.exists() else ""
    if dry_run:
        return Result(ServiceData(str(path), text, "nothing (dry run)", told))
    if not text:
        return Result(ServiceData(str(path), "", "nothing: no unit is installed"))
    _refuse_foreign(path)
    _systemctl(paths, "disable", "--now", UNIT)
    path.unlink(missing_ok=True)
    _systemctl(paths, "daemon-reload")
    return Result(ServiceData(str(path), text, "removed", told))


def _refuse_foreign(path: Path) -> None:
    try:
        ours = path.read_text("utf-8").startswith(_MARK)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise OperationFailed(f"{path} cannot be read: {error}") from error
    if not ours:
        raise StateConflict(
            f"{path} was not written by tfx and is left alone",
            code="foreign-unit",
            hint=f"cat {path}",
        )


def _systemctl(paths: Paths, *words: str) -> None:
    argv = ("systemctl", "--user", *words)
    try:
        done = process.run(argv, env=paths.env, timeout_s=_SYSTEMCTL_S)
    except OSError as error:
        raise OperationFailed(
            "systemctl was not found, so there is no service manager to install into",
            code="no-service-manager",
            hint="tfx hub start",
        ) from error
    if not done.ok:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OperationFailed(
            f"`{' '.join(argv)}` failed: {said[0] if said else 'no reason given'}",
            code="no-service-manager",
            hint="tfx hub install-service --dry-run",
        )


def _quoted(word: str) -> str:
    """Quote a word of ExecStart: `%` and `$` are specifiers there, blanks separate."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(c in word for c in " \t'\"\\;") else escaped
