"""The words of work: states of tasks and leases, reasons of locks, kinds of artifacts.

Knows neither wire, nor rules, nor SQL.
"""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    """The nine states of a task (work.md §2)."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    ASSIGNED = "assigned"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    IN_REVIEW = "in_review"
    MERGED = "merged"
    DONE = "done"
    CANCELLED = "cancelled"


class WantedStatus(StrEnum):
    """A status that is asked for; the empty one asks for none (WK-T2)."""

    NONE = ""
    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    ASSIGNED = "assigned"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    IN_REVIEW = "in_review"
    MERGED = "merged"
    DONE = "done"
    CANCELLED = "cancelled"


class LeaseState(StrEnum):
    """How a work lease or a review stands; all but active are ended."""

    ACTIVE = "active"
    RELEASED = "released"
    REVOKED = "revoked"
    EXPIRED = "expired"


class LockReason(StrEnum):
    """Why a room or a task stands still (WK-K1)."""

    HUMAN_STOP = "human_stop"
    DUPLICATE = "duplicate"
    MANAGER_PAUSE = "manager_pause"
    REVOKED = "revoked"
    POLICY = "policy"


class ArtifactKind(StrEnum):
    """What a piece of work has brought about."""

    BRANCH = "branch"
    PR = "pr"
    FILE = "file"
    COMMIT = "commit"
    LINK = "link"
