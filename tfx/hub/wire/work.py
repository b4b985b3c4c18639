"""Tasks on the wire: add, list, show, update, attach, next, delete.

Data only; it knows neither how they are carried nor how they are done.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from tfx.hub.models import AgentId, LeaseId, TraceId
from tfx.hub.wire.fields import (
    DEFAULT_MAX_BYTES,
    AgentName,
    IdText,
    MaxBytes,
    Mutation,
    PageSize,
    PathText,
    PriorityLevel,
    Request,
    Response,
    ShortText,
    Whole,
)
from tfx.hub.wire.identities import spell
from tfx.hub.wire.work_parts import ArtifactView, Assignee
from tfx.hub.work_models import (
    ArtifactKind,
    LeaseState,
    LockReason,
    TaskStatus,
    WantedStatus,
)

Room: TypeAlias = PathText
TaskNumber: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Title: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
Detail: TypeAlias = Annotated[str, Meta(max_length=20_000)]
Link: TypeAlias = Annotated[str, Meta(min_length=1, max_length=500)]
Blockers: TypeAlias = Annotated[tuple[TaskNumber, ...], Meta(max_length=100)]
Epoch: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
WORK_TTL_MS: Final = (10_000, 7 * 86_400_000)
"""The shortest and the longest time to live of a lease."""
WorkTtlMs: TypeAlias = Annotated[int, Meta(ge=WORK_TTL_MS[0], le=WORK_TTL_MS[1])]
Session: TypeAlias = Annotated[IdText, Meta(description="lease_id of register")]


class Place(Request, frozen=True, kw_only=True):
    """Base of a request about the tasks of a room.

    The room is the workspace of K-27; left out it is that of the agent who asks.
    """

    agent_id: AgentName | None = None
    room: Room | None = None


class Work(Mutation, frozen=True, kw_only=True):
    """Base of what a worker does: who it is, and in which life (WK-A1).

    Without `session` the caller is no supervised worker (WK-A4); without `agent_id` it is nobody.
    """

    agent_id: AgentName | None = None
    session: Session | None = None
    room: Room | None = None


class Fenced(Work, frozen=True, kw_only=True):
    """Base of a change of a task: the lease that its author believes to be the active one (WK-L9).

    With `no_lease` the author believes that there is none; with neither the hub compares with what
    it sees when the request comes in.
    """

    lease_id: IdText | None = None
    epoch: Epoch | None = None
    no_lease: bool = False


class LeaseView(Response, frozen=True, kw_only=True):
    """A work lease as it stands, or as it ended."""

    lease_id: LeaseId
    epoch: int
    room: str
    task: int
    state: LeaseState
    agent_id: AgentId
    session: str
    instance: str | None
    label: str | None
    worktree: str | None
    created_at_ms: int
    last_beat_ms: int
    ttl_ms: int | None
    expires_at_ms: int | None
    ended_at_ms: int | None
    reason: str | None
    successor: LeaseId | None


class ReviewView(Response, frozen=True, kw_only=True):
    """Who reviews a task, or who did and how that ended."""

    review_id: LeaseId
    room: str
    task: int
    state: LeaseState
    agent_id: AgentId
    session: str
    created_at_ms: int
    ended_at_ms: int | None
    reason: str | None


class LockView(Response, frozen=True, kw_only=True):
    """What stands still, and why; without `task` the whole room does."""

    lock_id: str
    room: str
    task: int | None
    reason: LockReason
    note: str | None
    set_by: AgentId
    set_at_ms: int


class TaskLine(Response, frozen=True, kw_only=True):
    """A task in a list; `waits_for` says why it is not ready."""

    task: int
    status: TaskStatus
    title: str
    priority: int
    agent_id: AgentId | None
    label: str | None
    holder: AgentId | None
    reviewer: AgentId | None
    ready: bool
    waits_for: tuple[str, ...]
    parent: int | None
    branch: str | None
    pr: str | None
    changed_at_ms: int
    revision: int


class TaskView(Response, frozen=True, kw_only=True):
    """A task with all that belongs to it; of many artifacts the newest, and how many there are.

    `detail` is whole in `work_show`, begins in what a claim answers and is null in other answers;
    `detail_chars` says how long it is.
    """

    room: str
    task: int
    status: TaskStatus
    title: str
    detail: str | None
    detail_chars: int
    priority: int
    author: AgentId
    assignee: Assignee | None
    lease: LeaseView | None
    review: ReviewView | None
    locks: tuple[LockView, ...]
    ready: bool
    waits_for: tuple[str, ...]
    parent: int | None
    blocked_by: tuple[int, ...]
    exclusive: str | None
    source_message: str | None
    source_task: str | None
    branch: str | None
    pr: str | None
    output: str | None
    artifacts: tuple[ArtifactView, ...]
    artifacts_total: int
    note: str | None
    rounds: int
    trace_id: TraceId
    created_at_ms: int
    changed_at_ms: int
    closed_at_ms: int | None
    deleted_at_ms: int | None
    revision: int


class TaskAddRequest(Work, frozen=True, kw_only=True):
    """Create a task; the same `client_key` and content give the same task (WK-T6)."""

    title: Title
    detail: Detail = ""
    priority: PriorityLevel = 5
    accept: bool = False
    client_key: IdText | None = None
    parent: TaskNumber | None = None
    blocked_by: Blockers = ()
    exclusive: IdText | None = None
    source_message: IdText | None = None
    source_task: IdText | None = None
    branch: Link | None = None
    pr: Link | None = None
    output: Link | None = None

    def __post_init__(self) -> None:
        """Put the places into their form; spell branch, PR and output as everybody does."""
        super().__post_init__()
        spell(self, branch="branch", pr="pr", output="output")


class TaskResult(Response, frozen=True, kw_only=True):
    """A task as it is after the operation."""

    task: TaskView


class TaskListRequest(Place, frozen=True, kw_only=True):
    """List tasks in the order of creation; open ones unless statuses or `all` say otherwise."""

    status: tuple[TaskStatus, ...] = ()
    all: bool = False
    ready: bool = False
    assignee: AgentName | None = None
    after: Whole = 0
    limit: PageSize = 100
    max_bytes: MaxBytes = DEFAULT_MAX_BYTES


class TaskListResult(Response, frozen=True, kw_only=True):
    """A page of tasks; `revision` rises with every change that a board shows (WK-B2).

    `locks` begins with the room's own; what has no place in it is counted in `locks_total`.
    """

    room: str
    tasks: tuple[TaskLine, ...]
    locks: tuple[LockView, ...]
    locks_total: int
    next_after: int | None
    revision: int


class TaskShowRequest(Place, frozen=True, kw_only=True):
    """Show one task with its artifacts, lease and locks."""

    task: TaskNumber


class TaskUpdateRequest(Fenced, frozen=True, kw_only=True):
    """Change a task; what is left out stays. An empty text takes a field away."""

    task: TaskNumber
    status: WantedStatus | None = None
    note: ShortText | None = None
    title: Title | None = None
    detail: Detail | None = None
    priority: PriorityLevel | None = None
    parent: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    blocked_by: Blockers | None = None
    exclusive: Annotated[str, Meta(max_length=128)] | None = None
    branch: Annotated[str, Meta(max_length=500)] | None = None
    pr: Annotated[str, Meta(max_length=500)] | None = None
    output: Annotated[str, Meta(max_length=500)] | None = None
    assignee: AgentName | None = None
    label: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    expect: Annotated[Whole, Meta(description="revision you saw")] | None = None

    def __post_init__(self) -> None:
        """Put the places into their form; spell branch, PR and output as everybody does."""
        super().__post_init__()
        spell(self, branch="branch", pr="pr", output="output")

    @property
    def wanted(self) -> TaskStatus | None:
        """The status that is asked for; an empty one is none (WK-T2)."""
        return TaskStatus(self.status) if self.status else None


class TaskAttachRequest(Fenced, frozen=True, kw_only=True):
    """Attach an artifact; without `task` to the open task that it is linked to (WK-L14)."""

    kind: ArtifactKind
    identity: Link
    task: TaskNumber | None = None

    def __post_init__(self) -> None:
        """Put the places into their form; spell a branch, PR or commit as everybody does."""
        super().__post_init__()
        spell(self, identity=self.kind.value)


class TaskNextRequest(Work, frozen=True, kw_only=True):
    """Take the first ready task: pick and claim in one transaction (WK-T12)."""

    claim: bool = True
    ttl_ms: WorkTtlMs | None = None
    worktree: Room | None = None
    instance: IdText | None = None


class TaskNextResult(Response, frozen=True, kw_only=True):
    """The task, and the lease unless it was only looked at."""

    task: TaskView
    lease: LeaseView | None


class TaskDeleteRequest(Work, frozen=True, kw_only=True):
    """Delete a task with its leases; its number is never used again (WK-T4, WK-L23)."""

    task: TaskNumber
    reason: ShortText = "deleted"


class TaskDeleteResult(Response, frozen=True, kw_only=True):
    """Whether this call deleted it."""

    task: int
    deleted: bool
