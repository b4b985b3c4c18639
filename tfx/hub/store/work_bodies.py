"""What events of tasks, leases, reviews and locks carry.

Knows neither tables nor rules (event-log.md §3); tasks are named by their streams.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.hub.store.body import Body
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


class TaskCreated(Body, frozen=True):
    """A task as it was asked for."""

    author: str
    number: int
    room: str
    status: str
    title: str
    trace_id: str
    blockers: list[int] = msgspec.field(default_factory=list)
    branch: str | None = None
    client_key: str | None = None
    detail: str = ""
    exclusive: str | None = None
    output: str | None = None
    parent: int | None = None
    pr: str | None = None
    priority: int = 5
    source_message: str | None = None
    source_task: str | None = None


class TaskChanged(Body, frozen=True):
    """Everything of a task that may be edited, as it is from now on."""

    title: str
    blockers: list[int] = msgspec.field(default_factory=list)
    branch: str | None = None
    detail: str = ""
    epoch: int | None = None
    exclusive: str | None = None
    lease: str | None = None
    """With `epoch` what the task was held by then (WK-K6); no row shows it."""
    note: str | None = None
    output: str | None = None
    parent: int | None = None
    pr: str | None = None
    priority: int = 5


class TaskMoved(Body, frozen=True):
    """Status and assignee as they are from now on; the four fields of an assignee go together."""

    before: str
    status: str
    assignee: str | None = None
    decided: bool = False
    """By the operator credential: what agents may do on it is counted anew (WK-K8)."""
    epoch: int | None = None
    instance: str | None = None
    label: str | None = None
    lease: str | None = None
    """With `epoch` what the task was held by when this was decided (WK-K6); no row shows it."""
    note: str | None = None
    policy: bool = False
    """By the hub, as its agents did as much as they may: the operator alone moves it on (WK-K8)."""
    rounds: int = 0
    session: str | None = None


class TaskDeleted(Body, frozen=True):
    """A task was deleted with its leases; its number stays used."""

    reason: str


class ArtifactAttached(Body, frozen=True):
    """Something that the work has brought about; a branch or a PR becomes the task's own."""

    artifact: str
    identity: str
    branch: str | None = None
    epoch: int | None = None
    lease: str | None = None
    """With `epoch` what the task was held by then (WK-K6); no row shows it."""
    pr: str | None = None


class WorkClaimed(Body, frozen=True):
    """A lease was minted, and the task is its holder's."""

    agent: str
    epoch: int
    lease: str
    session: str
    status: str
    expires_at_ms: int | None = None
    instance: str | None = None
    label: str | None = None
    ttl_ms: int | None = None
    worktree: str | None = None


class WorkRenewed(Body, frozen=True):
    """A lease with a time to live got a new end."""

    expires_at_ms: int
    lease: str
    ttl_ms: int


class WorkWarned(Body, frozen=True):
    """The holder was told that its lease ends soon."""

    lease: str


class WorkEnded(Body, frozen=True):
    """A lease ended, or with none a dead assignment; the kind of the event says how.

    With a `status` the task takes it and is nobody's; without one it stays as it is.
    """

    reason: str
    agent: str | None = None
    epoch: int | None = None
    lease: str | None = None
    session: str | None = None
    status: str | None = None
    successor: str | None = None


class WorkHandedOff(Body, frozen=True):
    """One lease ended and the next began, in one event: never none, never two (WK-L18)."""

    agent: str
    epoch: int
    evicted: str
    lease: str
    session: str
    status: str
    expires_at_ms: int | None = None
    from_agent: str | None = None
    instance: str | None = None
    label: str | None = None
    reason: str | None = None
    ttl_ms: int | None = None


class ReviewClaimed(Body, frozen=True):
    """An agent reviews a task that is not its own."""

    agent: str
    review: str
    session: str


class ReviewEnded(Body, frozen=True):
    """It reviews no more; the kind of the event says whether by itself."""

    reason: str
    review: str


class LockSet(Body, frozen=True):
    """A room, or one task, stands still."""

    lock: str
    reason: str
    room: str
    note: str | None = None
    task: int | None = None


class LockCleared(Body, frozen=True):
    """It may go on."""

    lock: str


class ClaimDenied(Body, frozen=True):
    """What was asked for was refused; nothing changed (WK-K6)."""

    code: str
    reason: str
    verb: str
    agent: str | None = None
    lease: str | None = None
    lock: str | None = None
    repeated: int = 0
    """So often the same was refused before without an event of its own."""
    route: str | None = None
    """To whom a duplicate was sent instead: its review, or who works on it (WK-K5)."""
    session: str | None = None


WORK_BODIES: Final[Mapping[Kind, type[Body]]] = MappingProxyType(
    {
        Kind.TASK_CREATED: TaskCreated,
        Kind.TASK_CHANGED: TaskChanged,
        Kind.TASK_MOVED: TaskMoved,
        Kind.TASK_DELETED: TaskDeleted,
        Kind.ARTIFACT_ATTACHED: ArtifactAttached,
        Kind.WORK_CLAIMED: WorkClaimed,
        Kind.WORK_RENEWED: WorkRenewed,
        Kind.WORK_WARNED: WorkWarned,
        Kind.WORK_RELEASED: WorkEnded,
        Kind.WORK_HANDED_OFF: WorkHandedOff,
        Kind.WORK_REVOKED: WorkEnded,
        Kind.WORK_EXPIRED: WorkEnded,
        Kind.WORK_FORCED: WorkEnded,
        Kind.REVIEW_CLAIMED: ReviewClaimed,
        Kind.REVIEW_RELEASED: ReviewEnded,
        Kind.REVIEW_REVOKED: ReviewEnded,
        Kind.LOCK_SET: LockSet,
        Kind.LOCK_CLEARED: LockCleared,
        Kind.CLAIM_DENIED: ClaimDenied,
    }
)
