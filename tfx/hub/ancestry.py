"""Which agent a process belongs to: the nearest ancestor that is an agent CLI, and its workspace.

Reads /proc and the catalogue, standard library only: bridge and hook ask here (K-27). Knows
neither hub nor wire.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tfx.agents.catalogue import AGENTS
from tfx.core.identity import ProcessIdentity, identify
from tfx.errors import JsonValue

UNKNOWN_CLI: Final = "agent"
_DEEPEST: Final = 64
_PARENT_FIELD: Final = 1  # field 4 of /proc/<pid>/stat, counted behind the command name
_RUNTIMES: Final = ("node", "bun", "deno", "python")
_NAMES: Final = {
    binary: agent.name for agent in AGENTS if not agent.has_namesakes for binary in agent.binaries
}
_PACKAGES: Final = {
    f"/{package.name}/": agent.name for agent in AGENTS for package in agent.packages
}


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The process that a caller belongs to, as `attach` wants to know it."""

    cli: str
    process: ProcessIdentity
    workspace: str


def belongs_to(pid: int | None = None, *, default_cli: str = UNKNOWN_CLI) -> Ancestor | None:
    """Return the nearest ancestor of a process that is an agent CLI, else its parent.

    Its parent then counts as a CLI called `default_cli`. None where no ancestor can be seen.
    """
    chain = tuple(_ancestors(os.getpid() if pid is None else pid))
    for each in chain:
        cli = _cli_of(_argv(each))
        if cli is not None:
            return _ancestor(each, cli)
    parent = chain[0] if chain else os.getppid()
    return _ancestor(parent, default_cli)


def is_one_agent(one: ProcessIdentity, other: ProcessIdentity) -> bool:
    """Say whether two live processes of this machine are parts of one agent.

    They are when the same agent CLI is nearest above both, or is one of them: a bridge that ends
    and the one that follows it, a tool and its CLI, and not a CLI that another one started. Where
    no CLI is seen, when one of them is an ancestor of the other.
    """
    above = (one.pid, *_ancestors(one.pid)), (other.pid, *_ancestors(other.pid))
    clis = [next((pid for pid in each if _cli_of(_argv(pid))), None) for each in above]
    if clis != [None, None]:
        return clis[0] == clis[1]
    return one.pid in above[1] or other.pid in above[0]


def is_above(one: ProcessIdentity, other: ProcessIdentity) -> bool:
    """Say whether the first process is an ancestor of the second."""
    return one.pid in _ancestors(other.pid)


def facts_of(found: ProcessIdentity) -> dict[str, JsonValue]:
    """Return a process as `attach` takes it."""
    return {
        "pid": found.pid,
        "start_token": found.start_token,
        "boot_id": found.boot_id,
        "host": found.host,
        "pid_namespace": found.pid_namespace,
    }


def workspace_of(directory: Path) -> Path:
    """Return the workspace a directory is in: the tree of its git common directory, else itself.

    All worktrees of a repository are one workspace. Starts no git and follows its files only.
    """
    for each in (directory, *directory.parents):
        marker = each / ".git"
        try:
            if marker.is_dir():
                return each
            if marker.is_file():
                return _common(each, marker)
        except OSError:
            break
    return directory


def _common(tree: Path, marker: Path) -> Path:
    """Return the workspace behind a `.git` file: of a worktree the main one, of a module itself."""
    try:
        text = marker.read_text("utf-8").strip()
        if not text.startswith("gitdir:"):
            return tree
        private = tree / text.removeprefix("gitdir:").strip()
        common = private / (private / "commondir").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return tree
    real = Path(os.path.realpath(common))
    return real.parent if real.name == ".git" else real


def _ancestor(pid: int, cli: str) -> Ancestor | None:
    found = identify(pid)
    if found is None:
        return None
    return Ancestor(cli, found, str(workspace_of(_directory(pid))))


def _directory(pid: int) -> Path:
    """Return the working directory of the agent, which its hooks and servers may have left."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return Path.cwd()


def _ancestors(pid: int) -> Iterator[int]:
    for _ in range(_DEEPEST):
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return
        pid = int(stat.rpartition(b")")[2].split()[_PARENT_FIELD])
        if pid <= 1:
            return
        yield pid


def _argv(pid: int) -> Sequence[str]:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:8]
    except OSError:
        return ()


def _cli_of(argv: Sequence[str]) -> str | None:
    """Return the agent whose program this is: by its name, or by its package's directory."""
    if not argv or not argv[0]:
        return None
    program = argv[0].split(" ", maxsplit=1)[0]  # a process title may follow the name
    found = _by_path(program)
    if found is None and os.path.basename(program).startswith(_RUNTIMES):  # noqa: PTH119  (a name, not a file)
        script = next((each for each in argv[1:] if each and not each.startswith("-")), "")
        found = _by_path(script)
        if found is None and script.startswith("/"):  # relative to a directory that is not ours
            found = _by_path(os.path.realpath(script))
    return found


def _by_path(path: str) -> str | None:
    name = _NAMES.get(os.path.basename(path))  # noqa: PTH119  (a name, not a file)
    if name is not None:
        return name
    if "/node_modules/" not in path:
        return None
    return next((agent for part, agent in _PACKAGES.items() if part in path), None)
