"""Say how this installation of tfx is updated, and do it when asked.

Knows how Python programs are installed; names no index host and never guesses a method.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tfx import __version__
from tfx.core import process
from tfx.core.files import is_file
from tfx.core.paths import Paths
from tfx.errors import NotFound, OperationFailed
from tfx.result import Result

DISTRIBUTION = "tfx-cli"  # PyPI's `tfx` is TensorFlow Extended: never name it here


class Method(StrEnum):
    """How tfx was installed."""

    CHECKOUT = "git checkout"
    DIRECTORY = "local directory"
    PIPX = "pipx"
    UV_TOOL = "uv tool"
    UV_PIP = "uv pip"
    VENV_PIP = "pip in a virtual environment"
    USER_PIP = "pip --user"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the running tfx lives: `prefix` of the interpreter, source tree if it has one."""

    method: Method
    prefix: Path
    source: Path | None = None

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that update it, in order; none when the method is unknown."""
        python, place = sys.executable, str(self.source)
        pip = (python, "-m", "pip", "install")
        uv_pip = ("uv", "pip", "install", "--python", python)
        commands: dict[Method, tuple[tuple[str, ...], ...]] = {
            Method.CHECKOUT: ((*pip, "--editable", place),),
            Method.DIRECTORY: ((*pip, "--upgrade", place),),
            Method.PIPX: (("pipx", "upgrade", DISTRIBUTION),),
            Method.UV_TOOL: (("uv", "tool", "upgrade", DISTRIBUTION),),
            Method.UV_PIP: ((*uv_pip, "--upgrade", DISTRIBUTION),),
            Method.VENV_PIP: ((*pip, "--upgrade", DISTRIBUTION),),
            Method.USER_PIP: ((*pip, "--user", "--upgrade", DISTRIBUTION),),
            Method.UNKNOWN: (),
        }
        is_git = self.source is not None and is_git_checkout(self.source)
        pull = (("git", "-C", place, "pull", "--ff-only"),) if is_git else ()
        return (*pull, *commands[self.method])


@dataclass(frozen=True, slots=True)
class UpdateData:
    """What `tfx update` found and did; `after` is null unless it ran."""

    method: Method
    prefix: Path
    commands: tuple[tuple[str, ...], ...]
    ran: bool
    before: str
    after: str | None


def is_git_checkout(source: Path) -> bool:
    """Say whether a source tree is a clone or a worktree of git."""
    return os.path.lexists(source / ".git")


def detect() -> Installation:
    """Return how the running tfx was installed, from the files that installers leave."""
    prefix = Path(sys.prefix)
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return Installation(Method.UNKNOWN, prefix)
    origin = _origin(distribution.read_text("direct_url.json"))
    source, editable = origin or (None, False)
    # first, because uv's environments hold no pip and `pipx install .` leaves a direct_url too
    if is_file(prefix / "pipx_metadata.json"):
        return Installation(Method.PIPX, prefix, source)
    if is_file(prefix / "uv-receipt.toml"):
        return Installation(Method.UV_TOOL, prefix, source)
    if source is not None:
        is_checkout = editable and is_git_checkout(source)
        return Installation(Method.CHECKOUT if is_checkout else Method.DIRECTORY, prefix, source)
    if sys.prefix != sys.base_prefix:
        by_uv = (distribution.read_text("INSTALLER") or "").strip() == "uv"
        return Installation(Method.UV_PIP if by_uv else Method.VENV_PIP, prefix)
    in_user_site = ".local" in Path(str(distribution.locate_file(""))).parts
    return Installation(Method.USER_PIP if in_user_site else Method.UNKNOWN, prefix)


def _origin(direct_url: str | None) -> tuple[Path, bool] | None:
    """Return (directory, editable) of an installation from a local directory (PEP 610)."""
    if not direct_url:
        return None
    record = json.loads(direct_url)
    parts = urlsplit(str(record.get("url", "")))
    info = record.get("dir_info")
    if parts.scheme != "file" or not isinstance(info, dict):
        return None
    return Path(unquote(parts.path)), bool(info.get("editable"))


def update(paths: Paths, *, run: bool) -> Result[UpdateData]:
    """Return the update commands, after running them when `run` is set.

    Raises NotFound when the method is unknown or its tool is not on PATH, OperationFailed
    when a command fails; what is installed stays as that command left it.
    """
    found = detect()
    commands = found.commands()
    if not commands:
        raise NotFound(
            f"no installer left a record of how tfx got into {found.prefix}",
            code="unknown-installation",
            hint=f"install it on its own: pipx install {DISTRIBUTION}",
        )
    after = _run_all(paths.env, commands) if run else None
    return Result(UpdateData(found.method, found.prefix, commands, run, __version__, after))


def _run_all(env: Mapping[str, str], commands: tuple[tuple[str, ...], ...]) -> str:
    for command in commands:
        program = shutil.which(command[0], path=env.get("PATH", ""))
        if program is None:
            raise NotFound(
                f"{command[0]} is needed to update this installation and is not on PATH",
                hint=f"install {command[0]}, then run: {' '.join(command)}",
            )
        code = process.run_attached([program, *command[1:]], env=env)
        if code != 0:
            raise OperationFailed(
                f"`{' '.join(command)}` ended with status {code}",
                hint="its own output above says why; tfx changed nothing else",
            )
    asked = process.run([sys.executable, "-m", "tfx", "--version"], env=env, timeout_s=60)
    words = asked.stdout.decode("utf-8", "replace").split()
    return words[-1] if asked.ok and words else "unknown"
