"""The changes that events make to rows; each is one statement of `projections`.

Knows no event.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

Cell: TypeAlias = int | str | bytes | None


class Change(StrEnum):
    """The changes a projection knows; each is one statement."""

    RUN_OPEN = "run_open"
    RUN_STOP = "run_stop"
    RUN_JUMP = "run_jump"
    SHIFT_DELIVERIES = "shift_deliveries"
    SHIFT_HUMANS = "shift_humans"
    AGENT_PUT = "agent_put"
    AGENT_END = "agent_end"
    AGENT_RETIRE = "agent_retire"
    TOPICS_CLEAR = "topics_clear"
    TOPIC_ADD = "topic_add"
    MESSAGE_ADD = "message_add"
    MESSAGE_SETTLE = "message_settle"
    MESSAGE_GIVE_UP = "message_give_up"
    DELIVERY_ADD = "delivery_add"
    DELIVERY_ADD_DEAD = "delivery_add_dead"
    DELIVERY_REDIRECT = "delivery_redirect"
    DELIVERY_CLAIM = "delivery_claim"
    DELIVERY_RETURN = "delivery_return"
    DELIVERY_CLOSE = "delivery_close"
    DELIVERY_REPLAY = "delivery_replay"
    HUMAN_OPEN = "human_open"
    HUMAN_CLOSE = "human_close"
    AGENT_IMPORT = "agent_import"
    MESSAGE_IMPORT = "message_import"
    DELIVERY_IMPORT = "delivery_import"
    SHIFT_LEASES = "shift_leases"
    TASK_ADD = "task_add"
    TASK_EDIT = "task_edit"
    TASK_MOVE = "task_move"
    TASK_OWN = "task_own"
    TASK_FREE = "task_free"
    TASK_LINK = "task_link"
    TASK_TOUCH = "task_touch"
    TASK_BURY = "task_bury"
    BLOCKER_ADD = "blocker_add"
    BLOCKERS_CLEAR = "blockers_clear"
    ARTIFACT_ADD = "artifact_add"
    ARTIFACTS_DROP = "artifacts_drop"
    LEASE_ADD = "lease_add"
    LEASE_RENEW = "lease_renew"
    LEASE_WARN = "lease_warn"
    LEASE_END = "lease_end"
    REVIEW_ADD = "review_add"
    REVIEW_END = "review_end"
    LOCK_ADD = "lock_add"
    LOCK_CLEAR = "lock_clear"
    SHIFT_HOLDS = "shift_holds"
    HOLD_SET = "hold_set"
    HOLD_CLEAR = "hold_clear"
    TERMINAL_SET = "terminal_set"
    TERMINAL_CLEAR = "terminal_clear"
    BUSY_SET = "busy_set"
    BUSY_CLEAR = "busy_clear"
    INVOCATION_ADD = "invocation_add"
    INVOCATION_FINISH = "invocation_finish"
    INVOCATION_LOSE = "invocation_lose"
    INVOCATION_NOTIFY = "invocation_notify"


Changes: TypeAlias = list[tuple[Change, tuple[Cell, ...]]]
