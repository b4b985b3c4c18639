"""The host: locale, clock, and on request the network; what programs run on is in runtime.py.

Changes nothing but a temporary folder of its own, which is gone afterwards (D-1).
"""

from __future__ import annotations

import codecs
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tfx.core import scratch as folders
from tfx.doctor.checks.runtime import runtime
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue

MOST_SKEW_S = 5.0
_ANSWER_S = 2.0
_HOSTS = ("api.anthropic.com", "api.openai.com")  # no index host is named anywhere in tfx
_HTTPS = 443
_BUNDLES_OR_DIRECTORIES = frozenset({"SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"})
_BUNDLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE")  # fmt: skip


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
    from tfx.hub.store.inspection import last_event  # noqa: PLC0415  (start-up rule)

    with folders.scratch("doctor") as scratch:
        probe = scratch / "now"
        before = time.time()
        probe.write_bytes(b"")
        written = probe.stat().st_mtime
    yield judge_skew(written - before)
    now_ms = time.time_ns() // 1_000_000
    database = facts.probe.files.database
    if database.exists():
        yield judge_log(last_event(database), now_ms)


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
    bundles = [name for name in _BUNDLES if env.get(name)]
    yield Finding(
        "proxy",
        Status.INFO,
        f"{', '.join(proxies)} is set" if proxies else "no proxy variable is set",
        {"proxy_variables": list(proxies), "ca_bundle_variables": [*bundles]},
    )
    for name in bundles:
        yield from _bundle(name, Path(env[name]))
    for host in _HOSTS:
        yield _reach(host, proxied=bool(proxies))


def _bundle(name: str, path: Path) -> Iterator[Finding]:
    """Yield a variable for certificates that leads to none; every connection then fails."""
    fits = path.is_dir() or path.is_file() if name in _BUNDLES_OR_DIRECTORIES else path.is_file()
    if fits and os.access(path, os.R_OK):
        return
    yield Finding(
        name,
        Status.WARN,
        f"leads to {path}, where no certificates can be read: programs trust nobody",
        {"variable": name, "path": str(path)},
        (Remedy(f"correct {name} or unset it", f"unset {name}", "bash"),),
        MANUAL,
    )


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
