"""Every row of the decision table, for content and for mode (S-33)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfx.plan.actions import ActionKind, Flags, Reason, State
from tfx.plan.decide import Case, decide

A, B, C = State("a", 0o644), State("b", 0o644), State("c", 0o644)
RUN, LOST, WIDE = State("a", 0o755), State("a", 0o644), State("a", 0o664)
NONE, TAKE, KEEP, BACK = Flags(), Flags(take_new=True), Flags(keep_mine=True), Flags(restore=True)
K, R = ActionKind, Reason

ROWS = [
    # the disk holds what is wanted
    (Case(A, A, A), NONE, K.UNCHANGED, R.IDENTICAL),
    (Case(None, A, A), NONE, K.RECORD, R.IDENTICAL),
    (Case(B, A, A), NONE, K.RECORD, R.IDENTICAL),
    (Case(A, A, A, kept="a:644"), NONE, K.RECORD, R.IDENTICAL),
    # B = D ≠ N
    (Case(A, A, B), NONE, K.UPDATE, R.NEW_VERSION),
    (Case(A, A, B), TAKE, K.UPDATE, R.NEW_VERSION),
    (Case(A, A, B), KEEP, K.UPDATE, R.NEW_VERSION),
    # B = ∅, D = ∅
    (Case(None, None, A), NONE, K.CREATE, R.NEW),
    (Case(None, None, A), BACK, K.CREATE, R.NEW),
    # B = ∅, D foreign
    (Case(None, B, A), NONE, K.CONFLICT, R.FOREIGN),
    (Case(None, B, A), TAKE, K.UPDATE, R.TAKE_NEW),
    (Case(None, B, A), KEEP, K.KEEP, R.KEEP_MINE),
    (Case(None, B, A), BACK, K.CONFLICT, R.FOREIGN),
    # B = N ≠ D
    (Case(A, B, A), NONE, K.CONFLICT, R.EDITED),
    (Case(A, B, A), TAKE, K.UPDATE, R.TAKE_NEW),
    (Case(A, B, A), KEEP, K.KEEP, R.KEEP_MINE),
    (Case(A, B, A), BACK, K.CONFLICT, R.EDITED),
    # all different
    (Case(A, B, C), NONE, K.CONFLICT, R.DIVERGED),
    (Case(A, B, C), TAKE, K.UPDATE, R.TAKE_NEW),
    (Case(A, B, C), KEEP, K.KEEP, R.KEEP_MINE),
    # D = ∅: the user deleted it
    (Case(A, None, A), NONE, K.CONFLICT, R.DELETED),
    (Case(A, None, B), NONE, K.CONFLICT, R.DELETED),
    (Case(A, None, A), BACK, K.RESTORE, R.RESTORE),
    (Case(A, None, A), KEEP, K.KEEP, R.KEEP_MINE),
    (Case(A, None, A), TAKE, K.CONFLICT, R.DELETED),
    # --keep-mine recorded for this N; a new N is a conflict again
    (Case(A, B, C, kept="c:644"), NONE, K.KEPT, R.KEEP_MINE),
    (Case(A, B, C, kept="b:644"), NONE, K.CONFLICT, R.DIVERGED),
    (Case(A, B, C, kept="c:644"), TAKE, K.UPDATE, R.TAKE_NEW),
    (Case(A, None, A, kept="a:644"), NONE, K.KEPT, R.KEEP_MINE),
    (Case(A, None, A, kept="a:644"), BACK, K.RESTORE, R.RESTORE),
    (Case(A, A, B, kept="b:644"), NONE, K.KEPT, R.KEEP_MINE),
    (Case(None, None, A, kept="a:644"), NONE, K.KEPT, R.KEEP_MINE),
    (Case(None, B, A, kept="a:644"), NONE, K.KEPT, R.KEEP_MINE),
    # agent absent or left out
    (Case(A, A, None, in_scope=False), NONE, K.SKIPPED, R.AGENT_ABSENT),
    (Case(A, B, None, in_scope=False), TAKE, K.SKIPPED, R.AGENT_ABSENT),
    # retired
    (Case(A, A, None), NONE, K.DELETE, R.RETIRED),
    (Case(A, B, None), NONE, K.KEEP, R.DRIFTED),
    (Case(A, B, None), TAKE, K.KEEP, R.DRIFTED),
    (Case(A, None, None), NONE, K.RECORD, R.GONE),
    (Case(None, B, None), NONE, K.RECORD, R.GONE),
    (Case(A, A, None, replaced=True), NONE, K.RESTORE, R.REPLACED),
    (Case(A, None, None, replaced=True), NONE, K.RESTORE, R.REPLACED),
    (Case(A, B, None, replaced=True), NONE, K.KEEP, R.DRIFTED),
    # same content, other mode
    (Case(RUN, LOST, RUN), NONE, K.UPDATE, R.EXEC_BIT),
    (Case(RUN, LOST, State("b", 0o755)), NONE, K.UPDATE, R.EXEC_BIT),
    (Case(RUN, LOST, None), NONE, K.DELETE, R.RETIRED),
    (Case(None, LOST, RUN), NONE, K.CONFLICT, R.FOREIGN),
    (Case(LOST, LOST, RUN), NONE, K.UPDATE, R.NEW_VERSION),
    (Case(LOST, WIDE, LOST), NONE, K.CONFLICT, R.EDITED),
    (Case(RUN, WIDE, RUN), NONE, K.CONFLICT, R.EDITED),
    (Case(LOST, WIDE, None), NONE, K.KEEP, R.DRIFTED),
    (Case(LOST, RUN, WIDE), NONE, K.CONFLICT, R.DIVERGED),
    # something that no option replaces, and a new file among things of the user
    (Case(A, None, A, blocked=R.LINK), NONE, K.CONFLICT, R.LINK),
    (Case(A, None, A, blocked=R.LINK), TAKE, K.CONFLICT, R.LINK),
    (Case(A, None, A, blocked=R.LINK), BACK, K.CONFLICT, R.LINK),
    (Case(A, None, A, blocked=R.LINK), KEEP, K.KEEP, R.KEEP_MINE),
    (Case(A, A, None, blocked=R.LINK), NONE, K.KEEP, R.DRIFTED),
    (Case(None, None, A, blocked=R.FOREIGN), NONE, K.CONFLICT, R.FOREIGN),
    (Case(None, None, A, blocked=R.FOREIGN), TAKE, K.CREATE, R.TAKE_NEW),
]


@pytest.mark.parametrize(("case", "flags", "kind", "reason"), ROWS)
def test_s33_each_row_of_the_table_has_its_action(
    case: Case, flags: Flags, kind: ActionKind, reason: Reason
) -> None:
    decision = decide(case, flags)
    assert (decision.kind, decision.reason) == (kind, reason)


def _without_mode(state: State | None) -> State | None:
    return None if state is None else replace(state, mode=None)


@pytest.mark.parametrize(
    ("case", "flags", "kind", "reason"),
    [row for row in ROWS if row[0].base in {None, A, B} and row[0].disk in {None, A, B, C}
     and row[0].new in {None, A, B, C} and RUN not in {row[0].base, row[0].new}],
)  # fmt: skip
def test_s33_entries_follow_the_same_table(
    case: Case, flags: Flags, kind: ActionKind, reason: Reason
) -> None:
    kept = case.kept.partition(":")[0] if case.kept else None
    case = replace(
        case,
        base=_without_mode(case.base),
        disk=_without_mode(case.disk),
        new=_without_mode(case.new),
        kept=kept,
    )
    decision = decide(case, flags)
    assert (decision.kind, decision.reason) == (kind, reason)
