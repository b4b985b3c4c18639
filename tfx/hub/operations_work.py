"""The rows of the operation table about work: tasks, leases, reviews, locks.

Data only (K-21); those with the toolset `work` are MCP tools (H-36).
"""

from __future__ import annotations

from typing import Final

from tfx.hub.models import Privilege, Toolset
from tfx.hub.operation import Operation, row
from tfx.hub.wire import leases, work

_WORK: Final = Toolset.WORK
_OPERATOR: Final = Privilege.OPERATOR

WORK_ROWS: Final[tuple[Operation, ...]] = (
    row(
        "work_add",
        work.TaskAddRequest,
        work.TaskResult,
        "Create a task on the board of your workspace.",
        toolset=_WORK,
    ),
    row(
        "work_list",
        work.TaskListRequest,
        work.TaskListResult,
        "List open tasks; ready ones can be claimed.",
        toolset=_WORK,
        mutates=False,
    ),
    row(
        "work_show",
        work.TaskShowRequest,
        work.TaskResult,
        "Show a task, its lease, review and artifacts.",
        toolset=_WORK,
        mutates=False,
    ),
    row(
        "work_next",
        work.TaskNextRequest,
        work.TaskNextResult,
        "Claim the best ready task.",
        toolset=_WORK,
    ),
    row(
        "work_claim",
        leases.ClaimRequest,
        leases.LeaseResult,
        "Claim a task; without a lease its holder alone may change it.",
        toolset=_WORK,
    ),
    row(
        "work_update",
        work.TaskUpdateRequest,
        work.TaskResult,
        "Change a task: status, note, links. Send lease_id and epoch of your claim.",
        toolset=_WORK,
    ),
    row(
        "work_attach",
        work.TaskAttachRequest,
        work.TaskResult,
        "Attach a branch, PR, file, commit or link to a task.",
        toolset=_WORK,
    ),
    row(
        "work_release",
        leases.ReleaseRequest,
        leases.ReleaseResult,
        "Give a task back unfinished.",
        toolset=_WORK,
    ),
    row(
        "work_handoff",
        leases.HandoffRequest,
        leases.HandoffResult,
        "Hand your task to another live agent.",
        toolset=_WORK,
    ),
    row(
        "work_review_claim",
        leases.ReviewClaimRequest,
        leases.ReviewResult,
        "Take the review of another's task.",
        toolset=_WORK,
    ),
    row(
        "work_review_release",
        leases.ReviewReleaseRequest,
        leases.ReviewResult,
        "End your review.",
        toolset=_WORK,
    ),
    row(
        "work_status",
        leases.LeaseStatusRequest,
        leases.LeaseStatusResult,
        "What became of a lease, and who holds what.",
        toolset=_WORK,
        mutates=False,
    ),
    row(
        "work_renew",
        leases.RenewRequest,
        leases.RenewResult,
        "Give a lease that has a time to live a new end.",
    ),
    row(
        "work_beat",
        leases.BeatRequest,
        leases.BeatResult,
        "Say that a session works, and hear which leases it still has.",
    ),
    row(
        "work_force_release",
        leases.ForceReleaseRequest,
        leases.ReleaseResult,
        "Take a task from its holder, for a reason.",
        privilege=_OPERATOR,
        command="tfx lease force-release",
    ),
    row(
        "work_delete",
        work.TaskDeleteRequest,
        work.TaskDeleteResult,
        "Delete a task with its leases; its number stays used.",
        privilege=_OPERATOR,
        command="tfx task delete",
    ),
    row(
        "work_lock",
        leases.LockSetRequest,
        leases.LockResult,
        "Stop a task or a whole room.",
        privilege=_OPERATOR,
        command="tfx lease lock",
    ),
    row(
        "work_unlock",
        leases.LockClearRequest,
        leases.LockClearResult,
        "Let a task or a room go on.",
        privilege=_OPERATOR,
        command="tfx lease unlock",
    ),
)
