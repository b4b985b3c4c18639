"""The decision table of ownership (setup §4.1) as one pure function (S-33).

Knows no file, no format and no manifest: only three states and the user's word.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfx.plan.actions import ActionKind, Flags, Reason, State

_EXEC_BITS = 0o111


@dataclass(frozen=True, slots=True)
class Case:
    """One item: B = last written by us, D = on disk, N = desired; None is ∅.

    `kept` is the token of the N that --keep-mine declined, `replaced` says that --take-new once
    put our version over the user's. `blocked` marks a D that no option may replace (a symbolic
    link, or a folder of somebody else's in the way of a new file).
    """

    base: State | None
    disk: State | None
    new: State | None
    kept: str | None = None
    replaced: bool = False
    in_scope: bool = True
    blocked: Reason | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, why, and whether the manifest forgets the item."""

    kind: ActionKind
    reason: Reason


def decide(case: Case, flags: Flags) -> Decision:
    """Return the action of the table for one item, the same for files and for entries."""
    if not case.in_scope:
        return Decision(ActionKind.SKIPPED, Reason.AGENT_ABSENT)
    if case.new is None:
        return _retired(case)
    if case.disk == case.new:
        recorded = case.base == case.new and case.kept is None
        kind = ActionKind.UNCHANGED if recorded else ActionKind.RECORD
        return Decision(kind, Reason.IDENTICAL)
    return _wanted(case, case.new, flags)


def _retired(case: Case) -> Decision:
    if case.base is None or (case.disk is None and not case.replaced):
        return Decision(ActionKind.RECORD, Reason.GONE)
    ours = case.disk in {case.base, None} or exec_bit_lost(case.base, case.disk)
    if case.blocked is not None or not ours:
        return Decision(ActionKind.KEEP, Reason.DRIFTED)
    if case.replaced:
        return Decision(ActionKind.RESTORE, Reason.REPLACED)
    return Decision(ActionKind.DELETE, Reason.RETIRED)


def _wanted(case: Case, new: State, flags: Flags) -> Decision:
    why = _difference(case, new)
    declined = case.kept == new.token()
    if why in {Reason.NEW, Reason.NEW_VERSION, Reason.EXEC_BIT} and not declined:
        kind = ActionKind.CREATE if case.disk is None else ActionKind.UPDATE
        return Decision(kind, why)
    # What was declined stays as it is, even when it meanwhile went back to B or away.
    if forced := _forced(case, flags):
        return forced
    if declined:
        return Decision(ActionKind.KEPT, Reason.KEEP_MINE)
    if flags.keep_mine:
        return Decision(ActionKind.KEEP, Reason.KEEP_MINE)
    return Decision(ActionKind.CONFLICT, why)


def _forced(case: Case, flags: Flags) -> Decision | None:
    if case.blocked is Reason.LINK:
        return None
    if flags.take_new and case.disk is not None:
        return Decision(ActionKind.UPDATE, Reason.TAKE_NEW)
    if flags.take_new and case.blocked is Reason.FOREIGN:
        return Decision(ActionKind.CREATE, Reason.TAKE_NEW)
    if flags.restore and case.disk is None and case.blocked is None:
        return Decision(ActionKind.RESTORE, Reason.RESTORE)
    return None


def _difference(case: Case, new: State) -> Reason:
    if case.blocked is not None:
        return case.blocked
    if case.disk is None:
        return Reason.NEW if case.base is None else Reason.DELETED
    if case.base is None:
        return Reason.FOREIGN
    if exec_bit_lost(case.base, case.disk):
        return Reason.EXEC_BIT
    if case.disk == case.base:
        return Reason.NEW_VERSION
    return Reason.EDITED if case.base == new else Reason.DIVERGED


def exec_bit_lost(base: State, disk: State | None) -> bool:
    """Say whether the disk holds our bytes with nothing changed but exec bits taken away."""
    if disk is None or disk.sha256 != base.sha256 or base.mode is None or disk.mode is None:
        return False
    return disk.mode != base.mode and disk.mode | (base.mode & _EXEC_BITS) == base.mode
