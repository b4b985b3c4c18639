"""Who has the hub's port, and whether its two credentials are private.

Ends no process and reads no credential.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfx.doctor.checks.hub_process import upkeep
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.hub.daemon.probe import Probe

_PRIVATE_FILE = 0o600
_GROUP_OR_OTHERS = 0o077


def port(facts: Facts) -> Iterator[Finding]:
    """Yield who has the port that the hub wants (D-108, K-29)."""
    from tfx.hub import settings as hub_settings  # noqa: PLC0415  (start-up rule)
    from tfx.hub.daemon import ports  # noqa: PLC0415

    try:
        wanted = hub_settings.resolve(facts.paths)
    except TfxError as error:
        yield Finding("port", Status.UNKNOWN, f"config.toml is wrong: {error.message}")
        return
    number = wanted.port
    seen = facts.probe
    running = seen.recorded if seen.state.value == "running" else None
    holder = ports.holder_of(number) if number else None
    target = f"port {number}"
    if running is not None and running.port == number:
        yield Finding(target, Status.OK, "is the hub's own")
    elif running is None and _is_own(seen, number, holder):
        yield Finding(target, Status.OK, "is the hub's own; how the hub is, hub.health tells")
    elif number == 0:
        yield Finding(target, Status.OK, "any free port is wanted")
    elif not ports.is_listening(number):
        words = f"is free; the hub runs on {running.port}" if running else "is free"
        yield Finding(target, Status.INFO if running else Status.OK, words)
    else:
        yield _taken(number, holder, strict=wanted.port_asked)


def _is_own(seen: Probe, number: int, holder: tuple[int, str] | None) -> bool:
    """Say whether a hub that starts, hangs or lost a file has the port: no stranger's then."""
    if not seen.in_use:
        return False
    pids = {each.pid for each in (seen.holder, seen.recorded) if each is not None}
    recorded = seen.recorded is not None and seen.recorded.port == number
    return recorded or (holder is not None and holder[0] in pids)


def _taken(number: int, holder: tuple[int, str] | None, *, strict: bool) -> Finding:
    who = f"{holder[1]} (pid {holder[0]})" if holder else "a process of another user"
    details: dict[str, JsonValue] = {"port": number, "asked": strict}
    if holder:
        details |= {"pid": holder[0], "name": holder[1]}
    if strict:
        return Finding(
            f"port {number}",
            Status.FAIL,
            f"is held by {who}, and the hub was told to use no other",
            details,
            (Remedy("end that program yourself, or take another port", "tfx config path"),),
            MANUAL,
        )
    return Finding(
        f"port {number}",
        Status.WARN,
        f"is held by {who}; the hub takes a free one instead, and its clients follow",
        details,
        (Remedy("or end that program yourself; tfx ends no process"),),
        MANUAL,
    )


def credentials(facts: Facts) -> Iterator[Finding]:
    """Yield whether the two credentials are private; their content is never read."""
    from tfx.plan.actions import ActionKind, Reason  # noqa: PLC0415  (start-up rule)

    files = facts.probe.files
    for path in (files.token, files.operator):
        target = facts.paths.display(path)
        try:
            info = path.lstat()
        except OSError:
            yield Finding(target, Status.SKIP, "is made by the first start of the hub")
            continue
        mode = stat.S_IMODE(info.st_mode)
        details: dict[str, JsonValue] = {"mode": f"{mode:04o}", "path": str(path)}
        if stat.S_ISLNK(info.st_mode) or info.st_uid != os.geteuid():
            summary = "is a symbolic link or belongs to another user"
            remedy = Remedy("renew it", "tfx hub token rotate")
            yield Finding(target, Status.FAIL, summary, details, (remedy,), MANUAL)
        elif mode & _GROUP_OR_OTHERS:
            action = upkeep(path, ActionKind.UPDATE, Reason.LOOSE_MODE, _PRIVATE_FILE)
            yield Finding(
                target,
                Status.FAIL,
                f"others can read it (mode {mode:04o}); it opens the hub",
                details,
                (
                    Remedy("close it", command(facts.paths.home, "chmod", "600", path)),
                    Remedy("renew it if somebody may have read it", "tfx hub token rotate"),
                ),
                Repair(FixClass.AUTO, (action,)) if action else MANUAL,
            )
        else:
            yield Finding(target, Status.OK, f"private (mode {mode:04o})", details)
