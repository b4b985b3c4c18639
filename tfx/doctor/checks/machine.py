"""The host: runtimes, limits, locale, clock, and on request the network.

Changes nothing but a temporary folder of its own, which is gone afterwards (D-1).
"""

from __future__ import annotations

import codecs
import os
import platform
import re
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tfx.core import process
from tfx.core import scratch as folders
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue

OLDEST_PYTHON = (3, 11)
FEWEST_FILES = 1024
LEAST_TEMPORARY_BYTES = 64 * 1024 * 1024
MOST_SKEW_S = 5.0
_ST_NOEXEC = 8
_ANSWER_S = 2.0
_VERSION = re.compile(r"\d+(?:\.\d+)+\w*")
_HOSTS = ("api.anthropic.com", "api.openai.com")  # no index host is named anywhere in tfx
_HTTPS = 443


def runtime(facts: Facts) -> Iterator[Finding]:
    """Yield what tfx and the agents run on (D-112)."""
    yield _python()
    yield _node(facts)
    for name, why in (("git", "merges of edited files"), ("tmux", "agents in the background")):
        yield _tool(facts, name, why)
    yield _open_files()
    yield _temporary_folder()


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


def _node(facts: Facts) -> Finding:
    cells = [cell for cell in facts.matrix.cells if cell.resolution("node") is not None]
    found = {
        str(winner.path): cell
        for cell in cells
        if (resolution := cell.resolution("node")) and (winner := resolution.winner)
    }
    if not found:
        only = [c.label for c in cells if (r := c.resolution("node")) and r.answer == "shell-only"]
        if only:
            return Finding(
                "node",
                Status.INFO,
                f"node is a function or alias in {', '.join(only)}: other programs see no node",
                {"cells": list(only)},
                (Remedy("load the version manager's directory into PATH instead of a function"),),
            )
        return Finding("node", Status.INFO, "no shell finds node; agents from npm need it")
    versions: dict[str, JsonValue] = {}
    for path, cell in found.items():
        versions[path] = version_of(Path(path), cell.path_text or "") or "unknown"
    told = ", ".join(sorted({str(version) for version in versions.values()}))
    several = len(set(versions.values())) > 1
    summary = f"node {told}" + (" (differs between shells)" if several else "")
    return Finding("node", Status.INFO if several else Status.OK, summary, versions)


def _tool(facts: Facts, name: str, why: str) -> Finding:
    program = facts.paths.program(name)
    if program is None:
        return Finding(name, Status.INFO, f"{name} is not on PATH; it is used for {why}")
    option = "-V" if name == "tmux" else "--version"
    version = version_of(program, facts.paths.env.get("PATH", ""), option)
    details: dict[str, JsonValue] = {"program": str(program)}
    if version is None:
        return Finding(name, Status.UNKNOWN, f"{name} does not tell its version", details)
    return Finding(name, Status.OK, f"{name} {version}", details)


def version_of(program: Path, path: str, option: str = "--version") -> str | None:
    """Return the version that a tool prints, started with this PATH in a scratch home."""
    with folders.scratch("doctor") as scratch:
        env = {"PATH": path, "HOME": str(scratch), "LC_ALL": "C"}
        try:
            done = process.run([str(program), option], env=env, timeout_s=5, limit_bytes=65_536)
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


def _temporary_folder() -> Finding:
    place = tempfile.gettempdir()
    try:
        space = os.statvfs(place)
    except OSError as error:
        return Finding("TMPDIR", Status.FAIL, f"{place} cannot be used: {error.strerror}")
    free = space.f_bavail * space.f_frsize
    return judge_temporary(place, free, noexec=bool(space.f_flag & _ST_NOEXEC))


def judge_temporary(place: str, free_bytes: int, *, noexec: bool) -> Finding:
    """Return what the state of the temporary folder means (K-45: values, not file systems)."""
    details: dict[str, JsonValue] = {"path": place, "free_bytes": free_bytes, "noexec": noexec}
    if free_bytes < LEAST_TEMPORARY_BYTES:
        free = f"{free_bytes // 1024 // 1024} MiB"
        remedy = Remedy("make room, or point TMPDIR elsewhere", f"df -h {place}")
        return Finding("TMPDIR", Status.WARN, f"{place} has {free} left", details, (remedy,))
    if noexec:
        summary = f"{place} is mounted noexec: agents that unpack programs there fail"
        remedy = Remedy("point TMPDIR at a directory where programs may run")
        return Finding("TMPDIR", Status.WARN, summary, details, (remedy,), MANUAL)
    return Finding("TMPDIR", Status.OK, f"{place} has room", details)


