"""The words for how actions went, and the snippet to add by hand.

Knows no disk; never shows a token (S-22).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tfx.errors import JsonValue, TfxError
from tfx.plan.actions import (
    Action,
    ActionKind,
    Outcome,
    OutcomeStatus,
    Reason,
    WantedEntry,
)
from tfx.plan.documents import editor

_BEARER = re.compile(r"Bearer \S+")
_STATUS: Mapping[ActionKind, OutcomeStatus] = {
    ActionKind.CREATE: OutcomeStatus.CHANGED,
    ActionKind.UPDATE: OutcomeStatus.CHANGED,
    ActionKind.DELETE: OutcomeStatus.CHANGED,
    ActionKind.RESTORE: OutcomeStatus.CHANGED,
    ActionKind.RECORD: OutcomeStatus.UNCHANGED,
    ActionKind.UNCHANGED: OutcomeStatus.UNCHANGED,
    ActionKind.KEEP: OutcomeStatus.SKIPPED,
    ActionKind.KEPT: OutcomeStatus.SKIPPED,
    ActionKind.SKIPPED: OutcomeStatus.SKIPPED,
    ActionKind.CONFLICT: OutcomeStatus.CONFLICT,
    ActionKind.REFUSED: OutcomeStatus.REFUSED,
}
_WORDS: Mapping[Reason, str] = {
    Reason.IDENTICAL: "is as it should be",
    Reason.NEW: "was not there",
    Reason.NEW_VERSION: "there is a new version",
    Reason.DOUBLED: "stood there more than once",
    Reason.EXEC_BIT: "had lost its exec bit",
    Reason.RETIRED: "is no longer wanted",
    Reason.GONE: "was already gone",
    Reason.REPLACED: "gives back what --take-new had replaced",
    Reason.RELEASED: "is now used by other agents than before",
    Reason.TAKE_NEW: "--take-new: your version is in the backup",
    Reason.KEEP_MINE: "--keep-mine: stays as you want it until there is a new version",
    Reason.RESTORE: "--restore: you had deleted it",
    Reason.UNDO: "as it was before that run",
    Reason.FOREIGN: "is not from tfx",
    Reason.EDITED: "you changed it",
    Reason.DIVERGED: "you changed it and there is a new version",
    Reason.DELETED: "you deleted it",
    Reason.DRIFTED: "is no longer wanted, but you changed it, so it is yours now",
    Reason.LINK: "a symbolic link stands where a folder of ours would be",
    Reason.MOVING: "changed each time it was about to be written",
    Reason.INTERRUPTED: "the run was interrupted",
    Reason.LOOSE_MODE: "was open to others",
    Reason.LEFT_BEHIND: "was left by a process that is gone",
    Reason.AGENT_ABSENT: "its agent is absent or left out",
}


def outcome_of(action: Action, *, removing: bool) -> Outcome:
    """Return the outcome of an action that went as planned."""
    status = _STATUS[action.kind]
    if removing and action.kind is ActionKind.KEEP:
        status = OutcomeStatus.CONFLICT
    words = _mode_words(action) or _WORDS.get(action.reason, "")
    reason = "; ".join(part for part in (words, action.detail, action.warning) if part)
    return Outcome(action, status, reason, hint=action.hint)


def _mode_words(action: Action) -> str:
    """Say of a file with our bytes and another mode that this is all that was changed (D-103)."""
    base, disk = action.base, action.disk
    if action.reason not in {Reason.EDITED, Reason.DIVERGED} or base is None or disk is None:
        return ""
    if base.sha256 != disk.sha256 or base.mode is None or disk.mode is None:
        return ""
    newer = ", and there is a new version" if action.reason is Reason.DIVERGED else ""
    return f"you changed its mode to {disk.mode:04o}; it was {base.mode:04o}{newer}"


def with_inactive_scripts(
    outcomes: tuple[Outcome, ...], entries: Mapping[str, WantedEntry]
) -> tuple[Outcome, ...]:
    """Say of each script that it is not active when its registration did not succeed (S-52)."""
    fine = {OutcomeStatus.CHANGED, OutcomeStatus.UNCHANGED}
    inactive: dict[str, str] = {}
    for outcome in outcomes:
        entry = entries.get(outcome.action.target)
        if entry is not None and outcome.status not in fine:
            inactive |= dict.fromkeys(entry.activates, outcome.action.target)
    return tuple(
        replace(outcome, reason=f"{outcome.reason}; not active: {inactive[asset]} does not name it")
        if (asset := outcome.action.asset) in inactive and not outcome.action.is_entry
        else outcome
        for outcome in outcomes
    )


def snippet(entry: WantedEntry) -> str:
    """Return what to add by hand, in the format of the file; a token is left out."""
    value = redacted(entry.value) if entry.secret else entry.value
    verbs = editor(entry.format)
    try:
        add = verbs.append if entry.element else verbs.set_key
        return add(b"", entry.key, value).decode().strip()
    except TfxError as error:
        return error.message


def redacted(value: JsonValue) -> JsonValue:
    """Return a value that holds a token without it: behind `Bearer`, else every string."""
    if not _has_bearer(value):
        return _mapped(value, lambda _: "<token>")
    return _mapped(value, lambda text: _BEARER.sub("Bearer <token>", text))


def _has_bearer(value: JsonValue) -> bool:
    match value:
        case str():
            return _BEARER.search(value) is not None
        case dict():
            return any(_has_bearer(item) for item in value.values())
        case list():
            return any(_has_bearer(item) for item in value)
        case _:
            return False


def _mapped(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _mapped(item, change) for key, item in value.items()}
        case list():
            return [_mapped(item, change) for item in value]
        case _:
            return value
