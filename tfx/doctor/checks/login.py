"""`cli.auth`: what files and names of variables say of a login.

Reads owners and modes, never a value, and no keyring.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tfx.doctor.facts import Facts, InUse
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue

_GROUP_OR_OTHERS = 0o077


def login(facts: Facts) -> Iterator[Finding]:
    """Yield what files and names of variables say of a login (D-101)."""
    for one in facts.in_use:
        state = one.programs[0].detected.auth
        details: dict[str, JsonValue] = {"state": state.login.value}
        if state.file is not None and state.mode is not None:
            details |= {"file": str(state.file), "mode": f"{state.mode:04o}"}
            foreign = state.uid != os.geteuid()
            if foreign or state.mode & _GROUP_OR_OTHERS:
                yield _loose(facts, one, details, foreign=foreign)
                continue
        status = {"present": Status.OK, "absent": Status.INFO}.get(state.login.value)
        words = {"present": "a login is there", "absent": "no login", "unknown": "not visible"}
        yield Finding(
            one.agent.name,
            status or Status.UNKNOWN,
            f"{words[state.login.value]}: {state.reason}",
            details,
            () if status is Status.OK else (Remedy(f"log in with {one.binary} itself"),),
        )


def _loose(facts: Facts, one: InUse, details: dict[str, JsonValue], *, foreign: bool) -> Finding:
    path = str(details["file"])
    if foreign:
        summary = f"{path} belongs to another user"
        remedy = Remedy("take it back", f'sudo chown "$(id -u)" {command(facts.paths.home, path)}')
    else:
        summary = f"{path} can be read by others (mode {details['mode']})"
        remedy = Remedy(
            "close it; tfx changes no file of an agent",
            command(facts.paths.home, "chmod", "600", path),
        )
    return Finding(one.agent.name, Status.WARN, summary, details, (remedy,), MANUAL)
