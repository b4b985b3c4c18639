"""`runtime`: Python, Node, git and tmux, the limits of this session, its temporary folder.

Runs nothing but `--version` in a scratch home; installs nothing.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.core import process
from tfx.core import scratch as folders
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command, listed
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.shells.cell import Cell

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = "2.5"  # worktrees, which a workspace may be; `merge-file --diff3` is older
FEWEST_FILES = 1024
LEAST_TEMPORARY_BYTES = 64 * 1024 * 1024
_ST_NOEXEC = 8
_VERSION = re.compile(r"\d+(?:\.\d+)+\w*")
_TOOLS = (("git", "merges of edited files"), ("tmux", "agents in the background"))


def runtime(facts: Facts) -> Iterator[Finding]:
    """Yield what tfx and the agents run on (D-112)."""
    yield _python()
    nodes = _nodes(facts)
    versions = _versions(facts, nodes)
    yield _node(facts, nodes, versions)
    for name, why in _TOOLS:
        yield _tool(facts, name, why, versions)
    yield _open_files()
    yield temporary_folder(facts.paths.env, facts.paths.home)


def _versions(facts: Facts, nodes: Mapping[Path, Cell]) -> dict[Path, str | None]:
    """Return the version of each node, of git and of tmux, all asked at the same time (D-93)."""
    stop = facts.cancel
    asked = [(path, cell.path_text or "", stop, "--version") for path, cell in nodes.items()]
    for name, _ in _TOOLS:
        if (program := facts.paths.program(name)) is not None:
            option = "-V" if name == "tmux" else "--version"
            asked.append((program, facts.paths.env.get("PATH", ""), stop, option))
    if not asked:
        return {}
    with ThreadPoolExecutor(min(8, len(asked)), "tfx-runtime") as pool:
        return dict(
            zip(
                (one[0] for one in asked),
                pool.map(lambda one: version_of(*one), asked),
                strict=True,
            )
        )


def _python() -> Finding:
    version = platform.python_version()
    details: dict[str, JsonValue] = {"program": sys.executable, "origin": _origin()}
    if sys.version_info[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Finding("python", Status.FAIL, f"Python {version}; tfx needs {wanted}", details)
    return Finding("python", Status.OK, f"Python {version} ({_origin()})", details)


def _origin() -> str:
    prefix = sys.prefix
    if "/pipx/" in prefix:
        return "pipx"
    if "/uv/" in prefix:
        return "uv"
    return "virtual environment" if prefix != sys.base_prefix else "the system's Python"


def _nodes(facts: Facts) -> dict[Path, Cell]:
    return {
        winner.path: cell
        for cell in facts.matrix.cells
        if (resolution := cell.resolution("node")) and (winner := resolution.winner)
    }


def _node(facts: Facts, nodes: Mapping[Path, Cell], found: Mapping[Path, str | None]) -> Finding:
    if not nodes:
        return _no_node(facts)
    versions: dict[str, JsonValue] = {str(path): found[path] or "unknown" for path in nodes}
    told = ", ".join(sorted({str(version) for version in versions.values()}))
    old = _too_old(facts, found)
    if old is not None:
        version, wanted, agents = old
        summary = f"node {version} is old: {listed(agents)} asks for {wanted}"
        remedy = Remedy(f"upgrade Node to {wanted} with what installed it, then the agent")
        return Finding("node", Status.WARN, summary, versions, (remedy,), MANUAL)
    several = len(set(versions.values())) > 1
    summary = f"node {told}" + (" (differs between shells)" if several else "")
    return Finding("node", Status.INFO if several else Status.OK, summary, versions)


def _no_node(facts: Facts) -> Finding:
    only = [
        cell.label
        for cell in facts.matrix.cells
        if (resolution := cell.resolution("node")) and resolution.answer == "shell-only"
    ]
    if only:
        return Finding(
            "node",
            Status.INFO,
            f"node is a function or alias in {', '.join(only)}: other programs see no node",
            {"cells": list(only)},
            (Remedy("load the version manager's directory into PATH instead of a function"),),
        )
    return Finding("node", Status.INFO, "no shell finds node; agents from npm need it")


def _too_old(facts: Facts, found: Mapping[Path, str | None]) -> tuple[str, str, list[str]] | None:
    """Return a node that is too old where an agent of npm is started, what asks for more (D-90)."""
    short: dict[tuple[str, str], list[str]] = {}
    for one in facts.in_use:
        program = one.programs[0]
        resolution = program.cell.resolution("node")
        if one.agent.engine is None or program.detected.package is None or resolution is None:
            continue
        version = found.get(resolution.path) if resolution.path is not None else None
        minimum = one.agent.engine.minimum.removeprefix(">=")
        if version is not None and is_older(version, minimum):
            short.setdefault((version, minimum), []).append(one.agent.name)
    return next(((*pair, agents) for pair, agents in short.items()), None)


def is_older(version: str, minimum: str) -> bool:
    """Compare the numbers of two versions; what is no version is not older."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415  (start-up rule)

    try:
        return Version(version) < Version(minimum)
    except InvalidVersion:
        return False