def locale(facts: Facts) -> Iterator[Finding]:
    """Yield how text is read and written (D-113)."""
    env = facts.paths.env
    value = next((env[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(name)), "")
    details: dict[str, JsonValue] = {
        "LANG": env.get("LANG", ""),
        "LC_ALL": env.get("LC_ALL", ""),
        "filesystem": sys.getfilesystemencoding(),
        "stdout": sys.stdout.encoding or "",
        "utf8_mode": bool(sys.flags.utf8_mode),
        "TERM": env.get("TERM", ""),
        "NO_COLOR": "NO_COLOR" in env,
    }
    if _is_utf8(sys.getfilesystemencoding()) and "utf" in value.casefold():
        yield Finding("locale", Status.OK, f"{value}, UTF-8", details)
        return
    shown = value or "not set, which means C"
    yield Finding(
        "locale",
        Status.WARN if not _is_utf8(sys.getfilesystemencoding()) else Status.INFO,
        f"the locale is {shown}: other programs may garble text that is not ASCII",
        details,
        (Remedy("use a UTF-8 locale", "export LANG=C.UTF-8", "bash"),),
        MANUAL,
    )


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def clock(facts: Facts) -> Iterator[Finding]:
    """Yield whether the clock agrees with the file system and with the hub's log (D-111)."""
    with folders.scratch("doctor") as scratch:
        probe = scratch / "now"
        before = time.time()
        probe.write_bytes(b"")
        written = probe.stat().st_mtime
    yield judge_skew(written - before)
    now_ms = time.time_ns() // 1_000_000
    database = facts.probe.files.database
    if database.exists():
        yield judge_log(facts.inspection.last_event_at_ms, now_ms)


def judge_skew(skew_s: float) -> Finding:
    """Return what a distance between the clock and a fresh file's time means."""
    details: dict[str, JsonValue] = {"skew_s": round(skew_s, 3), "zone": time.tzname[0]}
    if abs(skew_s) <= MOST_SKEW_S:
        return Finding("clock", Status.OK, "clock and file times agree", details)
    return Finding(
        "clock",
        Status.WARN,
        f"a file written now has a time {skew_s:+.0f} s away from the clock",
        details,
        (Remedy("synchronise the clock of this machine, or of the file server"),),
        MANUAL,
    )


def judge_log(last_at_ms: int | None, now_ms: int) -> Finding:
    """Return what the newest time in the hub's log means."""
    if last_at_ms is None or last_at_ms <= now_ms + MOST_SKEW_S * 1000:
        return Finding("hub log", Status.OK, "no event lies in the future")
    ahead_s = (last_at_ms - now_ms) // 1000
    return Finding(
        "hub log",
        Status.WARN,
        f"the newest event lies {ahead_s} s in the future: the clock was set back",
        {"last_at_ms": last_at_ms, "now_ms": now_ms},
        (Remedy("set the clock right; the hub goes on by its own rising clock"),),
        MANUAL,
    )


def network(facts: Facts) -> Iterator[Finding]:
    """Yield whether the agents' APIs can be reached; never worse than warn (D-116)."""
    env = facts.paths.env
    proxies = [name for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY") if env.get(name)]
    bundle = next((n for n in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS") if env.get(n)), None)
    yield Finding(
        "proxy",
        Status.INFO,
        f"{', '.join(proxies)} is set" if proxies else "no proxy variable is set",
        {"proxy_variables": list(proxies), "ca_bundle_variable": bundle},
    )
    for host in _HOSTS:
        yield _reach(host, proxied=bool(proxies))


def _reach(host: str, *, proxied: bool) -> Finding:
    started = time.monotonic()
    try:
        with socket.create_connection((host, _HTTPS), timeout=_ANSWER_S):
            took = round((time.monotonic() - started) * 1000)
            return Finding(host, Status.OK, f"reachable in {took} ms", {"duration_ms": took})
    except OSError as error:
        why = str(error.strerror or error)
        note = "; a proxy is set, agents may still get through" if proxied else ""
        return Finding(
            host,
            Status.INFO if proxied else Status.WARN,
            f"port 443 cannot be reached directly: {why}{note}",
            {"reason": why},
            (Remedy("look at name resolution and firewall", command(Path("/"), "getent", "hosts",
                                                                    host)),),
        )  # fmt: skip


CHECKS = (
    Check(
        "runtime",
        Group.MACHINE,
        "Python, Node, git, tmux, limits and the temporary folder",
        Explanation(
            "The versions of what tfx and the agents run on, the number of open files allowed,"
            " and whether the temporary folder has room and lets programs run.",
            "An old Node makes npm install old agents; a full or noexec folder breaks their start.",
            "`--version` of node, git and tmux in a scratch home, the process limits, statvfs.",
            "Install or upgrade the runtime with its own manager; tfx installs nothing.",
        ),
        runtime,
        slow=True,
    ),
    Check(
        "locale",
        Group.MACHINE,
        "text encoding of this session",
        Explanation(
            "Whether file names and output are UTF-8.",
            "With another encoding paths and messages are garbled or refused.",
            "LANG, LC_*, TERM, NO_COLOR and Python's own encodings.",
            "Set LANG to a UTF-8 locale in the shell's start-up file.",
        ),
        locale,
    ),
    Check(
        "time",
        Group.MACHINE,
        "clock against file times and the hub's log",
        Explanation(
            "Whether the clock agrees with the time of a file written just now, and whether the"
            " hub's log holds events of the future.",
            "Leases and deadlines are reckoned by the clock.",
            "A file in an own temporary folder; the newest event of the hub's database.",
            "Let the system synchronise its clock.",
        ),
        clock,
    ),
    Check(
        "network",
        Group.MACHINE,
        "reachability of the agents' APIs",
        Explanation(
            "Whether two APIs that agents talk to accept connections.",
            "An agent that cannot reach its service fails with messages of many kinds.",
            "One TCP connection to each host, two seconds at most; the names of proxy variables.",
            "Mend the network, the proxy or the firewall.",
        ),
        network,
        network=True,
        least_s=30,
    ),
)
