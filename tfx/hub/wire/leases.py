"""Leases, reviews and locks on the wire.

Data only; it knows neither how they are carried nor how they are done.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tfx.hub.models import LeaseId
from tfx.hub.wire.fields import (
    DEFAULT_MAX_BYTES,
    AgentName,
    IdText,
    MaxBytes,
    PageSize,
    Repeatable,
    Request,
    Response,
    ShortText,
)
from tfx.hub.wire.work import (
    Epoch,
    Fenced,
    LeaseView,
    LockView,
    ReviewView,
    Room,
    Session,
    TaskNumber,
    TaskView,
    Work,
    WorkTtlMs,
)
from tfx.hub.work_models import LockReason

Reason = Annotated[str, Meta(min_length=1, max_length=2_000)]


class ClaimRequest(Work, frozen=True, kw_only=True):
    """Claim a task; claiming again returns the same lease, byte for byte (WK-L2)."""

    task: TaskNumber
    ttl_ms: WorkTtlMs | None = None
    worktree: Room | None = None
    instance: IdText | None = None
    label: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class LeaseResult(Response, frozen=True, kw_only=True):
    """The lease, and the task that it is for."""

    lease: LeaseView
    task: TaskView


class RenewRequest(Work, frozen=True, kw_only=True):
    """Give a lease that has a time to live a new end: the hub's time plus it (WK-D2)."""

    lease_id: IdText
    epoch: Epoch
    ttl_ms: WorkTtlMs | None = None


class RenewResult(Response, frozen=True, kw_only=True):
    """The lease as it stands now."""

    lease: LeaseView


class ReleaseRequest(Fenced, frozen=True, kw_only=True):
    """Give a task back: its lease ends, it is accepted and nobody's (WK-L16)."""

    task: TaskNumber
    reason: ShortText | None = None


class ReleaseResult(Response, frozen=True, kw_only=True):
    """The ended lease, null where there was only an assignment; and the task."""

    released: LeaseView | None
    task: TaskView


class HandoffRequest(Fenced, frozen=True, kw_only=True):
    """Hand a task to exactly one live session of an agent (WK-L17, WK-L18)."""

    task: TaskNumber
    to: AgentName
    to_session: IdText | None = None
    to_instance: IdText | None = None
    ttl_ms: WorkTtlMs | None = None
    reason: ShortText | None = None


class HandoffResult(Response, frozen=True, kw_only=True):
    """The lease that ended and the one that began."""

    released: LeaseView
    lease: LeaseView
    task: TaskView


class BeatRequest(Repeatable, frozen=True, kw_only=True):
    """Say that a session works: its sequence rises, its time does not go back (WK-L25)."""

    agent_id: AgentName
    session: Session
    sequence: Annotated[int, Meta(ge=0, le=2**62)]
    observed_at_ms: Annotated[int, Meta(ge=-(2**62), le=2**62)]


class HeldLease(Response, frozen=True, kw_only=True):
    """A lease that is still active."""

    lease_id: LeaseId
    epoch: int
    room: str
    task: int


class BeatResult(Response, frozen=True, kw_only=True):
    """Whether the beat was taken, and what the session still holds."""

    accepted: bool
    leases: tuple[HeldLease, ...]


class ForceReleaseRequest(Fenced, frozen=True, kw_only=True):
    """Take a task from its holder, as the person at the machine (WK-D5)."""

    task: TaskNumber
    reason: Reason


class LeaseStatusRequest(Request, frozen=True, kw_only=True):
    """Ask what became of a lease or review, what a task had, or what an agent holds (WK-D8).

    One of `lease_id` (of a lease or of a review), `task` or `agent_id`; with a room alone
    everything active in it.
    """

    lease_id: IdText | None = None
    task: TaskNumber | None = None
    agent_id: AgentName | None = None
    room: Room | None = None
    limit: PageSize = 50
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class LeaseStatusResult(Response, frozen=True, kw_only=True):
    """The leases, newest epoch first; open reviews or the one asked for, and what is locked.

    With `more` there is more of it than `limit` or `max_bytes` let through.
    """

    leases: tuple[LeaseView, ...]
    reviews: tuple[ReviewView, ...]
    locks: tuple[LockView, ...]
    more: bool


class ReviewClaimRequest(Work, frozen=True, kw_only=True):
    """Take the review of a task that is in review and not your own (WK-R1, WK-R2)."""

    task: TaskNumber


class ReviewResult(Response, frozen=True, kw_only=True):
    """The review as it stands; null when none was held (WK-R4)."""

    review: ReviewView | None


class ReviewReleaseRequest(Work, frozen=True, kw_only=True):
    """End the review that you hold; with the operator credential whoever's it is (WK-R4)."""

    task: TaskNumber
    review_id: IdText | None = None
    reason: ShortText | None = None


class LockSetRequest(Work, frozen=True, kw_only=True):
    """Stop a task, or without one the whole room, as the person at the machine (WK-K1)."""

    reason: LockReason
    task: TaskNumber | None = None
    note: ShortText | None = None


class LockResult(Response, frozen=True, kw_only=True):
    """The lock."""

    lock: LockView


class LockClearRequest(Work, frozen=True, kw_only=True):
    """Let a task, or without one the room, go on."""

    task: TaskNumber | None = None


class LockClearResult(Response, frozen=True, kw_only=True):
    """The lock that was there; null when none was."""

    cleared: LockView | None