def _tool(facts: Facts, name: str, why: str, versions: Mapping[Path, str | None]) -> Finding:
    program = facts.paths.program(name)
    if program is None:
        return Finding(name, Status.INFO, f"{name} is not on PATH; it is used for {why}")
    version = versions[program]
    details: dict[str, JsonValue] = {"program": str(program)}
    if version is None:
        return Finding(name, Status.UNKNOWN, f"{name} does not tell its version", details)
    if name == "git" and is_older(version, OLDEST_GIT):
        summary = f"git {version} is old: work in worktrees needs {OLDEST_GIT}"
        remedy = Remedy("upgrade git with what installed it")
        return Finding(name, Status.WARN, summary, details, (remedy,), MANUAL)
    return Finding(name, Status.OK, f"{name} {version}", details)


def version_of(
    program: Path, path: str, cancel: threading.Event, option: str = "--version"
) -> str | None:
    """Return the version that a tool prints, started with this PATH in a scratch home.

    None where it tells none, and once `cancel` is set.
    """
    with folders.scratch("doctor") as scratch:
        env = {"PATH": path, "HOME": str(scratch), "LC_ALL": "C"}
        try:
            done = process.run(
                [str(program), option], env=env, timeout_s=5, limit_bytes=65_536, cancel=cancel
            )
        except OSError:
            return None
    found = _VERSION.search(done.stdout.decode("utf-8", "replace")) if done.ok else None
    return found[0] if found else None


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    details: dict[str, JsonValue] = {"soft": soft, "hard": hard}
    if soft != resource.RLIM_INFINITY and soft < FEWEST_FILES:
        return Finding(
            "ulimit -n",
            Status.WARN,
            f"only {soft} open files are allowed; the hub wants {FEWEST_FILES}",
            details,
            (Remedy("raise the limit in the shell that starts tfx", f"ulimit -n {FEWEST_FILES}"),),
            MANUAL,
        )
    return Finding("ulimit -n", Status.OK, f"{soft} open files", details)


def temporary_folder(env: Mapping[str, str], home: Path) -> Finding:
    """Return what TMPDIR itself is: programs that read it have no other place (D-112).

    Python looks elsewhere without a word where it cannot be used; most programs do not.
    """
    named = env.get("TMPDIR", "")
    place = Path(named or tempfile.gettempdir())
    try:
        mode = place.stat().st_mode
        space = os.statvfs(place)
    except OSError as error:
        return _unusable(place, home, (error.strerror or str(error)).casefold())
    if not place.is_absolute():
        return _unusable(place, home, "it is no absolute path")
    if not stat.S_ISDIR(mode):
        return _unusable(place, home, "it is not a directory")
    if not os.access(place, os.W_OK | os.X_OK):
        return _unusable(place, home, "you may not write there")
    free = 0 if space.f_files and not space.f_favail else space.f_bavail * space.f_frsize
    return judge_temporary(str(place), free, noexec=bool(space.f_flag & _ST_NOEXEC), home=home)


def _unusable(place: Path, home: Path, why: str) -> Finding:
    return Finding(
        "TMPDIR",
        Status.FAIL,
        f"{place} cannot be used: {why}",
        {"path": str(place), "reason": why},
        (Remedy("point TMPDIR at a directory of yours, or make it",
                command(home, "mkdir", "-p", place) if place.is_absolute() else None),),
        MANUAL,
    )  # fmt: skip


def judge_temporary(
    place: str, free_bytes: int, *, noexec: bool, home: Path = Path("/")
) -> Finding:
    """Return what the state of the temporary folder means (K-45: values, not file systems)."""
    details: dict[str, JsonValue] = {"path": place, "free_bytes": free_bytes, "noexec": noexec}
    if free_bytes < LEAST_TEMPORARY_BYTES:
        free = f"{free_bytes // 1024 // 1024} MiB"
        remedy = Remedy("make room, or point TMPDIR elsewhere", command(home, "df", "-h", place))
        return Finding("TMPDIR", Status.WARN, f"{place} has {free} left", details, (remedy,))
    if noexec:
        summary = f"{place} is mounted noexec: agents that unpack programs there fail"
        remedy = Remedy("point TMPDIR at a directory where programs may run")
        return Finding("TMPDIR", Status.WARN, summary, details, (remedy,), MANUAL)
    return Finding("TMPDIR", Status.OK, f"{place} has room", details)
