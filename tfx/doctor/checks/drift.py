"""What one action of the plan means as a finding: class, words, the option that resolves it.

Decides nothing: kind and reason come from the decision table of setup (S-33).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.core.files import read_plain
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.doctor.modes import writers
from tfx.doctor.words import command
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.plan.actions import Action

_CRLF = b"\r\n"


def differs(facts: Facts, action: Action, target: str | None = None) -> Finding:
    """Return the finding of something that is not as described (D-103, D-179)."""
    from tfx.plan.outcomes import outcome_of  # noqa: PLC0415  (start-up rule)

    reason = action.reason.value
    details: dict[str, JsonValue] = {
        "state": five_state(action),
        "path": action.target,
        "reason": reason,
        "agents": list(action.agents),
    }
    if action.line:
        details |= {"line": action.line, "column": action.column}
    words = outcome_of(action, removing=False).reason
    if action.disk is not None and action.disk.mode is not None:
        details["mode"] = f"{action.disk.mode:04o}"
    status, repair = _judgement(action)
    remedies: tuple[Remedy, ...] = ()
    if repair.fix_class is FixClass.MANUAL:
        remedies = _by_hand(facts, action, details)
        if open_to := _open_to(action):
            mode = f"{action.base.mode:04o}" if action.base and action.base.mode else "755"
            words = f"{open_to} can change what agents run here; {words}"
            close = command(facts.paths.home, "chmod", mode.lstrip("0"), action.path)
            remedies = (Remedy("close it", close), *remedies)
    elif repair.actions:
        verb = "repair it"
        if reason == "identical":  # a manifest that was lost, moved or damaged
            words, verb = "is as tfx makes it, and not recorded as its own", "record it"
        word = verb if repair.fix_class is FixClass.AUTO else f"{verb}, after a yes"
        remedies = (Remedy(word, "tfx doctor --fix"),)
    return Finding(
        target or facts.paths.display(action.path) + _key(action),
        status,
        words + _crlf(action),
        details,
        remedies,
        repair,
    )


def _open_to(action: Action) -> str:
    """Say who but its owner may write an installed file that agents read or run."""
    if action.is_entry or action.disk is None or action.base is None:
        return ""
    try:
        return writers(action.path.stat()) if action.disk.mode != action.base.mode else ""
    except OSError:
        return ""


def five_state(action: Action) -> str:
    """Return pristine, edited, deleted, stale or foreign (D-179); or refused."""
    match action.reason.value:
        case "identical" | "exec-bit-lost" | "released-by-agent":
            return "pristine"
        case "edited" | "edited-and-new-version" | "retired-but-edited" | "keep-mine":
            return "edited"
        case "deleted-by-user" | "already-gone":
            return "deleted"
        case "new" | "new-version" | "stands-there-twice" | "retired" | "gives-back-replaced":
            return "stale"
        case "foreign" | "symlink-in-the-way":
            return "foreign"
        case _:
            return "refused"


def _key(action: Action) -> str:
    return f":{'.'.join(action.key)}" if action.key else ""


def _judgement(action: Action) -> tuple[Status, Repair]:
    kind, reason = action.kind.value, action.reason.value
    match kind:
        case "create" | "update":
            lost = reason == "exec-bit-lost"
            return Status.FAIL if lost else Status.WARN, Repair(FixClass.AUTO, (action,))
        case "record":
            return Status.INFO, Repair(FixClass.AUTO, (action,))
        case "delete" | "restore":
            return Status.WARN, Repair(FixClass.CONSENT, (action,))
        case "kept" | "keep":
            return Status.INFO, MANUAL
        case "refused":
            return Status.UNKNOWN if reason == "beyond-limits" else Status.FAIL, MANUAL
        case _:
            return Status.WARN, MANUAL


def _by_hand(facts: Facts, action: Action, details: dict[str, JsonValue]) -> tuple[Remedy, ...]:
    if action.kind.value != "conflict":
        return () if action.hint is None else (Remedy(action.hint),)
    if diff := _diff(facts, action):
        details["diff"] = diff
    restores = action.reason.value == "deleted-by-user"
    link = action.reason.value == "symlink-in-the-way"
    replace = "tfx setup --restore" if restores else "tfx setup --take-new"
    words = "bring it back" if restores else "take the version of tfx, after a backup"
    first = () if link else (Remedy(words, replace),)
    return (*first, Remedy("keep it as it is, quietly", "tfx setup --keep-mine"))


def _diff(facts: Facts, action: Action) -> str:
    from tfx.plan.engine import Engine  # noqa: PLC0415  (start-up rule)

    engine = Engine(facts.paths.setup_dir, git=facts.paths.program("git"))
    found = engine.diff(facts.wanted.desired, action)
    return found.text if facts.options.shows_yours else found.outline


def _crlf(action: Action) -> str:
    """Say that a script has Windows line ends, which no interpreter line survives."""
    if action.reason.value not in {"edited", "edited-and-new-version"} or action.key:
        return ""
    try:
        data = read_plain(action.path)
    except OSError:
        return ""
    broken = action.path.suffix == ".sh" and _CRLF in data  # Python is named in its entries
    return " (its lines end in CRLF, so it cannot run)" if broken else ""
