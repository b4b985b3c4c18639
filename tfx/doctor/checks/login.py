"""`cli.auth`: what files and names of variables say of a login.

Reads owners and modes, never a value, and no keyring.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tfx.core.files import read_plain
from tfx.doctor.facts import Facts, InUse
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue, TfxError

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
        if state.login.value == "unknown" and _is_nowhere(facts, one):
            summary = "no login seen: no file, no variable of a known provider, none configured"
            remedy = Remedy(f"log in with {one.binary} itself, if it needs one")
            yield Finding(one.agent.name, Status.INFO, summary, details, (remedy,))
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


def _is_nowhere(facts: Facts, one: InUse) -> bool:
    """Say whether the settings lack the key that a login in them would stand under.

    Only the name of the key is looked for, never its value.
    """
    from tfx.plan.actions import Format  # noqa: PLC0415  (start-up rule)
    from tfx.plan.documents import editor  # noqa: PLC0415

    key, target = one.agent.auth.config_key, one.agent.mcp
    if key is None or target is None:
        return False
    for path in target.existing(facts.paths):
        try:
            value = editor(Format(target.format.value)).parse(read_plain(path))
        except (OSError, TfxError):
            return False
        if not isinstance(value, dict) or key in value:
            return False
    return True


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
